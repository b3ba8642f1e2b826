//! Code actions: what a finding says was probably meant, as an edit.

use std::ops::Range;

use proofhouse_source::{Diagnostic, did_you_mean};
use serde_json::{Value, json};

use crate::diagnostics;
use crate::server::EditedDocument;
use crate::text::LspPlace;

/// Actions that are offered at once.
const MAX_ACTIONS: usize = 20;

/// What can be done about the findings between two places.
pub(crate) fn actions(document: &EditedDocument, uri: &str, from: LspPlace, to: LspPlace) -> Value {
    let buffer = &document.buffer;
    let (from, to) = (buffer.offset(from), buffer.offset(to));
    let touched = document.findings.iter().filter(|finding| {
        let range = finding.span.map(|span| span.range());
        range.is_some_and(|range| range.start <= to && from <= range.end)
    });
    let fixes = touched.filter_map(|finding| {
        let (range, word) = replacement(buffer.text(), finding)?;
        let mut changes = serde_json::Map::new();
        let edit = json!([{"range": buffer.range(range), "newText": word}]);
        changes.insert(uri.to_owned(), edit);
        Some(json!({
            "title": format!("Change to `{word}`"),
            "kind": "quickfix",
            "isPreferred": true,
            "diagnostics": [diagnostics::one(buffer, finding)],
            "edit": {"changes": changes},
        }))
    });
    fixes.take(MAX_ACTIONS).collect()
}

/// What a finding would have replaced, and by what.
fn replacement(text: &str, finding: &Diagnostic) -> Option<(Range<usize>, String)> {
    let help = finding.help.as_deref()?;
    let (_, rest) = help.split_once("did you mean `")?;
    let (word, _) = rest.split_once('`')?;
    let span = finding.span?.range();
    let written = text.get(span.clone())?;
    // A place may be more than the word: with quotes, or with what stands after a key.
    let is_word = |c: char| c.is_alphanumeric() || "_-./$".contains(c);
    let mut at = 0;
    while at < written.len() {
        let rest = &written[at..];
        let begin = at + rest.find(is_word)?;
        let rest = &written[begin..];
        let end = begin + rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if did_you_mean(&written[begin..end], [word]).is_some() {
            return Some((span.start + begin..span.start + end, word.to_owned()));
        }
        at = end;
    }
    None
}
