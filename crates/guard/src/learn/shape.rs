//! What the values of an argument look like, and so whether the argument may decide about an effect.

use crate::taint::fields::{is_prose, is_sentence};

/// What was seen of an argument.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentShape {
    seen: u64,
    prose: u64,
    sentences: u64,
    quantities: u64,
}

impl ArgumentShape {
    /// Takes in a value.
    pub fn see(&mut self, value: &str) {
        self.seen += 1;
        if is_prose(value) {
            self.prose += 1;
            self.sentences += u64::from(is_sentence(value));
        } else if is_quantity(value) {
            self.quantities += 1;
        }
    }

    /// Whether the argument may say where an effect goes or what it is about: a name, an address, an id. A text does not, nor
    /// does an amount, a date or a switch, unless its name says that it is an id. What was never seen may.
    #[must_use]
    pub fn may_decide(&self, name: &str) -> bool {
        let is_id = name == "id" || name.ends_with("_id") || name.ends_with("Id");
        self.prose == 0 && (self.seen == 0 || is_id || self.quantities < self.seen)
    }

    /// Whether the argument is a title: of several words, but no text of sentences. It decides where nothing else does.
    #[must_use]
    pub fn is_title(&self) -> bool {
        self.prose > 0 && self.sentences == 0
    }
}

/// Whether a value is an amount, a date, a time or a switch.
fn is_quantity(value: &str) -> bool {
    let value = value.trim();
    matches!(value, "true" | "false" | "")
        || (value.chars().any(|c| c.is_ascii_digit())
            && value
                .chars()
                .all(|c| c.is_ascii_digit() || " .,:+-/TZ%".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::ArgumentShape;

    fn decides(name: &str, values: &[&str]) -> bool {
        let mut shape = ArgumentShape::default();
        values.iter().for_each(|value| shape.see(value));
        shape.may_decide(name)
    }

    #[test]
    fn names_ids_and_addresses_decide_and_texts_and_quantities_do_not() {
        assert!(decides("to", &["eve@evil.example"]));
        assert!(decides("file_id", &["13", "4"]));
        assert!(decides("channel", &["general"]));
        assert!(decides("never_seen", &[]));

        assert!(!decides(
            "body",
            &["hi", "Dear all, the meeting is at ten."]
        ));
        assert!(!decides("amount", &["98.70", "1,000"]));
        assert!(!decides(
            "start",
            &["2024-05-19 12:00", "2024-05-19T12:00:00Z"]
        ));
    }

    #[test]
    fn a_title_has_several_words_and_ends_as_no_sentence_does() {
        for (values, is_title) in [
            (&["Lunch", "Dinner at the house of the director"][..], true),
            (&["Lunch"], false),
            (
                &["Dinner at the house", "We meet there at ten o'clock."],
                false,
            ),
        ] {
            let mut shape = ArgumentShape::default();
            values.iter().for_each(|value| shape.see(value));
            assert_eq!(shape.is_title(), is_title, "{values:?}");
        }
    }
}
