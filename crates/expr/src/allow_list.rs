//! The action allow list: which values of each parameter a task has used, so that events about others stay out, and rules of the
//! guard know what is new.
//!
//! There is one rule for what it takes in, wherever a list is kept: a sealed parameter never grows, null is no
//! value, and a list has a limit in number and size.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

/// How many values one parameter may have. A model that calls an action in a loop must not make the list,
/// which is stored with every call, grow without end.
pub const MAX_VALUES: usize = 10_000;
/// How many bytes a value may have as JSON. What identifies something is short; a file's content is not
/// worth keeping.
pub const MAX_VALUE_BYTES: usize = 4_096;

/// The values by parameter name: one namespace over the parameters of the tool, its actions and events.
///
/// ```
/// use proofhouse_expr::allow_list::AllowList;
/// use serde_json::json;
///
/// let mut list = AllowList::default();
/// list.seal("owner", json!("acme"));
/// list.add("owner", &json!("other"));
/// list.add("author", &json!("alice"));
/// assert_eq!(list.values("owner"), [json!("acme")]);
/// assert_eq!(list.values("author"), [json!("alice")]);
/// assert!(list.values("repo").is_empty());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AllowList {
    entries: BTreeMap<String, AllowListEntry>,
}

/// The values of one parameter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AllowListEntry {
    values: Vec<Value>,
    /// The values as text, to find them by.
    known: HashSet<String>,
    sealed: bool,
}

/// What became of a value that was offered to an [`AllowList`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addition {
    /// It is new, and a store has to write it.
    Added,
    /// Nothing changed: it is known, it is null, or its parameter is sealed.
    Unchanged,
    /// It is too large, or one too many.
    LeftOut,
}

impl AllowListEntry {
    /// The values, in the order they came.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Whether an agent's binding fixed them, so that calls add nothing.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }
}

impl AllowList {
    /// Fixes a parameter to the value an agent binds it to, when the task starts.
    pub fn seal(&mut self, name: &str, value: Value) {
        let entry = AllowListEntry {
            known: HashSet::from([value.to_string()]),
            values: vec![value],
            sealed: true,
        };
        self.entries.insert(name.to_owned(), entry);
    }

    /// Adds one value of a dispatched call. Sealed parameters stay as they are; null is no value.
    pub fn add(&mut self, name: &str, value: &Value) -> Addition {
        let entry = self.entries.get_mut(name);
        if value.is_null() || entry.as_ref().is_some_and(|entry| entry.sealed) {
            return Addition::Unchanged;
        }
        let text = value.to_string();
        match entry {
            Some(entry) if entry.known.contains(&text) => return Addition::Unchanged,
            Some(entry) if entry.values.len() >= MAX_VALUES => return Addition::LeftOut,
            Some(_) | None if text.len() > MAX_VALUE_BYTES => return Addition::LeftOut,
            Some(_) | None => {}
        }
        let entry = self.entries.entry(name.to_owned()).or_default();
        entry.known.insert(text);
        entry.values.push(value.clone());
        Addition::Added
    }

    /// The values of a parameter; none where no call had one.
    #[must_use]
    pub fn values(&self, name: &str) -> &[Value] {
        self.entries.get(name).map_or(&[], AllowListEntry::values)
    }

    /// Whether a parameter is fixed by a binding.
    #[must_use]
    pub fn is_sealed(&self, name: &str) -> bool {
        self.entries
            .get(name)
            .is_some_and(AllowListEntry::is_sealed)
    }

    /// The parameters and their values.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &AllowListEntry)> {
        let entries = self.entries.iter();
        entries.map(|(name, entry)| (name.as_str(), entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_grow_from_calls_and_each_is_kept_once() {
        let mut list = AllowList::default();
        assert_eq!(list.add("author", &json!("alice")), Addition::Added);
        assert_eq!(list.add("n", &json!(1)), Addition::Added);
        assert_eq!(list.add("none", &Value::Null), Addition::Unchanged);
        assert_eq!(list.add("author", &json!("bob")), Addition::Added);
        assert_eq!(list.add("author", &json!("alice")), Addition::Unchanged);
        assert_eq!(list.values("author"), [json!("alice"), json!("bob")]);
        assert!(list.values("none").is_empty());
        assert_eq!(list.entries().count(), 2);
    }

    #[test]
    fn a_sealed_parameter_never_grows() {
        let mut list = AllowList::default();
        list.seal("owner", json!("acme"));
        assert_eq!(list.add("owner", &json!("evil")), Addition::Unchanged);
        assert_eq!(list.values("owner"), [json!("acme")]);
        assert!(list.is_sealed("owner"));
    }

    #[test]
    fn what_is_too_much_is_left_out_and_told() {
        let mut list = AllowList::default();
        let long = "x".repeat(MAX_VALUE_BYTES + 1);
        assert_eq!(list.add("text", &json!(long)), Addition::LeftOut);
        assert_eq!(list.add("list", &json!([long])), Addition::LeftOut);
        assert_eq!(list.entries().count(), 0);
        for number in 0..=MAX_VALUES {
            list.add("id", &json!(number));
        }
        assert_eq!(list.values("id").len(), MAX_VALUES);
        assert_eq!(list.add("id", &json!("new")), Addition::LeftOut);
    }
}
