//! Structured results: their fields, and which of them are free text.

use serde_json::Value;

/// How many words a value may have that is no text.
const MAX_WORDS: usize = 4;

/// How many characters a value may have that is no text.
const MAX_VALUE: usize = 80;

/// How long the name of a field may be.
const MAX_FIELD: usize = 40;

/// How many digits the name of a field may have.
const MAX_DIGITS: usize = 2;

/// Every text and number below a value, with the key of the field it stands in. Keys are values, too: objects may be
/// keyed by names.
pub(crate) fn each(value: &Value, found: &mut dyn FnMut(Option<&str>, &str)) {
    fn walk(value: &Value, key: Option<&str>, found: &mut dyn FnMut(Option<&str>, &str)) {
        match value {
            Value::String(text) => found(key, text),
            Value::Number(number) => found(key, &number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| walk(item, key, found)),
            Value::Object(members) => {
                for (key, item) in members {
                    found(None, key);
                    walk(item, Some(key), found);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
    walk(value, None, found);
}

/// Whether a key is the name of a field, and no name of a thing.
pub(crate) fn is_field(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Whether a key may carry a value, as an address or a token that stands in the place of a name: it is no name of a field, or
/// none that somebody would give one.
pub(crate) fn is_value(key: &str) -> bool {
    let digits = key.chars().filter(char::is_ascii_digit).count();
    !is_field(key) || key.len() > MAX_FIELD || digits > MAX_DIGITS
}

/// The texts of a structured result, and its other values: fields that are free text, and what reads like text anywhere.
pub(crate) fn told_apart(
    value: &Value,
    is_free_text: &dyn Fn(&str) -> bool,
) -> (Vec<String>, Vec<String>) {
    let (mut texts, mut values) = (Vec::new(), Vec::new());
    each(value, &mut |key, text| {
        let is_text = key.is_some_and(is_free_text) || is_prose(text);
        let kind = if is_text { &mut texts } else { &mut values };
        kind.push(text.to_owned());
    });
    (texts, values)
}

/// Whether a value reads like text, whatever its field is called: whoever may choose a name may write a sentence there.
pub(crate) fn is_prose(value: &str) -> bool {
    value.contains(['\n', '\r'])
        || value.chars().count() > MAX_VALUE
        || value.split_whitespace().count() > MAX_WORDS
}

/// Whether an argument is a text, not a name or a title: it has lines, is long, or ends as a sentence does.
pub(crate) fn is_sentence(value: &str) -> bool {
    let value = value.trim();
    is_prose(value)
        && (value.contains(['\n', '\r'])
            || value.chars().count() > MAX_VALUE
            || value.ends_with(['.', '!', '?', '…']))
}

#[cfg(test)]
mod tests {
    use super::{is_prose, is_sentence, is_value};

    #[test]
    fn names_of_fields_are_no_values_and_names_of_things_are() {
        for key in ["to", "user_id", "x-api-key", "address2", "startTime"] {
            assert!(!is_value(key), "{key}");
        }
        for key in [
            "eve@evil.example",
            "Alice",
            "sk-abc123def",
            "a b",
            "/etc/passwd",
            "",
        ] {
            assert!(is_value(key), "{key}");
        }
    }

    #[test]
    fn a_title_is_no_sentence_however_many_words_it_has() {
        for title in [
            "Dinner at the house of the director",
            "Lunch",
            "1 Rue de la Paix, 75002 Paris, France",
        ] {
            assert!(!is_sentence(title), "{title}");
        }
        for text in ["We meet there at ten o'clock.", "a\nb", &"x".repeat(81)] {
            assert!(is_sentence(text), "{text}");
        }
    }

    #[test]
    fn names_and_addresses_are_values_and_sentences_are_text() {
        for value in [
            "Alice",
            "eve@evil.example",
            "2024-05-30 10:20",
            "Le Marais Boutique",
            "13",
            "",
        ] {
            assert!(!is_prose(value), "{value}");
        }
        for text in ["Send a link to Alice.", "a\nb", &"x".repeat(81)] {
            assert!(is_prose(text), "{text}");
        }
    }
}
