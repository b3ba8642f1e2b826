//! The common ground of the readers: fields by key, findings with places, compiled texts.

use std::time::Duration;

use proofhouse_expr::Program;
use proofhouse_source::{
    Diagnostic, DiagnosticSeverity, DocPath, NodeRef, Scalar, Segment, Source, Span, did_you_mean,
};
use proofhouse_wire::{HeaderName, HeaderValue};
use serde_json::Value;
use serde_json_path::JsonPath;

use super::fields::{FieldSpec, METHODS, TypeSpec};
use super::names::{Names, Site};
use crate::interpolate::{BodyTemplate, HeaderTemplate, Template, UrlTemplate};

/// How many findings are kept. A hostile text may break a rule at every byte.
const MAX_FINDINGS: usize = 1_000;

/// Headers that the connection sets; a manifest may not.
const OWN_HEADERS: [&str; 6] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
];

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
    source: &'s Source,
    start: Start,
    path: DocPath<'s>,
    pub(super) findings: Vec<Diagnostic>,
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
            source,
            start,
            path: DocPath::default(),
            findings: Vec::new(),
            names: Names::default(),
        }
    }

    fn push(
        &mut self,
        severity: DiagnosticSeverity,
        code: &'static str,
        span: Span,
        message: String,
        help: Option<String>,
    ) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Diagnostic {
                severity,
                code,
                path: Some(self.path.to_string()).filter(|path| !path.is_empty()),
                span: Some(self.start.shift(span)),
                message,
                help,
            });
        }
    }

    /// Reports an error at the current path.
    pub(super) fn error(&mut self, code: &'static str, message: String, help: Option<String>) {
        let span = self.source.span_of(&self.path);
        self.push(DiagnosticSeverity::Error, code, span, message, help);
    }

    /// Reports a warning at the current path.
    pub(super) fn warn(&mut self, code: &'static str, message: String, help: Option<String>) {
        let span = self.source.span_of(&self.path);
        self.push(DiagnosticSeverity::Warning, code, span, message, help);
    }

    fn mismatch(&mut self, node: NodeRef<'s>, wanted: &str) {
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
        match self.path.segments() {
            [.., Segment::Key(key)] => format!("`{key}`"),
            [.., Segment::Key(list), Segment::Index(_)] => format!("an item of `{list}`"),
            _ => "the document".to_owned(),
        }
    }

    pub(super) fn within<T>(
        &mut self,
        segment: Segment<'s>,
        decode: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.path.push(segment);
        let result = decode(self);
        self.path.pop();
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
                let shown: String = key.chars().take(60).collect();
                self.within(Segment::Key(key), |decoder| {
                    let span = decoder.source.key_span_of(&decoder.path);
                    let message = format!("unknown key `{shown}`");
                    decoder.push(DiagnosticSeverity::Error, "TM-004", span, message, help);
                });
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

    fn flag(&mut self, node: NodeRef<'s>) -> Option<bool> {
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

    /// Text with references, all of which are checked.
    pub(super) fn template(&mut self, node: NodeRef<'s>, site: Site) -> Option<Template> {
        let text = match node.scalar() {
            // `expires: 5` means the text; nobody quotes numbers in headers.
            Some(Scalar::Int(_) | Scalar::UInt(_) | Scalar::Float(_)) => {
                node.raw_text()?.to_owned()
            }
            _ => self.text(node)?,
        };
        let template = Template::parse(&text);
        self.check_template(&template, site);
        Some(template)
    }

    fn check_template(&mut self, template: &Template, site: Site) {
        for range in template.odd() {
            let span = self.source.span_within(&self.path, range.start, range.end);
            let message = "this looks like a reference but is none".to_owned();
            let help = Some("write {root.name}, without spaces".to_owned());
            self.push(DiagnosticSeverity::Error, "TM-012", span, message, help);
        }
        for reference in template.references() {
            if let Some(unknown) = self.names.check(reference, site) {
                let span =
                    self.source
                        .span_within(&self.path, reference.range.start, reference.range.end);
                let severity = match unknown.warning {
                    true => DiagnosticSeverity::Warning,
                    false => DiagnosticSeverity::Error,
                };
                self.push(severity, unknown.code, span, unknown.message, unknown.help);
            }
        }
    }

    pub(super) fn url(&mut self, node: NodeRef<'s>, site: Site) -> Option<UrlTemplate> {
        let template = self.template(node, site)?;
        match UrlTemplate::new(&template) {
            Ok(url) => Some(url),
            Err(error) => {
                let help = "values of the model and of servers may stand in the path and the query; \
                            a setting may supply the host";
                self.error("TM-013", error.to_string(), Some(help.to_owned()));
                None
            }
        }
    }

    pub(super) fn method(&mut self, node: NodeRef<'s>, site: Site) -> Option<Template> {
        let template = self.template(node, site)?;
        if template.is_literal() && !METHODS.contains(&template.source()) {
            let upper = template.source().to_uppercase();
            let help = match METHODS.iter().find(|method| **method == upper) {
                Some(method) => format!("write `{method}`"),
                None => format!("use one of: {}", METHODS.join(", ")),
            };
            let message = format!("`{}` is not a method that can be used", template.source());
            self.error("TM-008", message, Some(help));
            return None;
        }
        Some(template)
    }

    pub(super) fn headers(&mut self, node: NodeRef<'s>, site: Site) -> Option<Vec<HeaderTemplate>> {
        let templates = self.template_map(node, site)?;
        let mut headers: Vec<HeaderTemplate> = Vec::new();
        for (name, value) in templates {
            let lower = name.to_ascii_lowercase();
            let problem = match HeaderName::try_from(&name) {
                Err(_) => Some("is not the name of a header"),
                Ok(_) if OWN_HEADERS.contains(&lower.as_str()) => Some("is set by the connection"),
                Ok(_) if value.is_literal() && HeaderValue::from_str(value.source()).is_err() => {
                    Some("has a value that no header can have")
                }
                Ok(known) if headers.iter().any(|header| header.name == known) => {
                    Some("is there twice")
                }
                Ok(known) => {
                    headers.push(HeaderTemplate { name: known, value });
                    None
                }
            };
            if let Some(problem) = problem {
                let shown: String = name.chars().take(60).collect();
                self.error("TM-014", format!("`{shown}` {problem}"), None);
            }
        }
        Some(headers)
    }

    pub(super) fn template_map(
        &mut self,
        node: NodeRef<'s>,
        site: Site,
    ) -> Option<Vec<(String, Template)>> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping");
            return None;
        };
        let mut map = Vec::new();
        for (key, value) in entries {
            let template = self.within(Segment::Key(key), |decoder| decoder.template(value, site));
            map.extend(template.map(|template| (key.to_owned(), template)));
        }
        Some(map)
    }

    /// A value whose texts may hold references.
    pub(super) fn body(&mut self, node: NodeRef<'s>, site: Site) -> Option<BodyTemplate> {
        self.check_texts(node, site);
        Some(BodyTemplate::new(&self.value(node)))
    }

    fn check_texts(&mut self, node: NodeRef<'s>, site: Site) {
        for (index, item) in node.items().into_iter().flatten().enumerate() {
            self.within(Segment::Index(index), |decoder| {
                decoder.check_texts(item, site);
            });
        }
        for (key, item) in node.entries().into_iter().flatten() {
            self.within(Segment::Key(key), |decoder| decoder.check_texts(item, site));
        }
        if let Some(Scalar::Text(text)) = node.scalar() {
            self.check_template(&Template::parse(text), site);
        }
    }

    /// A CEL expression that may read these variables.
    pub(super) fn cel(&mut self, node: NodeRef<'s>, variables: &[&str]) -> Option<Program> {
        let text = self.text(node)?;
        let program = match Program::compile(&text) {
            Ok(program) => program,
            Err(error) => {
                let span = match error.offset {
                    Some(offset) => self.source.span_within(&self.path, offset, offset),
                    None => self.source.span_of(&self.path),
                };
                let message = format!("not a CEL expression: {}", error.message);
                self.push(DiagnosticSeverity::Error, "TM-009", span, message, None);
                return None;
            }
        };
        let unknown: Vec<String> = program
            .variables()
            .filter(|name| !variables.contains(name))
            .map(|name| format!("there is no variable `{name}` here"))
            .chain(
                program
                    .unsupported_functions()
                    .map(|name| format!("there is no function `{name}`")),
            )
            .collect();
        for message in unknown {
            let help = Some(format!("variables: {}", variables.join(", ")));
            self.error("TM-009", message, help);
        }
        Some(program)
    }

    pub(super) fn json_path(&mut self, node: NodeRef<'s>) -> Option<JsonPath> {
        let text = self.text(node)?;
        match JsonPath::parse(&text) {
            Ok(path) => Some(path),
            Err(error) => {
                let help =
                    (!text.starts_with('$')).then(|| "a JSONPath starts with `$`".to_owned());
                self.error(
                    "TM-010",
                    format!("not a JSONPath: {}", error.message()),
                    help,
                );
                None
            }
        }
    }

    pub(super) fn duration(&mut self, node: NodeRef<'s>) -> Option<Duration> {
        let text = self.text(node)?;
        let parsed = parse_duration(&text);
        if parsed.is_none() {
            let shown: String = text.chars().take(40).collect();
            let help = Some("write `90s`, `5m`, `72h` or `7d`".to_owned());
            self.error("TM-016", format!("`{shown}` is not a duration"), help);
        }
        parsed
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

/// `90s`, `1h30m`, `250ms`: numbers with units, added up.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let units = &rest[digits..];
        let length = units
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(units.len());
        let unit = match &units[..length] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            "d" => Duration::from_secs(86_400),
            _ => return None,
        };
        let part = unit.checked_mul(u32::try_from(number).ok()?)?;
        total = total.checked_add(part)?;
        rest = &units[length..];
    }
    (!total.is_zero()).then_some(total)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, seconds) in [
            ("90s", Some(90)),
            ("5m", Some(300)),
            ("72h", Some(259_200)),
            ("7d", Some(604_800)),
            ("1h30m", Some(5_400)),
            ("", None),
            ("0s", None),
            ("5", None),
            ("m", None),
            ("5 m", None),
            ("-5m", None),
            ("99999999999d", None),
            ("5m5", None),
        ] {
            assert_eq!(parse_duration(text).map(|d| d.as_secs()), seconds, "{text}");
        }
    }
}
