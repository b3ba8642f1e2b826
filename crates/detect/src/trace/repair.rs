//! Mends JSON that a strict parser refuses, so that a message cannot hide behind one odd character.
//!
//! It is the slow path: a text that parses never comes here. The repair is one pass over the text,
//! keeps no stack, and does not judge whether the result is JSON; the parser does that once more.

use std::fmt;

/// The levels that are kept as they are. What lies deeper is kept as its text, because parsers
/// refuse 128 levels, and the message may be wrapped in a few already.
pub(crate) const MAX_LEVELS: usize = 120;

/// What was mended, by count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Repairs {
    /// Bytes that are not UTF-8 were replaced, the first of them at this byte, from 1.
    pub(crate) not_utf8: Option<usize>,
    /// Halves of a surrogate pair without the other half.
    surrogates: usize,
    /// Numbers that no JSON number can hold.
    numbers: usize,
    /// Control characters, and escapes that JSON does not know.
    characters: usize,
    /// Places nested too deep.
    deep: usize,
}

impl Repairs {
    /// Whether there is nothing to tell.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what was mended elsewhere on the line.
    pub(crate) fn add(&mut self, other: &Self) {
        self.not_utf8 = self.not_utf8.or(other.not_utf8);
        self.surrogates += other.surrogates;
        self.numbers += other.numbers;
        self.characters += other.characters;
        self.deep += other.deep;
    }
}

impl fmt::Display for Repairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("repaired: ")?;
        let mut parts = Vec::new();
        if let Some(byte) = self.not_utf8 {
            parts.push(format!("not UTF-8 at byte {byte}, replaced by U+FFFD"));
        }
        for (count, what) in [
            (self.surrogates, "lone surrogates replaced by U+FFFD"),
            (self.numbers, "numbers out of range kept as text"),
            (self.characters, "bad characters or escapes in texts mended"),
        ] {
            if count > 0 {
                parts.push(format!("{what} ({count})"));
            }
        }
        if self.deep > 0 {
            parts.push(format!(
                "nested deeper than {MAX_LEVELS} levels, the rest kept as text ({})",
                self.deep
            ));
        }
        f.write_str(&parts.join("; "))
    }
}

/// The mended text; `None` when there was nothing to mend.
pub(crate) fn repair(text: &str, repairs: &mut Repairs) -> Option<String> {
    let mut pass = Pass {
        text,
        out: String::with_capacity(text.len() + 64),
        deep: None,
        level: 0,
        repairs: Repairs::default(),
    };
    pass.run();
    if let Some(deep) = pass.deep.take() {
        push_text(&mut pass.out, &deep);
    }
    if pass.repairs.is_empty() {
        return None;
    }
    repairs.add(&pass.repairs);
    Some(pass.out)
}

struct Pass<'a> {
    text: &'a str,
    out: String,
    /// What lies too deep, as canonical JSON, while the pass is in it.
    deep: Option<String>,
    level: usize,
    repairs: Repairs,
}

impl Pass<'_> {
    fn run(&mut self) {
        let text = self.text;
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => at = self.string(at + 1),
                b'{' | b'[' => {
                    self.level += 1;
                    if self.level > MAX_LEVELS && self.deep.is_none() {
                        self.deep = Some(String::new());
                        self.repairs.deep += 1;
                    }
                    self.push(&text[at..=at]);
                    at += 1;
                }
                b'}' | b']' => {
                    self.push(&text[at..=at]);
                    self.level = self.level.saturating_sub(1);
                    if self.level <= MAX_LEVELS
                        && let Some(deep) = self.deep.take()
                    {
                        push_text(&mut self.out, &deep);
                    }
                    at += 1;
                }
                _ if is_word(byte) => {
                    let rest = &bytes[at..];
                    let length = rest.iter().position(|b| !is_word(*b));
                    let word = &text[at..at + length.unwrap_or(rest.len())];
                    if is_bad_number(word) {
                        self.repairs.numbers += 1;
                        self.push(&format!("\"{word}\""));
                    } else {
                        self.push(word);
                    }
                    at += word.len();
                }
                _ => {
                    let rest = &bytes[at..];
                    let plain = |b: &u8| !is_word(*b) && !b"\"{}[]".contains(b);
                    let length = rest.iter().take_while(|b| plain(b)).count();
                    self.push(&text[at..at + length]);
                    at += length;
                }
            }
        }
    }

    /// Copies a text whose opening quote stands before `start`; returns where it ends.
    fn string(&mut self, start: usize) -> usize {
        let text = self.text;
        let bytes = text.as_bytes();
        let mut mended = String::from("\"");
        let (mut at, mut copied) = (start, start);
        while let Some(&byte) = bytes.get(at) {
            let (length, replacement) = match byte {
                b'"' => break,
                b'\\' => self.escape(at),
                0..0x20 => {
                    self.repairs.characters += 1;
                    (1, Some(format!("\\u{byte:04x}")))
                }
                _ => (1, None),
            };
            if let Some(replacement) = replacement {
                mended.push_str(&text[copied..at]);
                mended.push_str(&replacement);
                copied = at + length;
            }
            at += length;
        }
        let end = at.min(text.len());
        mended.push_str(&text[copied..end]);
        if end < text.len() {
            mended.push('"');
        }
        // What is kept as text is searched as text, so no letter of it may stay an escape.
        let escapes = self.deep.is_some() && mended.contains('\\');
        let plain = escapes.then(|| serde_json::from_str::<String>(&mended).ok());
        match plain.flatten() {
            Some(plain) => {
                let canonical = serde_json::Value::String(plain).to_string();
                self.push(&canonical);
            }
            None => self.push(&mended),
        }
        (end + 1).min(text.len())
    }

    /// The length of the escape at `at`, and what to write instead if it is bad.
    fn escape(&mut self, at: usize) -> (usize, Option<String>) {
        let bytes = self.text.as_bytes();
        match bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => (2, None),
            Some(b'u') => match unit(bytes, at) {
                Some(0xD800..=0xDBFF) => match unit(bytes, at + 6) {
                    Some(0xDC00..=0xDFFF) => (12, None),
                    _ => self.lone(),
                },
                Some(0xDC00..=0xDFFF) => self.lone(),
                Some(_) => (6, None),
                None => self.unknown(),
            },
            _ => self.unknown(),
        }
    }

    fn lone(&mut self) -> (usize, Option<String>) {
        self.repairs.surrogates += 1;
        (6, Some("\\ufffd".to_owned()))
    }

    /// A backslash that escapes nothing is meant as one.
    fn unknown(&mut self) -> (usize, Option<String>) {
        self.repairs.characters += 1;
        (1, Some("\\\\".to_owned()))
    }

    fn push(&mut self, text: &str) {
        self.deep.as_mut().unwrap_or(&mut self.out).push_str(text);
    }
}

/// The UTF-16 unit of the escape at `at`, if there is one.
fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| {
        Some(unit * 16 + char::from(*digit).to_digit(16)?)
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
}

/// Whether a word was meant as a number that JSON has not.
fn is_bad_number(word: &str) -> bool {
    let numeric = word.trim_start_matches(['+', '-']);
    let meant = numeric.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || matches!(numeric, "NaN" | "Infinity" | "inf" | "nan");
    meant && serde_json::from_str::<f64>(word).is_err()
}

fn push_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(text: &str, expected: &Value, told: &str) {
        let mut repairs = Repairs::default();
        let mended = repair(text, &mut repairs).unwrap();
        let value: Value = serde_json::from_str(&mended).expect(text);
        assert_eq!(value, *expected, "{text}");
        assert!(repairs.to_string().contains(told), "{text}: {repairs}");
    }

    #[test]
    fn what_parsers_refuse_is_mended() {
        check(
            r#"["\ud83d", "\ud83d\ude00", "\ude00x", "\\ud83d", "\ud83d\ud83d\ude00"]"#,
            &json!(["\u{fffd}", "😀", "\u{fffd}x", "\\ud83d", "\u{fffd}😀"]),
            "lone surrogates replaced by U+FFFD (3)",
        );
        check(
            r#"{"a": 1e400, "b": [-1e999,2, NaN], "c": -Infinity, "d": 007, "e": 1.5e3, "f": "1e400"}"#,
            &json!({"a": "1e400", "b": ["-1e999", 2, "NaN"], "c": "-Infinity", "d": "007", "e": 1500.0, "f": "1e400"}),
            "numbers out of range kept as text (5)",
        );
        check(
            "[\"a\tb\", \"\\x41\", \"\\u12\"]",
            &json!(["a\tb", "\\x41", "\\u12"]),
            "bad characters or escapes in texts mended (3)",
        );
    }

    #[test]
    fn what_lies_deep_is_kept_as_text() {
        let deep = r#"{"k\u0065y": ["se\u0063ret", 1e400]}"#;
        let text = format!(
            "{}{deep},7{}",
            "[".repeat(MAX_LEVELS),
            "]".repeat(MAX_LEVELS)
        );
        let mut expected = json!([r#"{"key": ["secret", "1e400"]}"#, 7]);
        for _ in 1..MAX_LEVELS {
            expected = json!([expected]);
        }
        check(
            &text,
            &expected,
            "nested deeper than 120 levels, the rest kept as text (1)",
        );
        // However deep, no stack is needed.
        let text = format!("{}1{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert!(repair(&text, &mut Repairs::default()).is_some());
    }

    proptest::proptest! {
        /// Whatever the text, the repair ends, JSON keeps its meaning, and a second repair has
        /// nothing to do.
        #[test]
        fn repairing_is_safe(pieces in proptest::collection::vec(proptest::sample::select(vec![
            "{", "}", "[", "]", ":", ",", "\"", "\\", "\\u", "\\ud83d", "\\ude00", "\\u00e9", "é", "😀",
            "1", "-", "1e400", "0.5", "NaN", "true", "\t", "\"a\"", "\"k\":", " ", "\u{1}",
        ]), 0..40)) {
            let text = pieces.concat();
            let mended = repair(&text, &mut Repairs::default());
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                let meant = mended.as_deref().map(|mended| serde_json::from_str::<Value>(mended).unwrap());
                proptest::prop_assert_eq!(meant.unwrap_or_else(|| value.clone()), value);
            }
            if let Some(mended) = mended {
                proptest::prop_assert_eq!(repair(&mended, &mut Repairs::default()), None);
            }
        }
    }

    #[test]
    fn what_is_not_json_stays_so() {
        for text in [
            "hello",
            "{\"a\": 1",
            "\"abc",
            "",
            "{\"a\": \"\\",
            "nothing 3",
            "]]]}",
        ] {
            let mended = repair(text, &mut Repairs::default()).unwrap_or_else(|| text.to_owned());
            assert!(serde_json::from_str::<Value>(&mended).is_err(), "{mended}");
        }
        assert_eq!(
            repair(r#"{"a": [1, "\u00e9"]}"#, &mut Repairs::default()),
            None
        );
    }
}
