//! Values captured from traffic, shared by all actors of a run; the last write wins.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use proofhouse_wire::sync::{read, write};

/// How many values one actor may hold, and how long each may be: both come from the subject.
const MAX_VALUE_BYTES: usize = 1 << 20;

/// What each actor sees: its own names, and everyone's as `actor.name`.
#[derive(Debug, Default)]
pub(crate) struct Extractors {
    views: RwLock<HashMap<String, Arc<HashMap<String, String>>>>,
}

impl Extractors {
    pub(crate) fn new(actors: impl IntoIterator<Item = String>) -> Self {
        let views = actors.into_iter().map(|actor| (actor, Arc::default()));
        Self {
            views: RwLock::new(views.collect()),
        }
    }

    /// Keeps a value for `actor`; one that is too long is cut.
    pub(crate) fn set(&self, actor: &str, name: &str, mut value: String) {
        value.truncate(value.floor_char_boundary(MAX_VALUE_BYTES));
        let mut views = write(&self.views);
        for (owner, view) in views.iter_mut() {
            let view = Arc::make_mut(view);
            if owner == actor {
                view.insert(name.to_owned(), value.clone());
            }
            view.insert(format!("{actor}.{name}"), value.clone());
        }
    }

    /// What `actor` sees now.
    pub(crate) fn seen_by(&self, actor: &str) -> Arc<HashMap<String, String>> {
        let views = read(&self.views);
        views.get(actor).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_are_short_and_the_last_write_wins() {
        let extractors = Extractors::new(["a".to_owned(), "b".to_owned()]);
        extractors.set("a", "token", "1".to_owned());
        extractors.set("a", "token", "2".to_owned());
        extractors.set("b", "token", "é".repeat(MAX_VALUE_BYTES));
        let seen = extractors.seen_by("a");
        assert_eq!(
            (seen["token"].as_str(), seen["a.token"].as_str()),
            ("2", "2")
        );
        assert!(seen["b.token"].len() <= MAX_VALUE_BYTES);
        assert_eq!(extractors.seen_by("b")["a.token"], "2");
        assert!(extractors.seen_by("nobody").is_empty());
    }
}
