//! Hover: what is wrong at a place, with the page of the rule, and what the key there is for.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::cursor::key_at;
use crate::formats::{FileKind, explain};
use crate::schema_walk::SchemaWalk;
use crate::server::EditedDocument;
use crate::text::LspPlace;

/// Findings that are explained at one place.
const MAX_PAGES: usize = 4;
/// Values that are listed.
const MAX_VALUES: usize = 40;

/// What is to be said about a place.
pub(crate) fn hover(document: &EditedDocument, place: LspPlace) -> Value {
    let buffer = &document.buffer;
    let offset = buffer.offset(place);
    let mut page = String::new();
    let here = document.findings.iter().filter(|finding| {
        let range = finding.span.map(|span| span.range());
        range.is_some_and(|range| range.start <= offset && offset <= range.end)
    });
    for finding in here.take(MAX_PAGES) {
        let _ = writeln!(page, "**{}** {}\n", finding.code, finding.message);
        if let Some(explained) = explain(finding.code) {
            let _ = writeln!(page, "{}\n", explained.text.trim());
        }
    }
    let start = buffer.line_start(place.line);
    if let Some((path, part)) = key_at(buffer, place.line, offset.saturating_sub(start))
        && let Some(kind) = FileKind::recognized(document.path.as_deref(), buffer.text())
    {
        let schema = kind
            .format(&buffer.text()[buffer.line_start(part)..])
            .schema();
        let walk = SchemaWalk::new(&schema);
        if let Some(doc) = walk.doc(&path) {
            let _ = writeln!(page, "{doc}\n");
        }
        let values = walk.values(&path);
        if !values.is_empty() {
            let shown = values.iter().take(MAX_VALUES);
            let shown: Vec<String> = shown.map(|value| format!("`{}`", value.label)).collect();
            let _ = writeln!(page, "Values: {}", shown.join(", "));
        }
    }
    match page.trim() {
        "" => Value::Null,
        page => json!({"contents": {"kind": "markdown", "value": page}}),
    }
}
