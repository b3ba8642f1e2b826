//! Regular expressions and JSONPaths that are compiled at most once and live with the model.

use std::sync::{Arc, OnceLock};

use proofhouse_expr::re2::{self, Re2Error, Re2Pattern};
use serde_json_path::JsonPath;

/// A regular expression in RE2 syntax, compiled on first use and then kept.
///
/// Clones share the compiled form. Two patterns are equal when their sources are.
#[derive(Clone)]
pub struct RegexPattern {
    source: Arc<str>,
    compiled: Arc<OnceLock<Result<Re2Pattern, Re2Error>>>,
}

impl RegexPattern {
    /// A pattern that is not compiled yet.
    ///
    /// ```
    /// use proofhouse_oatf::{MatchBudget, RegexPattern};
    /// let pattern = RegexPattern::new("id_rsa|passwd");
    /// let budget = &mut MatchBudget::default();
    /// assert_eq!(pattern.regex().unwrap().is_match("cat /etc/passwd", budget), Ok(true));
    /// assert!(RegexPattern::new("(?=look)").regex().is_err());
    /// ```
    #[must_use]
    pub fn new(source: impl Into<Arc<str>>) -> Self {
        Self {
            source: source.into(),
            compiled: Arc::default(),
        }
    }

    /// The expression as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The expression in the syntax of the `regex` crate for bytes, for tools that analyse it.
    ///
    /// # Errors
    ///
    /// Returns why the expression is not RE2.
    pub fn engine_pattern(&self) -> Result<String, Re2Error> {
        re2::translate(&self.source)
    }

    /// The compiled expression.
    ///
    /// # Errors
    ///
    /// Returns why the expression is not RE2, or that it is too large.
    pub fn regex(&self) -> Result<&Re2Pattern, &Re2Error> {
        self.compiled
            .get_or_init(|| Re2Pattern::compile(&self.source))
            .as_ref()
    }
}

impl std::fmt::Debug for RegexPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RegexPattern({:?})", self.source)
    }
}

impl PartialEq for RegexPattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for RegexPattern {}

impl From<&str> for RegexPattern {
    fn from(source: &str) -> Self {
        Self::new(source)
    }
}

impl From<String> for RegexPattern {
    fn from(source: String) -> Self {
        Self::new(source)
    }
}

/// An extractor's selector: a JSONPath or a regular expression, compiled on first use.
#[derive(Clone)]
pub struct Selector {
    regex: RegexPattern,
    json_path: Arc<OnceLock<Result<JsonPath, JsonPathError>>>,
}

impl Selector {
    /// A selector that is not compiled yet; the extractor's type says which of the two it is.
    #[must_use]
    pub fn new(source: impl Into<Arc<str>>) -> Self {
        Self {
            regex: RegexPattern::new(source),
            json_path: Arc::default(),
        }
    }

    /// The selector as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    /// The selector as a regular expression that may not compile.
    pub(crate) fn as_regex(&self) -> &RegexPattern {
        &self.regex
    }

    /// The selector as a regular expression.
    ///
    /// # Errors
    ///
    /// Returns why it is not one.
    pub fn regex(&self) -> Result<&Re2Pattern, &Re2Error> {
        self.regex.regex()
    }

    /// The selector as an RFC 9535 JSONPath.
    ///
    /// # Errors
    ///
    /// Returns why it is not one.
    pub fn json_path(&self) -> Result<&JsonPath, &JsonPathError> {
        self.json_path
            .get_or_init(|| parse_json_path(self.as_str()))
            .as_ref()
    }
}

impl From<&str> for Selector {
    fn from(source: &str) -> Self {
        Self::new(source)
    }
}

impl From<String> for Selector {
    fn from(source: String) -> Self {
        Self::new(source)
    }
}

/// Why a text is not taken as a JSONPath.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPathError {
    /// It is too long.
    #[error("longer than {MAX_BYTES} bytes")]
    TooLong,
    /// It is nested too deep.
    #[error("nested deeper than {MAX_NESTING} levels")]
    TooDeep,
    /// Each descendant segment multiplies the nodes visited by the depth of the message.
    #[error("more than {MAX_DESCENDANTS} descendant segments (`..`)")]
    TooManyDescendants,
    /// Such a function would be judged by another dialect than RE2 and without a time limit.
    #[error("the functions `match` and `search` are not supported; extract with a regex instead")]
    RegexFunction,
    /// An escape lacks its digits.
    #[error("`\\u` needs four hexadecimal digits")]
    BrokenEscape,
    /// It breaks the grammar of RFC 9535.
    #[error("{0}")]
    Syntax(String),
}

impl JsonPathError {
    /// Whether it is a JSONPath, and only a limit of ours stands against it.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        match self {
            Self::TooLong | Self::TooDeep | Self::TooManyDescendants | Self::RegexFunction => true,
            Self::BrokenEscape | Self::Syntax(_) => false,
        }
    }
}

const MAX_BYTES: usize = 4096;
const MAX_NESTING: usize = 32;
const MAX_DESCENDANTS: usize = 4;

/// Parses a JSONPath, refusing what could exhaust the stack of a recursive parser.
fn parse_json_path(source: &str) -> Result<JsonPath, JsonPathError> {
    if source.len() > MAX_BYTES {
        return Err(JsonPathError::TooLong);
    }
    let mut depth = 0usize;
    for byte in source.bytes() {
        match byte {
            b'[' | b'(' | b'!' => depth += 1,
            b']' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(JsonPathError::TooDeep);
        }
    }
    if source.matches("..").count() > MAX_DESCENDANTS {
        return Err(JsonPathError::TooManyDescendants);
    }
    if has_broken_escape(source) {
        return Err(JsonPathError::BrokenEscape);
    }
    let path = JsonPath::parse(source).map_err(|error| JsonPathError::Syntax(error.to_string()))?;
    if calls_regex_function(source) {
        return Err(JsonPathError::RegexFunction);
    }
    Ok(path)
}

/// Whether a JSONPath calls `match` or `search`. Outside its texts a bracket follows a name only where a function is
/// called.
fn calls_regex_function(path: &str) -> bool {
    let bytes = path.as_bytes();
    let mut quote = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (quote, byte) {
            (Some(_), b'\\') => at += 1,
            (Some(mark), _) if byte == mark => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(') => {
                let before = bytes[..at].trim_ascii_end();
                let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let length = before.iter().rev().take_while(|byte| is_name(byte)).count();
                if matches!(&before[before.len() - length..], b"match" | b"search") {
                    return true;
                }
            }
            _ => {}
        }
        at += 1;
    }
    false
}

/// Whether a `\u` lacks its digits, or nothing follows them. The parser panics on a text that ends
/// inside such an escape, and no valid path holds one.
fn has_broken_escape(source: &str) -> bool {
    source.match_indices("\\u").any(|(at, _)| {
        let rest = source.as_bytes().get(at + 2..).unwrap_or_default();
        rest.len() < 5 || !rest[..4].iter().all(u8::is_ascii_hexdigit)
    })
}

impl std::fmt::Debug for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Selector({:?})", self.as_str())
    }
}

impl PartialEq for Selector {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Selector {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_what_was_compiled() {
        let pattern = RegexPattern::new("a+");
        let clone = pattern.clone();
        let first: *const Re2Pattern = pattern.regex().unwrap();
        assert!(std::ptr::eq(first, clone.regex().unwrap()));
        assert_eq!(pattern, clone);
        assert_ne!(pattern, RegexPattern::new("b+"));
    }

    #[test]
    fn selectors_are_either() {
        let selector = Selector::new("$.a[0]");
        assert!(selector.json_path().is_ok());
        assert!(Selector::new("$.a[").json_path().is_err());
        assert!(Selector::new("(a)").regex().is_ok());
    }

    #[test]
    fn a_selector_may_end_anywhere() {
        for whole in [
            r#"$["\u0041\uD83D\uDE00\n"]"#,
            r"$['\u0041\'\\']",
            r#"$[?@.a == "\uD83D\uDE00" && length(@.b) > 1.5e3]"#,
            r"$..a[1:2:3, 'x', *].b[?length(@.c) == 'd.*']",
        ] {
            assert!(Selector::new(whole).json_path().is_ok(), "{whole}");
            for (end, _) in whole.char_indices().skip(1) {
                assert!(Selector::new(&whole[..end]).json_path().is_err() || end < whole.len());
            }
        }
        for broken in [
            r#"$["\u"#,
            r"$['\u",
            r#"$[?@.a == "\u"#,
            r#"$["\uD83D\ud"#,
            r#"$["\uD83D"#,
        ] {
            assert!(Selector::new(broken).json_path().is_err(), "{broken}");
        }
    }

    #[test]
    fn hostile_selectors_are_refused_without_recursion() {
        for hostile in [
            "[".repeat(100_000),
            format!("$[?{}@.a]", "!(".repeat(1000)),
            "$".repeat(5000),
            format!("${}", "..*".repeat(9)),
        ] {
            assert!(Selector::new(hostile.as_str()).json_path().is_err());
        }
    }
}
