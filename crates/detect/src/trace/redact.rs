//! Takes secrets out of texts before they leave the process.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Fewer characters than this are no secret: they would be found everywhere.
const SHORTEST: usize = 4;

/// Fewer characters than this of base64 say too little to be told from chance.
const SHORTEST_CORE: usize = 6;

/// Why a list of secrets was refused. The message never repeats the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedactError {
    /// The secret at `index` has fewer than four characters.
    #[error("secret {} has fewer than {SHORTEST} characters and would be found everywhere", index + 1)]
    TooShort {
        /// Its place in the list, from 0.
        index: usize,
    },
    /// The secret at `index` is a part of what would replace it.
    #[error("secret {} is a part of `{REDACTED}`, which stands for what was taken out", index + 1)]
    InPlaceholder {
        /// Its place in the list, from 0.
        index: usize,
    },
    /// There are more secrets than one search can hold.
    #[error("too many secrets for one search")]
    TooMany,
}

/// Replaces secrets by [`REDACTED`] wherever they appear, in the forms in which they travel:
/// as they are, percent-encoded, in base64 (standard and URL-safe, padded or not, also inside the
/// base64 of a longer text such as `user:password`), and escaped as in JSON, once and twice.
///
/// Redact first and shorten afterwards: half a secret is not recognised.
///
/// Not covered: hexadecimal and other encodings, letters that need no percent sign but have one,
/// percent-encoding of percent-encoding, changed case, compression, a secret spread over several
/// texts. In the base64 of a longer text, a few bits of the first and last byte may stay, and a
/// secret of less than six bytes is only found when it stands alone.
///
/// ```
/// use proofhouse_detect::Redactor;
///
/// let redactor = Redactor::new(["s3cret&co"]).unwrap();
/// assert_eq!(redactor.redact("key=s3cret&co;"), "key=[redacted];");
/// assert_eq!(redactor.redact("?key=s3cret%26co"), "?key=[redacted]");
/// // base64 of "me:s3cret&co"
/// assert_eq!(redactor.redact("Basic bWU6czNjcmV0JmNv"), "Basic bWU6[redacted]");
/// assert!(Redactor::new(["abc"]).is_err());
/// ```
#[derive(Clone)]
pub struct Redactor {
    search: Option<AhoCorasick>,
    /// Whether a secret could be written as a number.
    numeric: bool,
}

impl fmt::Debug for Redactor {
    // The derived form would print the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = self.search.as_ref().map_or(0, AhoCorasick::patterns_len);
        f.debug_struct("Redactor")
            .field("forms", &forms)
            .finish_non_exhaustive()
    }
}

impl Redactor {
    /// Compiles all forms of all secrets into one search.
    ///
    /// # Errors
    ///
    /// When a secret is shorter than four characters, or a part of [`REDACTED`].
    pub fn new<I>(secrets: I) -> Result<Self, RedactError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let mut forms = BTreeSet::new();
        for (index, secret) in secrets.into_iter().enumerate() {
            let secret = secret.as_ref();
            if secret.chars().count() < SHORTEST {
                return Err(RedactError::TooShort { index });
            }
            if REDACTED.contains(secret) {
                return Err(RedactError::InPlaceholder { index });
            }
            add_forms(secret, &mut forms);
        }
        if forms.is_empty() {
            return Ok(Self {
                search: None,
                numeric: false,
            });
        }
        let numeric = forms
            .iter()
            .any(|form| form.bytes().all(|b| b"0123456789.eE+-".contains(&b)));
        // All overlapping matches are wanted, so that of two secrets that overlap neither leaves an end.
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(forms)
            .map_err(|_| RedactError::TooMany)?;
        Ok(Self {
            search: Some(search),
            numeric,
        })
    }

    /// The text without secrets; borrowed when there was none in it.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(search) = &self.search else {
            return Cow::Borrowed(text);
        };
        // What is put in may make a new secret with what stands around it, hence more than one pass.
        let mut result = Cow::Borrowed(text);
        for _ in 0..3 {
            match replace(search, &result) {
                Some(replaced) => result = Cow::Owned(replaced),
                None => {
                    return if shows_when_escaped(search, &result) {
                        Cow::Borrowed(REDACTED)
                    } else {
                        result
                    };
                }
            }
        }
        if search.is_match(&*result) || shows_when_escaped(search, &result) {
            return Cow::Borrowed(REDACTED);
        }
        result
    }

    /// The value with all texts redacted: values and keys, and numbers that spell a secret.
    ///
    /// ```
    /// use proofhouse_detect::Redactor;
    /// use serde_json::json;
    ///
    /// let redactor = Redactor::new(["hunter2", "4711"]).unwrap();
    /// assert_eq!(
    ///     redactor.redact_value(&json!({"x-hunter2": [true, "is hunter2"], "pin": 4711})),
    ///     json!({"x-[redacted]": [true, "is [redacted]"], "pin": "[redacted]"}),
    /// );
    /// ```
    #[must_use]
    pub fn redact_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redact(text).into_owned()),
            Value::Number(number) if self.hides(number) => Value::String(REDACTED.to_owned()),
            Value::Array(items) => items.iter().map(|item| self.redact_value(item)).collect(),
            Value::Object(map) => {
                let mut keys = RedactedKeys::default();
                map.iter()
                    .map(|(key, value)| {
                        (
                            keys.redact(self, key).into_owned(),
                            self.redact_value(value),
                        )
                    })
                    .collect()
            }
            other => other.clone(),
        }
    }

    /// Whether the digits of `number` hold a secret.
    fn hides(&self, number: &serde_json::Number) -> bool {
        self.numeric
            && self
                .search
                .as_ref()
                .is_some_and(|search| search.is_match(&number.to_string()))
    }
}

/// Keys that become equal by redaction are numbered, so that no entry hides another.
#[derive(Default)]
struct RedactedKeys {
    /// How often each redacted key came.
    counts: BTreeMap<String, usize>,
}

impl RedactedKeys {
    fn redact<'k>(&mut self, redactor: &Redactor, key: &'k str) -> Cow<'k, str> {
        let text = redactor.redact(key);
        if text == key {
            return Cow::Borrowed(key);
        }
        let count = self.counts.entry(text.clone().into_owned()).or_default();
        *count += 1;
        if *count == 1 {
            return Cow::Owned(text.into_owned());
        }
        Cow::Owned(format!("{text} ({count})"))
    }
}

/// A value that is redacted while it is written, without a copy of what is clean.
pub(crate) struct RedactedValue<'a>(pub(crate) &'a Value, pub(crate) &'a Redactor);

impl Serialize for RedactedValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(value, redactor) = *self;
        match value {
            Value::String(text) => serializer.serialize_str(&redactor.redact(text)),
            Value::Number(number) if redactor.hides(number) => serializer.serialize_str(REDACTED),
            Value::Array(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(&RedactedValue(item, redactor))?;
                }
                seq.end()
            }
            Value::Object(entries) => {
                let mut keys = RedactedKeys::default();
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(
                        &keys.redact(redactor, key),
                        &RedactedValue(value, redactor),
                    )?;
                }
                map.end()
            }
            other => other.serialize(serializer),
        }
    }
}

/// The text with every match replaced, overlapping ones as one; `None` when there is none.
fn replace(search: &AhoCorasick, text: &str) -> Option<String> {
    // Matches come in the order of their ends, so a long one may swallow ranges already seen.
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for found in search.find_overlapping_iter(text) {
        let (mut start, end) = (found.start(), found.end());
        while let Some(&(last_start, last_end)) = ranges.last() {
            if last_end <= start {
                break;
            }
            start = start.min(last_start);
            ranges.pop();
        }
        ranges.push((start, end));
    }
    if ranges.is_empty() {
        return None;
    }
    let mut result = String::with_capacity(text.len());
    let mut copied = 0;
    for (start, end) in ranges {
        result.push_str(text.get(copied..start).unwrap_or_default());
        result.push_str(REDACTED);
        copied = end;
    }
    result.push_str(text.get(copied..).unwrap_or_default());
    Some(result)
}

/// Whether the text spells a secret once it is escaped as JSON, as the letters after `\n` may.
fn shows_when_escaped(search: &AhoCorasick, text: &str) -> bool {
    let escaped = |b: u8| b < 0x20 || b == b'"' || b == b'\\';
    text.bytes().any(escaped) && search.is_match(&escape(text, false))
}

fn add_forms(secret: &str, forms: &mut BTreeSet<String>) {
    forms.insert(secret.to_owned());
    for style in [
        Percent::Strict,
        Percent::Component,
        Percent::Uri,
        Percent::Form,
    ] {
        forms.insert(percent(secret, style, true));
        forms.insert(percent(secret, style, false));
    }
    for ascii in [false, true] {
        let once = escape(secret, ascii);
        forms.insert(escape(&once, ascii));
        forms.insert(once.replace('/', "\\/"));
        forms.insert(once);
    }
    for alphabet in [BASE64, BASE64_URL] {
        let padded = base64(secret.as_bytes(), alphabet);
        forms.insert(padded.trim_end_matches('=').to_owned());
        forms.insert(percent(&padded, Percent::Strict, true));
        forms.insert(percent(&padded, Percent::Strict, false));
        forms.insert(padded);
        for before in 0..3 {
            let core = base64_core(secret.as_bytes(), before, alphabet);
            if core.len() >= SHORTEST_CORE {
                forms.insert(core);
            }
        }
    }
}

/// Who leaves which characters as they are.
#[derive(Clone, Copy, PartialEq)]
enum Percent {
    /// RFC 3986: only the unreserved.
    Strict,
    /// `encodeURIComponent`.
    Component,
    /// `encodeURI`.
    Uri,
    /// Forms: a space is a plus.
    Form,
}

fn percent(text: &str, style: Percent, upper: bool) -> String {
    let mut result = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        let kept: &[u8] = match style {
            Percent::Strict => b"-._~",
            Percent::Component => b"-._~!'()*",
            Percent::Uri => b"-._~!'()*;,/?:@&=+$#",
            Percent::Form => b"-._*",
        };
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            result.push(char::from(byte));
        } else if byte == b' ' && style == Percent::Form {
            result.push('+');
        } else if upper {
            result.push_str(&format!("%{byte:02X}"));
        } else {
            result.push_str(&format!("%{byte:02x}"));
        }
    }
    result
}

/// The text between the quotes of its JSON form; `ascii` writes everything else as `\u`.
fn escape(text: &str, ascii: bool) -> String {
    let quoted = Value::from(text).to_string();
    let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    if !ascii || inner.is_ascii() {
        return inner.to_owned();
    }
    let mut result = String::with_capacity(inner.len());
    for char in inner.chars() {
        if char.is_ascii() {
            result.push(char);
        } else {
            for unit in char.encode_utf16(&mut [0; 2]) {
                result.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    result
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut result = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            if index <= chunk.len() {
                let six = (bits >> (18 - 6 * index)) & 0x3f;
                result.push(char::from(alphabet[six as usize]));
            } else {
                result.push('=');
            }
        }
    }
    result
}

/// The characters that the bytes alone decide when `before` (modulo 3) others come first and any
/// number follows.
fn base64_core(bytes: &[u8], before: usize, alphabet: &[u8; 64]) -> String {
    let mut shifted = vec![0; before];
    shifted.extend_from_slice(bytes);
    let encoded = base64(&shifted, alphabet);
    // A character that shares bits with a byte outside may be any; so it is left out.
    let first = (before * 8).div_ceil(6);
    let last = shifted.len() * 8 / 6;
    encoded.get(first..last).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_found() {
        let secret = "p\u{e4}ss \"w/or+d\\\n";
        let redactor = Redactor::new([secret]).unwrap();
        for form in [
            secret,
            "p%C3%A4ss%20%22w%2For%2Bd%5C%0A",
            "p%c3%a4ss%20%22w%2for%2bd%5c%0a",
            "p%C3%A4ss+%22w%2For%2Bd%5C%0A",
            "p%C3%A4ss%20%22w/or+d%5C%0A",
            r#"pass"#,
            r#"p\u00e4ss \"w/or+d\\\n"#,
            r#"p\u00e4ss \"w\/or+d\\\n"#,
            "p\u{e4}ss \\\"w/or+d\\\\\\n",
            "p\u{e4}ss \\\\\\\"w/or+d\\\\\\\\\\\\n",
            "cMOkc3MgIncvb3IrZFwK",
        ] {
            let expected = if form == "pass" {
                "<pass>"
            } else {
                "<[redacted]>"
            };
            assert_eq!(redactor.redact(&format!("<{form}>")), expected, "{form}");
        }
    }

    #[test]
    fn base64_is_found_at_every_offset_and_with_any_neighbours() {
        let secret = "hunter2!";
        let redactor = Redactor::new([secret]).unwrap();
        for before in ["", "a", "ab", "abc", "abcd", "user:"] {
            for after in ["", "x", "xy", "xyz", "\u{1F600}"] {
                for alphabet in [BASE64, BASE64_URL] {
                    let text = base64(format!("{before}{secret}{after}").as_bytes(), alphabet);
                    let redacted = redactor.redact(&text);
                    assert!(redacted.contains(REDACTED), "{before} {after}: {text}");
                }
            }
        }
        assert_eq!(redactor.redact("aHVudGVyMiE="), REDACTED);
        assert_eq!(redactor.redact("aHVudGVyMiE"), REDACTED);
        assert_eq!(redactor.redact("aHVudGVyMiE%3D"), REDACTED);
    }

    #[test]
    fn overlapping_secrets_leave_no_ends() {
        let redactor = Redactor::new(["abcd", "cdef", "xabcdy"]).unwrap();
        assert_eq!(redactor.redact("-abcdef-"), "-[redacted]-");
        assert_eq!(redactor.redact("-xabcdy-"), "-[redacted]-");
        assert_eq!(redactor.redact("abcdabcd"), "[redacted][redacted]");
        assert_eq!(redactor.redact("clean"), "clean");
    }

    #[test]
    fn the_placeholder_never_completes_a_secret() {
        let redactor = Redactor::new(["hunter2", "x[red", "acted]y", "[redacted]["]).unwrap();
        for text in [
            "xhunter2",
            "hunter2y",
            "xhunter2y",
            "hunter2hunter2",
            "hunter2[",
        ] {
            let redacted = redactor.redact(text);
            for secret in ["hunter2", "x[red", "acted]y", "[redacted]["] {
                assert!(!redacted.contains(secret), "{text} gives {redacted}");
            }
        }
    }

    #[test]
    fn what_escaping_spells_is_found_too() {
        let redactor = Redactor::new(["nabc"]).unwrap();
        assert_eq!(redactor.redact("\nabc"), REDACTED);
        assert_eq!(redactor.redact("\n abc"), "\n abc");
    }

    #[test]
    fn keys_that_become_equal_stay_apart() {
        let redactor = Redactor::new(["hunter2", "s3cr3t"]).unwrap();
        let value = serde_json::json!({"hunter2": 1, "s3cr3t": 2, "plain": 3});
        let expected = serde_json::json!({"[redacted]": 1, "[redacted] (2)": 2, "plain": 3});
        assert_eq!(redactor.redact_value(&value), expected);
        let written = serde_json::to_value(RedactedValue(&value, &redactor)).unwrap();
        assert_eq!(written, expected);
    }

    #[test]
    fn bad_secrets_are_refused_and_never_printed() {
        assert_eq!(
            Redactor::new(["good one", "abc"]).unwrap_err(),
            RedactError::TooShort { index: 1 }
        );
        assert_eq!(
            Redactor::new([""]).unwrap_err(),
            RedactError::TooShort { index: 0 }
        );
        assert_eq!(
            Redactor::new(["redact"]).unwrap_err(),
            RedactError::InPlaceholder { index: 0 }
        );
        assert!(Redactor::new(["\u{e4}\u{f6}\u{fc}\u{df}"]).is_ok());
        let redactor = Redactor::new(["hunter2"]).unwrap();
        assert!(!format!("{redactor:?}").contains("hunter2"));
        assert_eq!(
            Redactor::new(Vec::<String>::new()).unwrap().redact("all"),
            "all"
        );
    }
}
