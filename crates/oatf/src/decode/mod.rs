//! From a YAML tree to the model: every field by hand, so that every error can name its place.

mod attack;
mod execution;
mod indicator;

use std::str::FromStr;

use proofhouse_source::{
    Diagnostic, DiagnosticSeverity, DocPath, NodeRef, Scalar, Segment, Source, Span, did_you_mean,
};
use serde_json::Value;

use crate::error::{ParseError, ParseErrorKind};
use crate::fields::TypeSpec;
use crate::model::{Extensions, UnknownVariant};

/// How many errors are kept, and how many notes. A hostile text may break a rule at every byte.
const MAX_FINDINGS: usize = 10_000;
/// How many errors come with a suggestion, which takes longer to find than the error itself.
const MAX_SUGGESTIONS: usize = 1_000;

/// Walks a tree and collects what is wrong with it.
///
/// A field that cannot be read is left out and the walk goes on, so that one pass reports
/// everything.
pub(crate) struct Decoder<'s> {
    source: &'s Source,
    path: DocPath<'s>,
    pub(crate) errors: Vec<ParseError>,
    pub(crate) notes: Vec<Diagnostic>,
    /// Paths of the keys that misspelled ones were probably meant to be.
    pub(crate) misspelled: Vec<String>,
}

/// The fields of one mapping that is being decoded.
struct Fields<'d, 's> {
    decoder: &'d mut Decoder<'s>,
    node: NodeRef<'s>,
    spec: &'static TypeSpec,
}

impl<'s> Decoder<'s> {
    pub(crate) fn new(source: &'s Source) -> Self {
        Self {
            source,
            path: DocPath::default(),
            errors: Vec::new(),
            notes: Vec::new(),
            misspelled: Vec::new(),
        }
    }

    /// Reports an error at the current path.
    fn error(
        &mut self,
        kind: ParseErrorKind,
        code: &'static str,
        message: String,
        help: Option<String>,
    ) {
        if self.errors.len() < MAX_FINDINGS {
            let span = self.source.span_of(&self.path);
            self.error_at(span, kind, code, message, help);
        }
    }

    fn error_at(
        &mut self,
        span: Span,
        kind: ParseErrorKind,
        code: &'static str,
        message: String,
        help: Option<String>,
    ) {
        if self.errors.len() >= MAX_FINDINGS {
            return;
        }
        let path = Some(self.path.to_string()).filter(|path| !path.is_empty());
        self.errors.push(ParseError {
            kind,
            code,
            message,
            path,
            span: Some(span),
            help,
        });
    }

    /// The known word nearest to a mistyped one, as long as there are few errors.
    fn near<'k>(&self, word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
        if self.errors.len() + self.notes.len() < MAX_SUGGESTIONS {
            did_you_mean(word, known)
        } else {
            None
        }
    }

    fn mismatch(&mut self, node: NodeRef<'s>, wanted: &str) {
        let name = self.place();
        let message = format!("{name} must be {wanted}, not {}", node.describe());
        let help = match node.scalar() {
            Some(Scalar::Int(number))
                if matches!(
                    self.path.segments(),
                    [.., Segment::Key("after" | "grace_period")]
                ) =>
            {
                Some(format!("write the unit too: `{number}s` or `{number}m`"))
            }
            Some(Scalar::Bool(_) | Scalar::Int(_) | Scalar::UInt(_) | Scalar::Float(_))
                if wanted == "a string" =>
            {
                node.raw_text()
                    .filter(|text| text.len() <= 60)
                    .map(|text| format!("quote it: `\"{text}\"`"))
            }
            _ => None,
        };
        self.error(ParseErrorKind::TypeMismatch, "PH-010", message, help);
    }

    /// How a message names the current place: by its last key, or as an item of a list.
    fn place(&self) -> String {
        match self.path.segments() {
            [.., Segment::Key(key)] => format!("`{key}`"),
            [.., Segment::Key(list), Segment::Index(_)] => format!("an item of `{list}`"),
            _ => "the document".to_owned(),
        }
    }

    /// Runs `decode` one step deeper.
    fn within<T>(&mut self, segment: Segment<'s>, decode: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(segment);
        let result = decode(self);
        self.path.pop();
        result
    }

    /// Opens a mapping and reports its unknown keys.
    fn fields(&mut self, node: NodeRef<'s>, spec: &'static TypeSpec) -> Option<Fields<'_, 's>> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping");
            return None;
        };
        for (key, _) in entries {
            if !spec.knows(key) {
                let known = spec.fields.iter().map(|field| field.key);
                self.unknown_key(key, known, spec.extensions);
            }
        }
        Some(Fields {
            decoder: self,
            node,
            spec,
        })
    }

    fn unknown_key<'k>(
        &mut self,
        key: &'s str,
        known: impl IntoIterator<Item = &'k str>,
        extensible: bool,
    ) {
        if self.errors.len() >= MAX_FINDINGS {
            return;
        }
        let help = match self.near(key, known) {
            Some(near) => {
                let parent = self.path.to_string();
                let dot = if parent.is_empty() { "" } else { "." };
                self.misspelled.push(format!("{parent}{dot}{near}"));
                Some(format!("did you mean `{near}`?"))
            }
            None if extensible => Some("a field of your own must start with `x-`".to_owned()),
            None => None,
        };
        let shown: String = key.chars().take(60).collect();
        self.within(Segment::Key(key), |decoder| {
            let span = decoder.source.key_span_of(&decoder.path);
            decoder.error_at(
                span,
                ParseErrorKind::TypeMismatch,
                "PH-009",
                format!("unknown key `{shown}`"),
                help,
            );
        });
    }

    fn text(&mut self, node: NodeRef<'s>) -> Option<String> {
        match node.scalar() {
            Some(Scalar::Text(text)) => Some(text.to_owned()),
            _ => {
                self.mismatch(node, "a string");
                None
            }
        }
    }

    /// A name of an open enumeration, which any text is.
    fn open<E: From<&'s str>>(&mut self, node: NodeRef<'s>) -> Option<E> {
        match node.scalar() {
            Some(Scalar::Text(text)) => Some(E::from(text)),
            _ => {
                self.mismatch(node, "a string");
                None
            }
        }
    }

    fn integer(&mut self, node: NodeRef<'s>) -> Option<i64> {
        match node.scalar() {
            Some(Scalar::Int(value)) => Some(value),
            Some(Scalar::UInt(_) | Scalar::OutOfRange(_)) => {
                self.out_of_range(node);
                None
            }
            _ => {
                self.mismatch(node, "an integer");
                None
            }
        }
    }

    fn number(&mut self, node: NodeRef<'s>) -> Option<f64> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "the specification compares as doubles"
        )]
        match node.scalar() {
            Some(Scalar::Int(value)) => Some(value as f64),
            Some(Scalar::UInt(value)) => Some(value as f64),
            Some(Scalar::Float(value)) => Some(value),
            Some(Scalar::OutOfRange(_)) => {
                self.out_of_range(node);
                None
            }
            _ => {
                self.mismatch(node, "a number");
                None
            }
        }
    }

    fn flag(&mut self, node: NodeRef<'s>) -> Option<bool> {
        match node.scalar() {
            Some(Scalar::Bool(value)) => Some(value),
            _ => {
                self.mismatch(node, "true or false");
                None
            }
        }
    }

    fn choice<E: FromStr<Err = UnknownVariant>>(&mut self, node: NodeRef<'s>) -> Option<E> {
        let Some(Scalar::Text(text)) = node.scalar() else {
            self.mismatch(node, "a string");
            return None;
        };
        match text.parse() {
            Ok(member) => Some(member),
            Err(UnknownVariant { expected, .. }) => {
                let name = self.place();
                let shown: String = text.chars().take(60).collect();
                let help = Some(match self.near(text, expected.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("use one of: {}", expected.join(", ")),
                });
                let message = format!("`{shown}` is not a value of {name}");
                self.error(ParseErrorKind::UnknownVariant, "V-005", message, help);
                None
            }
        }
    }

    fn value(&mut self, node: NodeRef<'s>) -> Value {
        let mut odd = Vec::new();
        let value = node.to_value(&mut |node| odd.push(node));
        for node in odd {
            self.out_of_range(node);
        }
        value
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
        self.error_at(
            node.span(),
            ParseErrorKind::TypeMismatch,
            "PH-012",
            message,
            help,
        );
    }

    fn list<T>(
        &mut self,
        node: NodeRef<'s>,
        mut decode: impl FnMut(&mut Self, NodeRef<'s>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(items) = node.items() else {
            self.mismatch(node, "a sequence");
            return None;
        };
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.enumerate() {
            list.extend(self.within(Segment::Index(index), |decoder| decode(decoder, item)));
        }
        Some(list)
    }

    fn note(&mut self, code: &'static str, message: String, help: Option<String>) {
        if self.notes.len() >= MAX_FINDINGS {
            return;
        }
        let span = self.source.key_span_of(&self.path);
        self.notes.push(Diagnostic {
            severity: DiagnosticSeverity::Warning,
            code,
            path: Some(self.path.to_string()),
            span: Some(span),
            message,
            help,
        });
    }
}

impl<'s> Fields<'_, 's> {
    /// Reads one field. A key with nothing behind it counts as absent, but not silently.
    fn read<T>(
        &mut self,
        key: &'static str,
        decode: impl FnOnce(&mut Decoder<'s>, NodeRef<'s>) -> Option<T>,
    ) -> Option<T> {
        let spec = self.spec.fields.iter().find(|field| field.key == key);
        match self.node.get(key) {
            Some(node) if !node.is_null() => self
                .decoder
                .within(Segment::Key(key), |decoder| decode(decoder, node)),
            found => {
                if let Some(code) = spec.and_then(|field| field.required) {
                    self.missing(key, code);
                } else if found.is_some() {
                    self.decoder.within(Segment::Key(key), |decoder| {
                        decoder.note(
                            "PH-201",
                            format!("`{key}` is empty and counts as absent"),
                            Some("give it a value or remove the key".to_owned()),
                        );
                    });
                }
                None
            }
        }
    }

    fn missing(&mut self, key: &'static str, code: &'static str) {
        let name = self.decoder.place();
        self.decoder.within(Segment::Key(key), |decoder| {
            // A key that is there but misspelled has been reported as that.
            if decoder.misspelled.contains(&decoder.path.to_string()) {
                return;
            }
            let span = decoder.source.key_span_of(&decoder.path);
            decoder.error_at(
                span,
                ParseErrorKind::TypeMismatch,
                code,
                format!("{name} needs `{key}`"),
                None,
            );
        });
    }

    fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, Decoder::text)
    }

    fn open<E: From<&'s str>>(&mut self, key: &'static str) -> Option<E> {
        self.read(key, Decoder::open)
    }

    /// A name that normalization writes into every indicator, and that is therefore bounded:
    /// otherwise a document of four megabytes grows to a hundred gigabytes.
    fn name(&mut self, key: &'static str) -> Option<String> {
        const MAX_BYTES: usize = 1024;
        self.read(key, |decoder, node| {
            let text = decoder.text(node)?;
            if text.len() > MAX_BYTES {
                let message = format!("`{key}` is longer than {MAX_BYTES} bytes");
                decoder.error(ParseErrorKind::TypeMismatch, "PH-006", message, None);
                return None;
            }
            Some(text)
        })
    }

    fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.read(key, |decoder, node| decoder.list(node, Decoder::text))
    }

    fn integer(&mut self, key: &'static str) -> Option<i64> {
        self.read(key, Decoder::integer)
    }

    fn choice<E: FromStr<Err = UnknownVariant>>(&mut self, key: &'static str) -> Option<E> {
        self.read(key, Decoder::choice)
    }

    fn list<T>(
        &mut self,
        key: &'static str,
        decode: impl FnMut(&mut Decoder<'s>, NodeRef<'s>) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.read(key, |decoder, node| decoder.list(node, decode))
    }

    fn extensions(&mut self) -> Extensions {
        let mut extensions = Extensions::new();
        for (key, node) in self.node.entries().into_iter().flatten() {
            if key.starts_with("x-") {
                let value = self
                    .decoder
                    .within(Segment::Key(key), |decoder| decoder.value(node));
                extensions.insert(key.to_owned(), value);
            }
        }
        extensions
    }
}
