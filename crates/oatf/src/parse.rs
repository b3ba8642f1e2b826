//! `parse`: from text to the model, with every reason why not.

use std::collections::HashSet;
use std::sync::Arc;

use proofhouse_source::{Diagnostic, ReadError, ReadErrorKind, ReadLimits, Source};

use crate::decode::Decoder;
use crate::error::{ParseError, ParseErrorKind};
use crate::model::{
    Attack, Condition, Document, Extractor, Indicator, MatchPredicate, Phase, ResponseEntry,
    Trigger,
};

/// Parses a document with the default [`ReadLimits`]. No rules are checked here but those of the
/// types; see [`validate`](crate::validate).
///
/// ```
/// let text = "oatf: \"0.1\"\nattack:\n  severty: high\n  execution: {mode: mcp_server, state: {}}\n";
/// let errors = proofhouse_oatf::parse(text).unwrap_err();
/// assert_eq!(errors[0].line(), Some(3));
/// assert_eq!(errors[0].help.as_deref(), Some("did you mean `severity`?"));
/// ```
///
/// # Errors
///
/// Returns every error, ordered by place.
pub fn parse(text: &str) -> Result<Document, Vec<ParseError>> {
    parse_with(text, &ReadLimits::default())
}

/// Parses a document with limits of the caller's.
///
/// # Errors
///
/// Returns every error, ordered by place.
pub fn parse_with(text: &str, limits: &ReadLimits) -> Result<Document, Vec<ParseError>> {
    match parse_leniently(text, limits) {
        Understood {
            document: Some(document),
            errors,
            ..
        } if errors.is_empty() => Ok(document),
        understood => Err(understood.errors),
    }
}

/// As much of a text as could be understood, and why not more.
#[derive(Default)]
pub(crate) struct Understood {
    pub(crate) document: Option<Document>,
    pub(crate) errors: Vec<ParseError>,
    /// Paths of the keys that misspelled ones were probably meant to be.
    pub(crate) misspelled: Vec<String>,
}

/// Parses as much of a document as can be understood.
pub(crate) fn parse_leniently(text: &str, limits: &ReadLimits) -> Understood {
    let (source, read_errors) = Source::read_leniently(text, limits);
    let mut errors: Vec<ParseError> = read_errors.into_iter().map(from_read_error).collect();
    let Some(source) = source else {
        return Understood {
            errors,
            ..Understood::default()
        };
    };
    let mut decoder = Decoder::new(&source);
    let document = decoder.document(source.root());
    decoder.note_key_order(source.root());
    let Decoder {
        errors: decode_errors,
        notes,
        misspelled,
        ..
    } = decoder;
    // An alias is refused once, not also as a value of the wrong type.
    let refused: HashSet<usize> = errors.iter().filter_map(ParseError::offset).collect();
    let is_new = |error: &ParseError| error.offset().is_none_or(|at| !refused.contains(&at));
    errors.extend(decode_errors.into_iter().filter(is_new));
    errors.sort_by_key(|error| error.span.map(|span| span.offset));
    let document = document.map(|mut document| {
        document.notes = notes;
        document.source = Some(Arc::new(source));
        document
    });
    Understood {
        document,
        errors,
        misspelled,
    }
}

fn from_read_error(error: ReadError) -> ParseError {
    let (code, help) = match error.kind {
        ReadErrorKind::TooLarge => ("PH-002", Some("split the document or raise the size limit")),
        ReadErrorKind::Binary => ("PH-001", None),
        ReadErrorKind::Empty => ("PH-003", Some("`proofhouse new` writes one to start from")),
        ReadErrorKind::SeveralDocuments => ("PH-004", Some("split the file at `---`")),
        ReadErrorKind::Syntax => ("PH-005", syntax_help(&error.message)),
        ReadErrorKind::TooDeep | ReadErrorKind::TooManyNodes => ("PH-006", None),
        ReadErrorKind::DuplicateKey => ("PH-008", Some("remove one of them")),
        ReadErrorKind::KeyNotText => (
            "PH-013",
            Some("put quotes around a text that begins with `{` or `[`"),
        ),
        ReadErrorKind::Anchor
        | ReadErrorKind::Alias
        | ReadErrorKind::MergeKey
        | ReadErrorKind::CustomTag => ("V-020", None),
    };
    ParseError {
        kind: ParseErrorKind::Syntax,
        code,
        message: error.message,
        path: None,
        span: Some(error.span),
        help: help.map(str::to_owned),
    }
}

/// What usually lies behind the YAML parser's words.
fn syntax_help(message: &str) -> Option<&'static str> {
    const HINTS: &[(&str, &str)] = &[
        ("tab", "indent with spaces; YAML does not allow tabs there"),
        (
            "mapping values are not allowed",
            "put quotes around a text that holds `: `",
        ),
        (
            "simple key expect",
            "a key is followed by a colon and a space",
        ),
        (
            "unexpected character",
            "put quotes around a text that begins with this character",
        ),
        (
            "cannot start any token",
            "put quotes around a text that begins with this character",
        ),
        (
            "escape",
            "in double quotes `\\\\` stands for a backslash; single quotes take it as it is",
        ),
        (
            "unclosed",
            "look for the quote or bracket that is opened and never closed",
        ),
    ];
    let message = message.to_ascii_lowercase();
    HINTS
        .iter()
        .find(|(words, _)| message.contains(words))
        .map(|(_, hint)| *hint)
}

/// A part of a document that can be read on its own, for tools and tests.
///
/// ```
/// use proofhouse_oatf::{Fragment, Trigger};
/// use serde_json::json;
/// let trigger = Trigger::from_value(&json!({"event": "tools/call", "count": 3})).unwrap();
/// assert_eq!(trigger.count, Some(3));
/// assert!(Trigger::from_value(&json!({"evnt": "tools/call"})).is_err());
/// ```
pub trait Fragment: Sized {
    /// Reads the part from its document form.
    ///
    /// # Errors
    ///
    /// Returns every error; places refer to the canonical YAML form of `value`.
    fn from_value(value: &serde_json::Value) -> Result<Self, Vec<ParseError>>;
}

macro_rules! fragment {
    ($($type:ty => $method:ident),+ $(,)?) => {
        $(impl Fragment for $type {
            fn from_value(value: &serde_json::Value) -> Result<Self, Vec<ParseError>> {
                decode_fragment(value, |decoder, node| decoder.$method(node))
            }
        })+
    };
}

fragment! {
    Attack => attack,
    Indicator => indicator,
    Phase => phase,
    Trigger => trigger,
    Extractor => extractor,
    Condition => condition,
    MatchPredicate => predicate,
    ResponseEntry => response_entry,
}

fn decode_fragment<T>(
    value: &serde_json::Value,
    decode: impl for<'s> FnOnce(&mut Decoder<'s>, proofhouse_source::NodeRef<'s>) -> Option<T>,
) -> Result<T, Vec<ParseError>> {
    let text = proofhouse_source::to_yaml(value);
    let source = Source::read(&text, &ReadLimits::default())
        .map_err(|errors| errors.into_iter().map(from_read_error).collect::<Vec<_>>())?;
    let mut decoder = Decoder::new(&source);
    match decode(&mut decoder, source.root()) {
        Some(part) if decoder.errors.is_empty() => Ok(part),
        _ => Err(decoder.errors),
    }
}

impl Document {
    /// What the reader noticed that is not an error: keys in odd order, empty values.
    pub(crate) fn notes(&self) -> &[Diagnostic] {
        &self.notes
    }
}
