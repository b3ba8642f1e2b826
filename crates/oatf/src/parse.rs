//! `parse`: from text to the model, with every reason why not.

use std::collections::HashSet;
use std::sync::Arc;

use proofhouse_source::{Diagnostic, ReadError, ReadErrorKind, ReadLimits, Source, Span};

use crate::decode::{Decoded, DocumentDecoder};
use crate::error::{ParseError, ParseErrorKind};
use crate::model::{
    Action, Actor, Attack, Classification, Condition, Correlation, Document, Execution,
    ExpressionMatch, Extractor, FrameworkMapping, Indicator, MatchCondition, MatchPredicate, Mode,
    PatternMatch, Phase, Reference, ResponseEntry, SemanticExamples, SemanticMatch, Severity,
    SynthesizeBlock, Trigger,
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
/// ```
/// use proofhouse_oatf::{ReadLimits, parse_with};
/// let limits = ReadLimits { max_depth: 2, ..ReadLimits::default() };
/// let errors = parse_with("oatf: \"0.1\"\nattack: {execution: {mode: mcp_server, state: {}}}", &limits).unwrap_err();
/// assert_eq!((errors[0].code, errors[0].line()), ("PH-006", Some(2)));
/// ```
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
    let mut decoder = DocumentDecoder::new(&source);
    let document = decoder.document(source.root());
    decoder.note_key_order(source.root());
    let Decoded {
        errors: decode_errors,
        notes,
        misspelled,
    } = decoder.finish();
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
    read_error(error.kind, error.message, error.help, Some(error.span))
}

fn read_error(
    kind: ReadErrorKind,
    message: String,
    help: &'static str,
    span: Option<Span>,
) -> ParseError {
    let (code, help) = match kind {
        ReadErrorKind::TooLarge => ("PH-002", help),
        ReadErrorKind::Binary => ("PH-001", help),
        ReadErrorKind::Empty => ("PH-003", "`proofhouse new` writes one to start from"),
        ReadErrorKind::SeveralDocuments => ("PH-004", help),
        ReadErrorKind::Syntax => ("PH-005", help),
        ReadErrorKind::TooDeep | ReadErrorKind::TooManyNodes => ("PH-006", help),
        ReadErrorKind::DuplicateKey => ("PH-008", help),
        ReadErrorKind::KeyNotText => ("PH-013", help),
        ReadErrorKind::Anchor
        | ReadErrorKind::Alias
        | ReadErrorKind::MergeKey
        | ReadErrorKind::CustomTag => ("V-020", help),
    };
    ParseError {
        kind: ParseErrorKind::Syntax,
        code,
        message,
        path: None,
        span,
        help: Some(help.to_owned()),
    }
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
    /// Returns every error with its path; a value has no lines and columns.
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
    Document => document,
    Attack => attack,
    Correlation => correlation,
    Severity => severity,
    Classification => classification,
    FrameworkMapping => mapping,
    Reference => reference,
    Execution => execution,
    Actor => actor,
    Phase => phase,
    Action => action,
    Trigger => trigger,
    Extractor => extractor,
    ResponseEntry => response_entry,
    SynthesizeBlock => synthesize,
    Indicator => indicator,
    PatternMatch => pattern,
    ExpressionMatch => expression,
    SemanticMatch => semantic,
    SemanticExamples => examples,
    Condition => condition,
    MatchCondition => operators,
    MatchPredicate => predicate,
}

fn decode_fragment<T>(
    value: &serde_json::Value,
    decode: impl for<'s> FnOnce(&mut DocumentDecoder<'s>, proofhouse_source::NodeRef<'s>) -> Option<T>,
) -> Result<T, Vec<ParseError>> {
    let source = Source::from_value(value, &ReadLimits::default()).map_err(|error| {
        vec![read_error(
            error.kind,
            error.message,
            error.kind.help(),
            None,
        )]
    })?;
    let mut decoder = DocumentDecoder::new(&source);
    let part = decode(&mut decoder, source.root());
    let mut errors = decoder.finish().errors;
    match part {
        Some(part) if errors.is_empty() => Ok(part),
        _ => {
            for error in &mut errors {
                error.span = None;
            }
            Err(errors)
        }
    }
}

/// Why what an actor of this mode reads of its state cannot be read.
pub(crate) fn state_errors(state: &serde_json::Value, mode: Option<&Mode>) -> Vec<ParseError> {
    let read = decode_fragment(state, |decoder, node| decoder.state(node, mode));
    let errors = read.err().into_iter().flatten();
    // The rest is about texts of documents, or told by other rules.
    let of_lists = errors.filter(|error| matches!(error.code, "PH-006" | "PH-009" | "PH-010"));
    of_lists.collect()
}

impl Document {
    /// What the reader noticed that is not an error: keys in odd order, empty values.
    pub(crate) fn notes(&self) -> &[Diagnostic] {
        &self.notes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_fragment_is_what_its_value_is() {
        for text in [
            "",
            "yes",
            "null",
            "0x10",
            "1e3",
            "- a",
            "a: b",
            "&a",
            "*a",
            "\u{0}\r\n\u{85}",
        ] {
            let entry =
                ResponseEntry::from_value(&json!({"content": text, "x-y": [text]})).unwrap();
            assert_eq!(entry.content, Some(json!(text)));
            assert_eq!(entry.fields["x-y"], json!([text]));
            // A merge key is one in YAML only.
            let merge = ResponseEntry::from_value(&json!({"<<": {text: 1}})).unwrap();
            assert_eq!(merge.fields["<<"], json!({text: 1}));
        }
        let numbers = json!([u64::MAX, i64::MIN, 1e300, 5e-324, -0.0, 1.0]);
        let entry = ResponseEntry::from_value(&json!({"content": numbers})).unwrap();
        assert_eq!(entry.content.unwrap().to_string(), numbers.to_string());
    }

    #[test]
    fn a_fragment_has_paths_and_limits_but_no_places() {
        let errors = Trigger::from_value(&json!({"evnt": "x", "count": "y"})).unwrap_err();
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "error[PH-009] evnt: unknown key `evnt`",
                "error[PH-010] count: `count` must be an integer, not the string \"y\""
            ]
        );
        let mut deep = Value::Null;
        for _ in 0..10_000 {
            deep = Value::Array(vec![deep]);
        }
        let error = Condition::from_value(&deep).unwrap_err().remove(0);
        assert_eq!((error.code, error.span), ("PH-006", None));
        // A tree this deep cannot be dropped by recursion.
        while let Value::Array(mut items) = deep {
            deep = items.pop().unwrap_or_default();
        }
    }
}
