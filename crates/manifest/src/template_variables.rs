//! Template variables: what the description of a bundle declares and the manifests after it refer to as `{template.name}`.
//! They are put in before a manifest is read, so no manifest has one.

use std::borrow::Cow;

use proofhouse_source::{Diagnostic, DiagnosticSeverity, ReplacedText, Span, SpanShift};
use serde_json::Value;

/// What a reference starts with.
const START: &str = "{template.";

/// The variables of a bundle.
#[derive(Debug, Default)]
pub(super) struct TemplateVariables {
    /// Names and values, if the bundle declares any.
    declared: Option<Vec<(String, Option<String>)>>,
    /// Those that were referred to and have no value.
    unset: Vec<String>,
}

impl TemplateVariables {
    /// What a description declares. One that need not have a value and has none is empty.
    pub(super) fn declared(description: &Value) -> Self {
        let listed = description
            .get("templateVariables")
            .and_then(Value::as_array);
        let declared = listed.map(|listed| {
            let variable = |variable: &Value| {
                let name = variable.get("name")?.as_str()?.to_owned();
                let is_required = variable.get("required").and_then(Value::as_bool);
                let default = match variable.get("default") {
                    Some(Value::String(text)) => Some(text.clone()),
                    Some(Value::Null) | None if is_required == Some(true) => None,
                    Some(Value::Null) | None => Some(String::new()),
                    Some(other) => Some(other.to_string()),
                };
                // A value is put into a line; it cannot begin another.
                let default = default.filter(|text| !text.chars().any(char::is_control));
                Some((name, default))
            };
            listed.iter().filter_map(variable).collect()
        });
        Self {
            declared,
            unset: Vec::new(),
        }
    }

    /// A manifest with the values in it, and where its places are in the file. One without a value stays as its name, so
    /// that the rest can be checked.
    pub(super) fn put_in<'t>(
        &mut self,
        text: &'t str,
        mut shift: SpanShift,
        findings: &mut Vec<Diagnostic>,
    ) -> (Cow<'t, str>, SpanShift) {
        let Some(declared) = &self.declared else {
            return (Cow::Borrowed(text), shift);
        };
        let mut made = String::new();
        let (mut rest, mut line) = (text, 1);
        while let Some(at) = rest.find(START) {
            let name = &rest[at + START.len()..];
            let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
            let name = &name[..end.unwrap_or(name.len())];
            let is_whole = rest[at + START.len() + name.len()..].starts_with('}');
            let before = &rest[..at];
            line += before.matches('\n').count();
            made.push_str(before);
            if !is_whole {
                made.push_str(START);
                rest = &rest[at + START.len()..];
                continue;
            }
            let taken = &rest[at..at + START.len() + name.len() + 1];
            let known = declared.iter().find(|(known, _)| known == name);
            let problem = match known {
                Some((_, Some(_))) => None,
                Some((_, None)) => Some((DiagnosticSeverity::Warning, "TM-038", "has no value")),
                None => Some((DiagnosticSeverity::Error, "TM-012", "is not declared")),
            };
            if let Some((severity, code, what)) = problem {
                if known.is_some() && self.unset.iter().all(|unset| unset != name) {
                    self.unset.push(name.to_owned());
                }
                let offset = text.len() - rest.len() + at;
                findings.push(problem_at(
                    severity, code, name, what, text, offset, line, &shift,
                ));
            }
            let put = known.and_then(|(_, value)| value.as_deref());
            let put = put.unwrap_or(name);
            shift.replaced.push(ReplacedText {
                offset: made.len(),
                line,
                put: (put.len(), put.chars().count()),
                taken: (taken.len(), taken.chars().count()),
            });
            made.push_str(put);
            rest = &rest[at + taken.len()..];
        }
        if shift.replaced.is_empty() {
            return (Cow::Borrowed(text), shift);
        }
        made.push_str(rest);
        (Cow::Owned(made), shift)
    }

    /// The variables that were referred to and have no value.
    pub(super) fn into_unset(self) -> Vec<String> {
        self.unset
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "what is wrong, and where; there is one caller"
)]
fn problem_at(
    severity: DiagnosticSeverity,
    code: &'static str,
    name: &str,
    what: &str,
    text: &str,
    offset: usize,
    line: usize,
    shift: &SpanShift,
) -> Diagnostic {
    let start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
    let shown: String = name.chars().take(60).collect();
    let help = match severity {
        DiagnosticSeverity::Warning => "set its `default` in the description of the bundle",
        DiagnosticSeverity::Error => "list it in `templateVariables` of the description",
    };
    Diagnostic {
        severity,
        code,
        path: None,
        span: Some(Span {
            offset: shift.offset + offset,
            length: START.len(),
            line: shift.line + line,
            column: text[start..offset].chars().count() + 1,
        }),
        message: format!("the template variable `{shown}` {what}"),
        help: Some(help.to_owned()),
    }
}
