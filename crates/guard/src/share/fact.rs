//! What guards of one session tell each other: texts of results, values that the user named or approved, names of tools.

use serde::{Deserialize, Serialize};

use crate::taint::TaintLabel;

/// The longest text that is told; of a longer one, the beginning.
pub(crate) const MAX_TOLD: usize = 1 << 20;

/// How many bytes of texts go into one message.
const MESSAGE_TEXTS: usize = 512 << 10;

/// One thing that a guard learned from its client or its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub(crate) enum SharedFact {
    /// A result or a definition had these texts.
    Texts {
        label: TaintLabel,
        origin: String,
        texts: Vec<String>,
    },
    /// Fields that are no free text had these values.
    Values { values: Vec<String> },
    /// A call had these values before any result had them.
    Named { values: Vec<String> },
    /// A person approved these values.
    Approved { values: Vec<String> },
    /// There are tools of these names, in lower case.
    Tools { names: Vec<String> },
}

impl SharedFact {
    fn texts(&mut self) -> &mut Vec<String> {
        match self {
            Self::Texts { texts, .. } => texts,
            Self::Values { values } | Self::Named { values } | Self::Approved { values } => values,
            Self::Tools { names } => names,
        }
    }

    /// The same without its texts.
    fn emptied(&self) -> Self {
        match self {
            Self::Texts { label, origin, .. } => Self::Texts {
                label: *label,
                origin: origin.clone(),
                texts: Vec::new(),
            },
            Self::Values { .. } => Self::Values { values: Vec::new() },
            Self::Named { .. } => Self::Named { values: Vec::new() },
            Self::Approved { .. } => Self::Approved { values: Vec::new() },
            Self::Tools { .. } => Self::Tools { names: Vec::new() },
        }
    }
}

/// A text that is not longer than what is told.
pub(crate) fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_TOLD);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The same facts in portions, each of which fits into a message.
pub(crate) fn portions(facts: Vec<SharedFact>) -> Vec<Vec<SharedFact>> {
    let mut portions: Vec<Vec<SharedFact>> = Vec::new();
    let mut room = 0_usize;
    for mut fact in facts {
        let texts = std::mem::take(fact.texts());
        let mut is_begun = false;
        for mut text in texts {
            text.truncate(cut(&text).len());
            // What else a message says about each text.
            let size = text.len() + 16;
            if room < size || portions.is_empty() {
                portions.push(Vec::new());
                room = MESSAGE_TEXTS.max(size);
                is_begun = false;
            }
            room -= size;
            if let Some(portion) = portions.last_mut() {
                if !is_begun {
                    portion.push(fact.emptied());
                    is_begun = true;
                }
                if let Some(last) = portion.last_mut() {
                    last.texts().push(text);
                }
            }
        }
    }
    portions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_in_portions() {
        let long = "é".repeat(MAX_TOLD);
        let facts = vec![
            SharedFact::Texts {
                label: TaintLabel::Secret,
                origin: "a/b".to_owned(),
                texts: vec!["x".repeat(300 << 10), "y".repeat(300 << 10), long],
            },
            SharedFact::Tools { names: Vec::new() },
            SharedFact::Named {
                values: vec!["one".to_owned(), "two".to_owned()],
            },
        ];
        let portions = portions(facts);
        let sizes: Vec<Vec<usize>> = portions
            .iter()
            .map(|facts| {
                let facts = facts.iter().cloned();
                facts
                    .flat_map(|mut fact| std::mem::take(fact.texts()))
                    .map(|text| text.len())
                    .collect()
            })
            .collect();
        assert_eq!(
            sizes,
            [vec![300 << 10], vec![300 << 10], vec![MAX_TOLD], vec![3, 3]]
        );
        assert!(matches!(portions[3].as_slice(), [SharedFact::Named { .. }]));
    }
}
