//! Text walkers: which fields of a message hold text that a person or a model reads.

use serde_json::Value;

/// Collects every text of an answer of MCP or A2A, each followed by a line break: the `text` of all parts and
/// content blocks, however deep. What was asked (`history`) is no answer and is left out. Texts are no longer
/// added once `said` has `max_bytes`.
///
/// ```
/// use proofhouse_protocol::text::collect_answer;
/// use serde_json::json;
///
/// let task = json!({
///     "history": [{"parts": [{"text": "the question"}]}],
///     "artifacts": [{"parts": [{"kind": "text", "text": "one"}]}],
///     "status": {"message": {"parts": [{"text": "two"}]}},
/// });
/// let mut said = String::new();
/// collect_answer(&task, usize::MAX, &mut said);
/// assert_eq!(said, "one\ntwo\n");
/// ```
pub fn collect_answer(answer: &Value, max_bytes: usize, said: &mut String) {
    match answer {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    _ if key == "history" => {}
                    Value::String(text) if key == "text" => {
                        if said.len() < max_bytes {
                            said.push_str(text);
                            said.push('\n');
                        }
                    }
                    other => collect_answer(other, max_bytes, said),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_answer(item, max_bytes, said);
            }
        }
        _ => {}
    }
}

/// The text of one part or content block, of any protocol.
///
/// ```
/// use proofhouse_protocol::text::of_part;
/// use serde_json::json;
///
/// assert_eq!(of_part(&json!({"type": "text", "text": "hi"})), Some("hi"));
/// assert_eq!(of_part(&json!({"kind": "data", "data": {}})), None);
/// ```
#[must_use]
pub fn of_part(part: &Value) -> Option<&str> {
    part.get("text").and_then(Value::as_str)
}

/// The texts of a list of parts or content blocks, in order; parts of another kind have none.
///
/// ```
/// use proofhouse_protocol::text::of_parts;
/// use serde_json::json;
///
/// let content = json!([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]);
/// assert_eq!(of_parts(&content).collect::<Vec<_>>(), ["a", "b"]);
/// assert_eq!(of_parts(&json!("no list")).count(), 0);
/// ```
pub fn of_parts(parts: &Value) -> impl Iterator<Item = &str> {
    parts.as_array().into_iter().flatten().filter_map(of_part)
}
