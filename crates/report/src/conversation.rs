//! A recorded conversation as people read it: who said what to whom, with the evidence at its message.

use proofhouse_campaign::message_origin::is_by_subject;
use proofhouse_campaign::result::{DocumentInfo, IndicatorOutcome};
use proofhouse_detect::TraceMessage;
use serde_json::Value;

use proofhouse_source::printable_line;

use crate::quoting::{escaped_json, quoted};

/// Characters of what a message says that are shown of it.
const GIST: usize = 160;
/// Texts of one message that are looked for.
const MAX_TEXTS: usize = 50;
/// Names of a list that are told.
const MAX_NAMES: usize = 8;
/// Characters of evidence that are shown.
const EVIDENCE: usize = 120;

/// What single actors and phases are called that their document does not name.
pub(crate) const UNNAMED: &str = "default";

/// The name of a participant for people.
pub(crate) fn shown_name(participant: &str) -> &str {
    if participant == UNNAMED {
        "attacker"
    } else {
        participant
    }
}

/// Who says a message to whom.
#[must_use]
pub fn arrow(document: Option<&DocumentInfo>, subject: &str, message: &TraceMessage) -> String {
    let actor = message.actor.as_deref().map_or("attacker", shown_name);
    let by_subject = document.and_then(|document| is_by_subject(document, message));
    printable_line(&match by_subject {
        Some(true) => format!("{subject} → {actor}"),
        Some(false) => format!("{actor} → {subject}"),
        None => format!("{actor} – {subject}"),
    })
}

/// The most telling part of a message, on one line.
#[must_use]
pub fn gist(message: &TraceMessage) -> String {
    let content = &message.content;
    if let (Some(name), Some(arguments)) = (content["name"].as_str(), content.get("arguments")) {
        let arguments = escaped_json(&arguments.to_string());
        // A result repeats what was asked for; what it says is more telling.
        if content.get("content").is_none() {
            return cut(&format!("{} {arguments}", printable_line(name)));
        }
    }
    let mut texts = Vec::new();
    collect(content, &mut texts);
    if !texts.is_empty() {
        return quoted(&texts.join(" "), GIST);
    }
    for list in ["tools", "resources", "prompts", "skills"] {
        if let Some(items) = content.get(list).and_then(Value::as_array) {
            return cut(&names(list, items));
        }
    }
    // What implementations say about themselves is in every message, and tells nobody anything.
    let mut rest = content.clone();
    if let Some(fields) = rest.as_object_mut() {
        fields.remove("_meta");
    }
    cut(&escaped_json(&rest.to_string()))
}

/// A message in full, a line each.
#[must_use]
pub fn full(message: &TraceMessage) -> Vec<String> {
    let text = escaped_json(&format!("{:#}", message.content));
    text.lines().map(str::to_owned).collect()
}

/// The evidence in a message.
#[must_use]
pub fn evidence(indicators: &[IndicatorOutcome], sequence: u64) -> Vec<String> {
    let mut lines = Vec::new();
    for indicator in indicators {
        let here = indicator.evidence.iter();
        for evidence in here.filter(|evidence| evidence.seq == sequence) {
            let path = evidence.path.as_deref().unwrap_or("content");
            let text = evidence.text.as_deref().unwrap_or_default();
            lines.push(format!(
                "{} {}: {}",
                printable_line(&indicator.id),
                printable_line(path),
                quoted(text, EVIDENCE)
            ));
        }
    }
    lines
}

fn names(list: &str, items: &[Value]) -> String {
    let name = |item: &Value| {
        let name = item.get("name").or_else(|| item.get("uri"));
        name.and_then(Value::as_str).unwrap_or("?").to_owned()
    };
    let mut names: Vec<String> = items.iter().take(MAX_NAMES).map(name).collect();
    if items.len() > MAX_NAMES {
        names.push("…".to_owned());
    }
    printable_line(&format!("{} {list}: {}", items.len(), names.join(", ")))
}

/// The texts that people would read in a message. The reader of the recording bounds the depth.
fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    if texts.len() >= MAX_TEXTS {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text)
                        if matches!(key.as_str(), "text" | "delta" | "instructions")
                            // Of an AG-UI message; elsewhere `content` is a list.
                            || (key == "content" && !text.is_empty()) =>
                    {
                        texts.push(text);
                    }
                    other => collect(other, texts),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        _ => {}
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(GIST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_gist_is_what_people_look_for() {
        for (content, expected) in [
            (
                json!({"name": "read", "arguments": {"path": "a"}}),
                "read {\"path\":\"a\"}",
            ),
            (
                json!({"tools": [{"name": "a"}, {"name": "b"}]}),
                "2 tools: a, b",
            ),
            (
                json!({"name": "read", "arguments": {}, "content": [{"type": "text", "text": "Hi \u{202e}"}]}),
                "\"Hi \\u{202e}\"",
            ),
            (json!({"delta": "word"}), "\"word\""),
            (json!({"_meta": {"a": 1}}), "{}"),
            (
                json!({"cursor": "\u{1b}[2J"}),
                "{\"cursor\":\"\\u001b[2J\"}",
            ),
        ] {
            assert_eq!(gist(&TraceMessage::new("mcp", "x", content)), expected);
        }
        let long = TraceMessage::new("mcp", "x", json!({"text": "a".repeat(10_000)}));
        assert!(gist(&long).chars().count() < 200);
    }
}
