//! Texts that mean something: templates, URLs, headers, expressions, paths and durations, compiled.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use proofhouse_expr::{Compiler, ExprLimits, Program};
use proofhouse_source::format::{Durations, FormatReader};
use proofhouse_source::{DiagnosticSeverity, NodeRef, PathSegment, YamlScalar};
use serde_json_path::JsonPath;

use super::decode::ManifestDecoder;
use super::fields::METHODS;
use super::names::ReferenceSite;
use crate::interpolate::{BodyTemplate, HeaderTemplate, Template, UrlTemplate};

/// Headers that the connection sets; a manifest may not.
const OWN_HEADERS: [&str; 6] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
];

/// A thousand years. Nobody waits longer, and what is added to it does not overflow.
const FOR_EVER: Duration = Duration::from_secs(1_000 * 365 * 86_400);

impl<'s> ManifestDecoder<'s> {
    /// Text with references, all of which are checked.
    pub(super) fn template(&mut self, node: NodeRef<'s>, site: ReferenceSite) -> Option<Template> {
        let text = match node.scalar() {
            // `expires: 5` means the text; nobody quotes numbers in headers.
            Some(YamlScalar::Int(_) | YamlScalar::UInt(_) | YamlScalar::Float(_)) => {
                node.raw_text()?.to_owned()
            }
            _ => self.text(node)?,
        };
        let template = Template::parse(&text);
        self.check_template(&template, site);
        Some(template)
    }

    fn check_template(&mut self, template: &Template, site: ReferenceSite) {
        for range in template.odd() {
            let span = self
                .walk
                .source()
                .span_within(self.walk.path(), range.start, range.end);
            let message = "this looks like a reference but is none".to_owned();
            let help = Some("write {root.name}, without spaces".to_owned());
            self.push(DiagnosticSeverity::Error, "TM-012", span, message, help);
        }
        for reference in template.references() {
            if let Some(unknown) = self.names.check(reference, site) {
                let span = self.walk.source().span_within(
                    self.walk.path(),
                    reference.range.start,
                    reference.range.end,
                );
                let severity = if unknown.warning {
                    DiagnosticSeverity::Warning
                } else {
                    DiagnosticSeverity::Error
                };
                self.push(severity, unknown.code, span, unknown.message, unknown.help);
            }
        }
    }

    pub(super) fn url(&mut self, node: NodeRef<'s>, site: ReferenceSite) -> Option<UrlTemplate> {
        self.url_below(node, site, None)
    }

    /// The same; one that is only a path stands behind a base.
    pub(super) fn url_below(
        &mut self,
        node: NodeRef<'s>,
        site: ReferenceSite,
        base: Option<&UrlTemplate>,
    ) -> Option<UrlTemplate> {
        let mut template = self.template(node, site)?;
        if let Some(base) = base
            && template.source().starts_with('/')
        {
            let base = base.template().source().trim_end_matches('/');
            template = Template::parse(&format!("{base}{}", template.source()));
        }
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

    pub(super) fn method(&mut self, node: NodeRef<'s>, site: ReferenceSite) -> Option<Template> {
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

    pub(super) fn headers(
        &mut self,
        node: NodeRef<'s>,
        site: ReferenceSite,
    ) -> Option<Vec<HeaderTemplate>> {
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
        site: ReferenceSite,
    ) -> Option<Vec<(String, Template)>> {
        let Some(entries) = node.entries() else {
            self.mismatch(node, "a mapping");
            return None;
        };
        let mut map = Vec::new();
        for (key, value) in entries {
            let template = self.within(PathSegment::Key(key), |decoder| {
                decoder.template(value, site)
            });
            map.extend(template.map(|template| (key.to_owned(), template)));
        }
        Some(map)
    }

    /// A value whose texts may hold references.
    pub(super) fn body(&mut self, node: NodeRef<'s>, site: ReferenceSite) -> Option<BodyTemplate> {
        self.check_texts(node, site);
        Some(BodyTemplate::new(&self.value(node)))
    }

    fn check_texts(&mut self, node: NodeRef<'s>, site: ReferenceSite) {
        for (index, item) in node.items().into_iter().flatten().enumerate() {
            self.within(PathSegment::Index(index), |decoder| {
                decoder.check_texts(item, site);
            });
        }
        for (key, item) in node.entries().into_iter().flatten() {
            self.within(PathSegment::Key(key), |decoder| {
                decoder.check_texts(item, site);
            });
        }
        if let Some(YamlScalar::Text(text)) = node.scalar() {
            self.check_template(&Template::parse(text), site);
        }
    }

    /// A CEL expression that may read these variables.
    pub(super) fn cel(&mut self, node: NodeRef<'s>, variables: &[&str]) -> Option<Program> {
        self.cel_with(node, variables, &compiler())
    }

    /// A CEL expression that may also call what this compiler knows.
    pub(super) fn cel_with(
        &mut self,
        node: NodeRef<'s>,
        variables: &[&str],
        compiler: &Compiler,
    ) -> Option<Program> {
        let text = self.text(node)?;
        let program = match compiler.compile(&text) {
            Ok(program) => program,
            Err(error) => {
                let span = match error.offset {
                    Some(offset) => {
                        self.walk
                            .source()
                            .span_within(self.walk.path(), offset, offset)
                    }
                    None => self.walk.source().span_of(self.walk.path()),
                };
                let message = format!("not a CEL expression: {}", error.message);
                self.push(DiagnosticSeverity::Error, "TM-009", span, message, None);
                return None;
            }
        };
        self.check_names(&program, variables);
        Some(program)
    }

    /// Reports the variables and functions that an expression cannot have.
    pub(super) fn check_names(&mut self, program: &Program, variables: &[&str]) {
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
        let parsed = Durations::POSITIVE.parse(&text).ok();
        let parsed = parsed.map(|duration| duration.min(FOR_EVER));
        if parsed.is_none() {
            let shown: String = text.chars().take(40).collect();
            let help = Some("write `90s`, `5m`, `72h` or `7d`".to_owned());
            self.error("TM-016", format!("`{shown}` is not a duration"), help);
        }
        parsed
    }
}

/// A compiler for the expressions of manifests: CEL, and `has(name)` of a variable, which people write about `event`.
#[must_use]
pub fn compiler() -> Compiler {
    Compiler::new(ExprLimits::default()).extended()
}
