//! Secrets: values that are sent and never shown.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{
    GeneralPurpose, STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD,
};
use data_encoding::HEXLOWER;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// What stands where a secret would be.
pub const MASK: &str = "[redacted]";

/// Shorter values are not looked for: replacing every `1` in a result would destroy it and hide nothing.
const MIN_BYTES: usize = 4;

/// The same of what is left of a secret within a text in base64.
const MIN_INSIDE: usize = 8;

/// Something that may hold secrets. It can be used, but not shown.
///
/// ```
/// use proofhouse_manifest::interpolate::Sealed;
/// let header = Sealed::new("Bearer sk-123");
/// assert_eq!(format!("{header:?}"), "Sealed([redacted])");
/// assert_eq!(*header.expose(), "Bearer sk-123");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed<T>(T);

impl<T> Sealed<T> {
    /// Seals a value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, for sending it to where it belongs.
    #[must_use]
    pub fn expose(&self) -> &T {
        &self.0
    }

    /// The value given away.
    #[must_use]
    pub fn into_exposed(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Sealed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({MASK})")
    }
}

/// The secrets of one task, and how to take them out of what is shown.
///
/// A secret is found as it is, in upper and lower case, reversed, percent-encoded, in hex, and in base64, also within a
/// longer text.
///
/// ```
/// use proofhouse_manifest::interpolate::Secrets;
/// let mut secrets = Secrets::default();
/// secrets.add("p@ss/word");
/// assert_eq!(secrets.redact("p@ss/word or p%40ss%2Fword"), "[redacted] or [redacted]");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Every form of every secret, longest first, so that no form hides a longer one. Shared, because
    /// every call has them.
    forms: Arc<Vec<String>>,
}

impl Secrets {
    /// Adds a secret. Values of less than four bytes are left out.
    pub fn add(&mut self, secret: &str) {
        if secret.len() < MIN_BYTES {
            return;
        }
        let encoded = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
        let component = super::url::encode(secret);
        let json = Value::from(secret).to_string();
        let escaped = json[1..json.len() - 1].to_owned();
        let mut forms = vec![
            secret.to_owned(),
            encoded.to_lowercase(),
            encoded,
            component.replace("%20", "+"),
            component,
            escaped,
        ];
        let hex = HEXLOWER.encode(secret.as_bytes());
        forms.extend([secret.to_uppercase(), secret.to_lowercase()]);
        forms.extend([secret.chars().rev().collect(), hex.to_uppercase(), hex]);
        for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
            forms.push(engine.encode(secret));
        }
        forms.extend(
            [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD]
                .into_iter()
                .flat_map(|engine| {
                    (0..3).filter_map(move |before| within_base64(engine, secret, before))
                }),
        );
        self.add_forms(forms.into_iter().filter(|form| !form.is_empty()));
    }

    fn add_forms(&mut self, forms: impl Iterator<Item = String>) {
        let known = Arc::make_mut(&mut self.forms);
        for form in forms {
            if !known.contains(&form) {
                known.push(form);
            }
        }
        known.sort_by_key(|form| std::cmp::Reverse(form.len()));
    }

    /// Adds every text and number of a value.
    pub fn add_value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Number(number) => self.add(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.add_value(item)),
            Value::Object(map) => map.values().for_each(|item| self.add_value(item)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Adds the secrets of another.
    pub fn extend(&mut self, other: &Self) {
        if self.is_empty() {
            self.forms = Arc::clone(&other.forms);
        } else if !other.is_empty() {
            self.add_forms(other.forms.iter().cloned());
        }
    }

    /// Whether there is nothing to hide.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// The text without secrets in it.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        self.cleaned(text).unwrap_or_else(|| text.to_owned())
    }

    /// The text without secrets in it, if there were any.
    fn cleaned(&self, text: &str) -> Option<String> {
        let mut clean: Option<String> = None;
        for form in self.forms.iter() {
            let text = clean.as_deref().unwrap_or(text);
            // Most texts of a result are shorter than a secret, which needs no search.
            if form.len() <= text.len() && text.contains(form.as_str()) {
                clean = Some(text.replace(form.as_str(), MASK));
            }
        }
        clean
    }

    /// The value without secrets in it: in texts, in keys, and as numbers.
    #[must_use]
    pub fn redact_value(&self, mut value: Value) -> Value {
        if !self.is_empty() {
            self.clean_value(&mut value);
        }
        value
    }

    /// In place, since there is nothing to change in most values.
    fn clean_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(clean) = self.cleaned(text) {
                    *text = clean;
                }
            }
            Value::Number(number) => {
                if self.forms.contains(&number.to_string()) {
                    *value = MASK.into();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            Value::Object(map) => {
                map.values_mut().for_each(|item| self.clean_value(item));
                if map.keys().any(|key| self.cleaned(key).is_some()) {
                    let entries = std::mem::take(map).into_iter();
                    *map = entries
                        .map(|(key, item)| (self.redact(&key), item))
                        .collect();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// How a secret reads in the middle of a text in base64, with so many bytes of a group before it. The letters that it
/// shares with its neighbours are left out; what would be too short to tell is not looked for.
fn within_base64(engine: &GeneralPurpose, secret: &str, before: usize) -> Option<String> {
    let whole = engine.encode([&[0; 2][..before], secret.as_bytes()].concat());
    let (shared, bits) = ([0, 2, 3][before], (before + secret.len()) * 8);
    let inside = whole.get(shared..bits / 6)?;
    (inside.len() >= MIN_INSIDE).then(|| inside.to_owned())
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} forms)", self.forms.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_is_found() {
        let mut secrets = Secrets::default();
        secrets.add("to ken/ü\"1");
        for text in [
            "to ken/ü\"1",
            "to%20ken%2F%C3%BC%221",
            "to%20ken%2f%c3%bc%221",
            "to+ken%2F%C3%BC%221",
            "to ken/ü\\\"1",
            "dG8ga2VuL8O8IjE=",
            "dG8ga2VuL8O8IjE",
        ] {
            assert_eq!(
                secrets.redact(&format!("<{text}>")).matches(MASK).count(),
                1,
                "{text}"
            );
            assert!(!secrets.redact(text).contains("ken"), "{text}");
        }
    }

    #[test]
    fn a_secret_is_found_in_other_dress() {
        let secret = "sk-Live_9f>3?Ab~Z";
        let mut secrets = Secrets::default();
        secrets.add(secret);
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        for text in [
            secret.to_uppercase(),
            secret.to_lowercase(),
            secret.chars().rev().collect(),
            hex.to_uppercase(),
            hex,
        ] {
            assert_eq!(
                secrets.redact(&format!("<{text}>")),
                format!("<{MASK}>"),
                "{text}"
            );
        }
        for before in ["", "x", "xy", "xyz", "Bearer "] {
            for after in ["", "x", "xy", "xyz"] {
                for engine in [STANDARD, URL_SAFE] {
                    let text = engine.encode(format!("{before}{secret}{after}"));
                    let shown = secrets.redact(&text);
                    assert!(shown.contains(MASK), "{before}|{after}: {text}");
                    // What is left of it are the letters that it shares with its neighbours.
                    assert!(shown.len() < MASK.len() + 16, "{shown}");
                }
            }
        }
        assert_eq!(secrets.redact("skLive 736b"), "skLive 736b");
    }

    #[test]
    fn values_are_cleaned_everywhere() {
        let mut secrets = Secrets::default();
        secrets.add_value(&json!({"a": ["token-1", 123_456], "b": true, "c": "x"}));
        let value =
            json!({"token-1": ["is token-1", 123_456, 7, "x", true, null], "kept": {"token-1": 1}});
        assert_eq!(
            secrets.redact_value(value),
            json!({
                "[redacted]": ["is [redacted]", "[redacted]", 7, "x", true, null],
                "kept": {"[redacted]": 1},
            })
        );
        assert!(!format!("{secrets:?}").contains("token"));
    }

    #[test]
    fn a_secret_within_a_longer_one_leaves_nothing_behind() {
        let mut secrets = Secrets::default();
        secrets.add("abcd");
        secrets.add("abcd-efgh");
        assert_eq!(secrets.redact("abcd-efgh abcd"), "[redacted] [redacted]");
    }
}
