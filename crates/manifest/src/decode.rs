//! The common ground of the readers: fields by key, and findings with places.

use proofhouse_source::{
    DiagnosticSeverity, NodeRef, Scalar, Segment, Source, Span, Walk, did_you_mean,
};
use serde_json::Value;

use super::fields::{FieldSpec, TypeSpec};
use super::names::Names;

/// Where a document starts in the file it stands in.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Start {
    pub(super) offset: usize,
    pub(super) line: usize,
}

impl Start {
    pub(super) fn shift(self, span: Span) -> Span {
        Span {
            offset: span.offset + self.offset,
            line: span.line + self.line,
            ..span
        }
    }
}

/// Walks one document and collects what is wrong with it.
pub(super) struct Decoder<'s> {
    pub(super) walk: Walk<'s>,
    pub(super) names: Names,
}

/// The fields of one mapping that is being read.
pub(super) struct Fields<'d, 's> {
    pub(super) decoder: &'d mut Decoder<'s>,
    node: NodeRef<'s>,
    spec: &'static TypeSpec,
}

impl<'s> Decoder<'s> {
    pub(super) fn new(source: &'s Source, start: Start) -> Self {
        Self {
            walk: Walk::new(source).after(start.offset, start.line),
            names: Names::default(),
        }
    }

    /// Reports a finding at a place.
    pub(super) fn push(
        &mut self,
        severity: DiagnosticSeverity,
        code: &'static str,
        span: Span,
        message: String,
        help: Option<String>,
    ) {
        self.walk.report(severity, code, span, message, help);
    }

    /// Reports an error at the current path.
    pub(super) fn error(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.walk.error(code, message, help);
    }

    /// Where the current path is in the file.
    pub(super) fn here(&self) -> Span {
        self.walk.here()
    }

    /// Reports a warning at the current path.
    pub(super) fn warn(&mut self, code: &'static str, message: String, help: Option<String>) {
        self.walk.warn(code, message, help);
    }

    pub(super) fn mismatch(&mut self, node: NodeRef<'s>, wanted: &str) {
        let name = self.place();
        let help = match (wanted, node.scalar()) {
            (
                "a string",
                Some(Scalar::Bool(_) | Scalar::Int(_) | Scalar::UInt(_) | Scalar::Float(_)),
            ) => node
                .raw_text()
                .filter(|text| text.len() <= 60)
                .map(|text| format!("quote it: `\"{text}\"`")),
            _ => None,
        };
        self.error(
            "TM-003",
            format!("{name} must be {wanted}, not {}", node.describe()),
            help,
        );
    }

    /// How a message names the current place.
    fn place(&self) -> String {
        self.walk.place("the document")
    }

    pub(super) fn within<T>(
        &mut self,
        segment: Segment<'s>,
        decode: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.walk.enter(segment);
        let result = decode(self);
        self.walk.leave();
        result
    }

    /// Opens a mapping and reports its unknown keys.
    pub(super) fn fields(
        &mut self,
        node: NodeRef<'s>,
        spec: &'static TypeSpec,
    ) -> Option<Fields<'_, 's>> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping");
            return None;
        };
        let known = || {
            spec.fields
                .iter()
                .flat_map(|field| [Some(field.key), field.alias])
                .flatten()
        };
        for (key, _) in entries {
            if !known().any(|name| name == key) && !key.starts_with("x-") {
                let help = did_you_mean(key, known()).map(|near| format!("did you mean `{near}`?"));
                self.walk.unknown_key("TM-004", key, help);
            }
        }
        Some(Fields {
            decoder: self,
            node,
            spec,
        })
    }

    pub(super) fn text(&mut self, node: NodeRef<'s>) -> Option<String> {
        match node.scalar() {
            Some(Scalar::Text(text)) => Some(text.to_owned()),
            _ => {
                self.mismatch(node, "a string");
                None
            }
        }
    }

    pub(super) fn flag(&mut self, node: NodeRef<'s>) -> Option<bool> {
        match node.scalar() {
            Some(Scalar::Bool(value)) => Some(value),
            _ => {
                self.mismatch(node, "true or false");
                None
            }
        }
    }

    /// Any value; numbers that JSON cannot hold are reported.
    pub(super) fn value(&mut self, node: NodeRef<'s>) -> Value {
        let mut odd = Vec::new();
        let value = node.to_value(&mut |node| odd.push(node.span()));
        for span in odd {
            let message = "this is not a number that 64 bits and JSON can hold".to_owned();
            self.push(DiagnosticSeverity::Error, "TM-003", span, message, None);
        }
        value
    }

    pub(super) fn list<T>(
        &mut self,
        node: NodeRef<'s>,
        mut decode: impl FnMut(&mut Self, NodeRef<'s>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(items) = node.items() else {
            self.mismatch(node, "a sequence");
            return None;
        };
        let mut list = Vec::new();
        for (index, item) in items.enumerate() {
            list.extend(self.within(Segment::Index(index), |decoder| decode(decoder, item)));
        }
        Some(list)
    }
}

impl<'s> Fields<'_, 's> {
    /// Reads one field, under its key or its alias. Nothing behind a key counts as absent.
    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        decode: impl FnOnce(&mut Decoder<'s>, NodeRef<'s>) -> Option<T>,
    ) -> Option<T> {
        let field = self.field(key)?;
        let written = [Some(field.key), field.alias].into_iter().flatten();
        let mut found = written.filter_map(|name| Some((name, self.node.get(name)?)));
        let first = found.next();
        if let (Some(_), Some((alias, _))) = (first, found.next()) {
            self.decoder.within(Segment::Key(alias), |decoder| {
                let message = format!("`{key}` and `{alias}` mean the same");
                decoder.error("TM-006", message, Some("keep one of them".to_owned()));
            });
        }
        match first {
            Some((name, node)) if !node.is_null() => self
                .decoder
                .within(Segment::Key(name), |decoder| decode(decoder, node)),
            Some((name, _)) => {
                self.decoder.within(Segment::Key(name), |decoder| {
                    let message = format!("`{name}` is empty and counts as absent");
                    decoder.warn(
                        "TM-018",
                        message,
                        Some("give it a value or remove the key".to_owned()),
                    );
                });
                self.missing_if_required(field);
                None
            }
            None => {
                self.missing_if_required(field);
                None
            }
        }
    }

    fn field(&self, key: &str) -> Option<&'static FieldSpec> {
        let found = self.spec.fields.iter().find(|field| field.key == key);
        debug_assert!(found.is_some(), "{} has no field {key}", self.spec.name);
        found
    }

    fn missing_if_required(&mut self, field: &FieldSpec) {
        if field.required {
            self.missing(field.key);
        }
    }

    /// Reports a key that should be there, unless a misspelled one has been reported.
    pub(super) fn missing(&mut self, key: &str) {
        let misspelled = self
            .node
            .entries()
            .into_iter()
            .flatten()
            .any(|(written, _)| {
                !self
                    .spec
                    .fields
                    .iter()
                    .any(|field| field.key == written || field.alias == Some(written))
                    && did_you_mean(written, [key]).is_some()
            });
        if !misspelled {
            let name = self.decoder.place();
            self.decoder
                .error("TM-005", format!("{name} needs `{key}`"), None);
        }
    }

    /// The one key that is there, where exactly one must be.
    pub(super) fn only(&mut self) -> Option<&'static str> {
        let node = self.node;
        let there = |key| node.get(key).is_some_and(|value| !value.is_null());
        let found: Vec<&'static str> = self
            .spec
            .fields
            .iter()
            .map(|field| field.key)
            .filter(|key| there(*key))
            .collect();
        match found.as_slice() {
            [only] => Some(only),
            several => {
                let name = self.decoder.place();
                let keys: Vec<&str> = self.spec.fields.iter().map(|field| field.key).collect();
                let message = match several {
                    [] => format!("{name} needs exactly one block"),
                    _ => format!(
                        "{name} has {}; only one may be there",
                        several.join(" and ")
                    ),
                };
                let help = Some(format!("use one of: {}", keys.join(", ")));
                self.decoder.error("TM-007", message, help);
                None
            }
        }
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, Decoder::text)
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, Decoder::flag)
    }
}
