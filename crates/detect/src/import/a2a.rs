//! A2A 1.0 seen as 0.3, which is what documents are written against.

use proofhouse_protocol::a2a::values::FILE_MEMBERS;
use proofhouse_protocol::a2a::{A2aMethod, A2aShape, A2aTaskState, A2aVersion};
use serde_json::{Map, Value, json};

/// The operation of a 1.0 method.
pub(crate) fn operation(method: &str) -> Option<A2aMethod> {
    let (method, version) = A2aMethod::parse(method)?;
    (version == A2aVersion::V1_0).then_some(method)
}

/// What the wrapper of a 1.0 result or stream item holds; `None` for a result that is not one of 1.0.
pub(crate) fn wrapped(result: &Value) -> Option<A2aShape> {
    let map = result.as_object()?;
    let holds = |shape: &&A2aShape| map.get(shape.member()).is_some_and(Value::is_object);
    let shape = A2aShape::ALL.iter().find(holds)?;
    (map.len() == 1).then_some(*shape)
}

/// The 0.3 form of a 1.0 result, params or stream item. What is not known is left as it is.
pub(crate) fn project(content: &Value, is_result: bool) -> Value {
    if is_result && let Some(shape) = wrapped(content) {
        let mut inner = translate(content.get(shape.member()).unwrap_or(&Value::Null));
        if let Some(map) = inner.as_object_mut() {
            map.entry("kind").or_insert_with(|| shape.kind().into());
            if shape == A2aShape::StatusUpdate {
                let state = map.get("status").and_then(|status| status.get("state"));
                let state = state.and_then(Value::as_str).and_then(A2aTaskState::parse);
                let ended = state.is_some_and(A2aTaskState::is_terminal);
                map.entry("final").or_insert(ended.into());
            }
        }
        return inner;
    }
    translate(content)
}

/// Walks down the places that the protocol defines; data parts and metadata are the author's.
fn translate(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(translate).collect(),
        Value::Object(map) => Value::Object(translate_object(map)),
        other => other.clone(),
    }
}

fn translate_object(map: &Map<String, Value>) -> Map<String, Value> {
    let mut result = Map::with_capacity(map.len() + 1);
    for (key, value) in map {
        let translated = match key.as_str() {
            "parts" => match value {
                Value::Array(parts) => parts.iter().map(part).collect(),
                other => other.clone(),
            },
            "role" => enum_value(value, "ROLE_"),
            "state" => enum_value(value, "TASK_STATE_"),
            "metadata" | "data" => value.clone(),
            _ => translate(value),
        };
        result.insert(key.clone(), translated);
    }
    // Messages and tasks are told by kind in 0.3; in 1.0 by their place.
    if !result.contains_key("kind") {
        if result.contains_key("parts") && result.contains_key("role") {
            result.insert("kind".into(), A2aShape::Message.kind().into());
        } else if result.contains_key("id") && result.get("status").is_some_and(Value::is_object) {
            result.insert("kind".into(), A2aShape::Task.kind().into());
        }
    }
    result
}

/// `TASK_STATE_INPUT_REQUIRED` is `input-required`.
fn enum_value(value: &Value, prefix: &str) -> Value {
    match value.as_str().and_then(|text| text.strip_prefix(prefix)) {
        Some(name) => name.to_ascii_lowercase().replace('_', "-").into(),
        None => value.clone(),
    }
}

fn part(part: &Value) -> Value {
    let Some(map) = part.as_object() else {
        return part.clone();
    };
    if map.contains_key("kind") {
        return part.clone();
    }
    let mut result = map.clone();
    if map.contains_key("text") {
        result.insert("kind".into(), "text".into());
    } else if map.contains_key("data") {
        result.insert("kind".into(), "data".into());
    } else if map.contains_key("raw") || map.contains_key("url") {
        let mut file = json!({});
        for (legacy, modern) in FILE_MEMBERS {
            if let Some(value) = result.shift_remove(modern) {
                file[legacy] = value;
            }
        }
        result.insert("kind".into(), "file".into());
        result.insert("file".into(), file);
    }
    Value::Object(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_unwrapped_and_named() {
        for (modern, legacy) in [
            (
                json!({"task": {"id": "1", "status": {"state": "TASK_STATE_INPUT_REQUIRED"},
                    "artifacts": [{"parts": [{"text": "hi"}]}]}}),
                json!({"id": "1", "status": {"state": "input-required"},
                    "artifacts": [{"parts": [{"text": "hi", "kind": "text"}]}], "kind": "task"}),
            ),
            (
                json!({"message": {"role": "ROLE_AGENT", "parts": [
                    {"url": "https://x", "mediaType": "a/b", "filename": "f"}, {"data": {"role": "ROLE_USER"}}]}}),
                json!({"role": "agent", "parts": [
                    {"kind": "file", "file": {"uri": "https://x", "mimeType": "a/b", "name": "f"}},
                    {"data": {"role": "ROLE_USER"}, "kind": "data"}], "kind": "message"}),
            ),
            (
                json!({"statusUpdate": {"taskId": "1", "status": {"state": "TASK_STATE_COMPLETED"}}}),
                json!({"taskId": "1", "status": {"state": "completed"}, "kind": "status-update", "final": true}),
            ),
            (
                json!({"other": [1, "ROLE_USER"]}),
                json!({"other": [1, "ROLE_USER"]}),
            ),
            (json!("text"), json!("text")),
        ] {
            assert_eq!(project(&modern, true), legacy);
        }
    }

    #[test]
    fn params_keep_their_wrapper() {
        let params = json!({"message": {"role": "ROLE_USER", "parts": [{"text": "hi"}]}});
        assert_eq!(
            project(&params, false),
            json!({"message": {"role": "user", "parts": [{"text": "hi", "kind": "text"}], "kind": "message"}}),
        );
    }
}
