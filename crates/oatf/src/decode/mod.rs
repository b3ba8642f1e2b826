//! From a YAML tree to the model: every field by hand, so that every error can name its place.

mod attack;
mod execution;
mod indicator;

use std::str::FromStr;

use proofhouse_source::format::{Fields, FormatReader, TypeSpec, Wording};
use proofhouse_source::{
    Diagnostic, DiagnosticSeverity, DocumentWalk, NodeRef, PathSegment, Source, YamlScalar,
};

use crate::error::ParseError;
use crate::model::{DurationText, Extensions, UnknownVariant};

/// How many errors are kept, and how many notes. A hostile text may break a rule at every byte.
const MAX_FINDINGS: usize = 10_000;

/// Walks a tree and collects what is wrong with it.
///
/// A field that cannot be read is left out and the walk goes on, so that one pass reports
/// everything.
pub(crate) struct DocumentDecoder<'s> {
    walk: DocumentWalk<'s>,
}

/// What a walk found.
pub(crate) struct Decoded {
    pub(crate) errors: Vec<ParseError>,
    pub(crate) notes: Vec<Diagnostic>,
    /// Paths of the keys that misspelled ones were probably meant to be.
    pub(crate) misspelled: Vec<String>,
}

impl<'s> FormatReader<'s> for DocumentDecoder<'s> {
    const WORDING: Wording = Wording {
        whole: "the document",
        text: "a string",
        list: "a sequence",
        mismatch: "PH-010",
        unknown_key: "PH-009",
        empty: "PH-201",
        refused: crate::error::UNKNOWN_VARIANT,
        shows_values: true,
    };

    fn walk(&mut self) -> &mut DocumentWalk<'s> {
        &mut self.walk
    }

    fn unknown_key_help(
        &self,
        spec: &'static TypeSpec,
        _key: &str,
        near: Option<&'static str>,
    ) -> Option<String> {
        match near {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None => spec
                .extensions
                .then(|| "a field of your own must start with `x-`".to_owned()),
        }
    }

    fn missing(&mut self, key: &'static str, code: &'static str, _help: Option<&'static str>) {
        let name = self.place();
        self.within(PathSegment::Key(key), |decoder| {
            let message = format!("{name} needs `{key}`");
            decoder.walk.error_at_key(code, message, None);
        });
    }

    fn out_of_range(&mut self, node: NodeRef<'s>) {
        let text: String = node
            .raw_text()
            .unwrap_or_default()
            .chars()
            .take(40)
            .collect();
        let message = format!("`{text}` is not a number that 64 bits and JSON can hold");
        let help = Some("quote it if it is text".to_owned());
        let severity = DiagnosticSeverity::Error;
        self.walk
            .report(severity, "PH-012", node.span(), message, help);
    }
}

impl<'s> DocumentDecoder<'s> {
    pub(crate) fn new(source: &'s Source) -> Self {
        Self {
            walk: DocumentWalk::new(source).keeping(MAX_FINDINGS),
        }
    }

    pub(crate) fn finish(self) -> Decoded {
        let misspelled = self.walk.misspelled().to_vec();
        let (errors, notes): (Vec<_>, Vec<_>) = self
            .walk
            .into_findings()
            .into_iter()
            .partition(|finding| finding.severity == DiagnosticSeverity::Error);
        Decoded {
            errors: errors.into_iter().map(ParseError::from).collect(),
            notes,
            misspelled,
        }
    }

    /// Reports an error at the current path.
    fn error(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.walk.error(code, message, help);
    }

    /// Reports a key beside those that a shape of its own has.
    fn unknown_key(&mut self, key: &'s str, known: impl IntoIterator<Item = &'static str>) {
        if self.walk.is_full() {
            return;
        }
        let near = self.walk.near(key, known);
        let help = near.map(|near| format!("did you mean `{near}`?"));
        self.walk
            .unknown_key(Self::WORDING.unknown_key, key, near, help);
    }

    /// A name of an open enumeration, which any text is.
    fn open<E: From<&'s str>>(&mut self, node: NodeRef<'s>) -> Option<E> {
        match node.scalar() {
            Some(YamlScalar::Text(text)) => Some(E::from(text)),
            _ => {
                self.mismatch(node, "a string");
                None
            }
        }
    }

    /// A duration as it is written; `validate` says whether it is one.
    fn duration(&mut self, node: NodeRef<'s>) -> Option<DurationText> {
        if let Some(YamlScalar::Int(number)) = node.scalar() {
            let message = format!("{} must be a string, not {}", self.place(), node.describe());
            let help = format!("write the unit too: `{number}s` or `{number}m`");
            self.error(Self::WORDING.mismatch, message, Some(help));
            return None;
        }
        self.text(node).map(DurationText::new)
    }

    /// A value of a closed set where no row of the table stands.
    fn choice<E: FromStr<Err = UnknownVariant>>(&mut self, node: NodeRef<'s>) -> Option<E> {
        let text = self.text(node)?;
        let value = text.parse();
        if let Err(UnknownVariant { expected, .. }) = &value {
            self.unknown_word(&text, expected);
        }
        value.ok()
    }

    fn note(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.walk.warn_at_key(code, message, help);
    }
}

/// What threat documents have beside what every format has.
trait DocumentFields<'s> {
    /// A name that normalization writes into every indicator, and that is therefore bounded:
    /// otherwise a document of four megabytes grows to a hundred gigabytes.
    fn name(&mut self, key: &'static str) -> Option<String>;

    fn open<E: From<&'s str>>(&mut self, key: &'static str) -> Option<E>;

    fn integer(&mut self, key: &'static str) -> Option<i64>;

    fn duration(&mut self, key: &'static str) -> Option<DurationText>;

    fn kept_extensions(&mut self) -> Extensions;
}

impl<'s> DocumentFields<'s> for Fields<'_, 's, DocumentDecoder<'s>> {
    fn name(&mut self, key: &'static str) -> Option<String> {
        const MAX_BYTES: usize = 1024;
        self.read(key, |decoder, node| {
            let text = decoder.text(node)?;
            if text.len() > MAX_BYTES {
                let message = format!("`{key}` is longer than {MAX_BYTES} bytes");
                decoder.error("PH-006", message, None);
                return None;
            }
            Some(text)
        })
    }

    fn open<E: From<&'s str>>(&mut self, key: &'static str) -> Option<E> {
        self.read(key, DocumentDecoder::open)
    }

    fn integer(&mut self, key: &'static str) -> Option<i64> {
        self.read(key, DocumentDecoder::integer)
    }

    fn duration(&mut self, key: &'static str) -> Option<DurationText> {
        self.read(key, DocumentDecoder::duration)
    }

    fn kept_extensions(&mut self) -> Extensions {
        let kept = self.extensions();
        kept.map(|(key, value)| (key.to_owned(), value)).collect()
    }
}
