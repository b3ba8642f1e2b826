//! Findings in the form of the protocol.

use proofhouse_source::{Diagnostic, DiagnosticSeverity};
use serde_json::{Value, json};

use crate::text::TextBuffer;

/// Findings of one document that are shown.
const MAX_SHOWN: usize = 1000;

/// The findings of a document for a client.
pub(crate) fn shown(buffer: &TextBuffer, findings: &[Diagnostic]) -> Value {
    let shown = findings.iter().take(MAX_SHOWN);
    shown.map(|finding| one(buffer, finding)).collect()
}

/// One finding. What to do about it stands below what is wrong.
pub(crate) fn one(buffer: &TextBuffer, finding: &Diagnostic) -> Value {
    let severity = match finding.severity {
        DiagnosticSeverity::Error => 1,
        DiagnosticSeverity::Warning => 2,
    };
    let message = match &finding.help {
        Some(help) => format!("{}\n{help}", finding.message),
        None => finding.message.clone(),
    };
    json!({
        "range": buffer.range(finding.span.map_or(0..0, |span| span.range())),
        "severity": severity,
        "code": finding.code,
        "source": "proofhouse",
        "message": message,
        "data": {"path": finding.path, "message": finding.message, "help": finding.help},
    })
}
