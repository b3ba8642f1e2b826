//! Text walkers: which fields of a message hold text that a person or a model reads.

use serde_json::{Map, Value};

use crate::a2a::A2aRole;

/// Collects every text of an answer of MCP or A2A, each followed by a line break: the `text` of all parts and
/// content blocks, however deep. What was asked (`history`, and messages of the user) is no answer and is left out, as is what no
/// person or model reads (`metadata`). Texts are no longer added once `said` has `max_bytes`.
///
/// ```
/// use proofhouse_protocol::text::collect_answer;
/// use serde_json::json;
///
/// let task = json!({
///     "metadata": {"text": "a note of the program"},
///     "history": [{"parts": [{"text": "the question"}]}],
///     "artifacts": [{"parts": [{"kind": "text", "text": "one"}]}],
///     "status": {"message": {"parts": [{"text": "two"}]}},
/// });
/// let mut said = String::new();
/// collect_answer(&task, usize::MAX, &mut said);
/// assert_eq!(said, "one\ntwo\n");
/// ```
pub fn collect_answer(answer: &Value, max_bytes: usize, said: &mut String) {
    // What is still to be looked at, the next one last, and whether it stands behind `text`.
    let mut open = vec![(answer, false)];
    while let Some((value, is_text)) = open.pop() {
        match value {
            Value::String(text) if is_text && said.len() < max_bytes => {
                said.push_str(text);
                said.push('\n');
            }
            Value::Object(fields) if is_of_user(fields) => {}
            Value::Object(fields) => {
                let said = fields
                    .iter()
                    .filter(|(key, _)| !UNSAID.contains(&key.as_str()));
                let values = said.map(|(key, value)| (value, key == "text"));
                open.extend(values.rev());
            }
            Value::Array(items) => open.extend(items.iter().rev().map(|item| (item, false))),
            _ => {}
        }
    }
}

/// Whether an answer of MCP or A2A has any content, with texts or without: parts of a message or of an artifact, blocks of a
/// result.
#[must_use]
pub fn has_answer_parts(answer: &Value) -> bool {
    let mut open = vec![answer];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) if is_of_user(fields) => {}
            Value::Object(fields) => {
                for (key, value) in fields {
                    match value {
                        _ if UNSAID.contains(&key.as_str()) => {}
                        Value::Array(items) if key == "parts" || key == "content" => {
                            if !items.is_empty() {
                                return true;
                            }
                        }
                        Value::Object(fields) if key == "structuredContent" => {
                            if !fields.is_empty() {
                                return true;
                            }
                        }
                        other => open.push(other),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

/// Members of an answer that are none.
const UNSAID: [&str; 3] = ["history", "metadata", "_meta"];

fn is_of_user(fields: &Map<String, Value>) -> bool {
    let role = fields.get("role").and_then(Value::as_str);
    role.and_then(A2aRole::parse) == Some(A2aRole::User)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_said_is_no_answer() {
        for role in ["user", "ROLE_USER", "agent", "ROLE_AGENT", "x"] {
            let answer = serde_json::json!({"role": role, "parts": [{"text": "hi"}]});
            let mut said = String::new();
            collect_answer(&answer, usize::MAX, &mut said);
            assert_eq!(said.is_empty(), !has_answer_parts(&answer), "{role}");
            assert_eq!(
                said.is_empty(),
                role.to_lowercase().contains("user"),
                "{role}"
            );
        }
    }

    #[test]
    fn an_answer_may_be_nested_deeper_than_any_stack() {
        let mut answer = serde_json::json!({"text": "end"});
        for _ in 0..30_000 {
            answer = Value::Array(vec![answer]);
        }
        let mut said = String::new();
        collect_answer(&answer, usize::MAX, &mut said);
        assert_eq!(said, "end\n");
        while let Value::Array(mut items) = answer {
            answer = items.pop().unwrap_or_default();
        }
    }
}
