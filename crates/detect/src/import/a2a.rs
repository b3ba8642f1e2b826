//! A2A 1.0 seen as 0.3, which is what documents are written against.

use serde_json::{Map, Value, json};

/// The operation of a 1.0 method.
pub(crate) fn operation(method: &str) -> Option<&'static str> {
    Some(match method {
        "SendMessage" => "message/send",
        "SendStreamingMessage" => "message/stream",
        "GetTask" => "tasks/get",
        "CancelTask" => "tasks/cancel",
        "ListTasks" => "tasks/list",
        "SubscribeToTask" => "tasks/resubscribe",
        "CreateTaskPushNotificationConfig" => "tasks/pushNotificationConfig/set",
        "GetTaskPushNotificationConfig" => "tasks/pushNotificationConfig/get",
        "ListTaskPushNotificationConfigs" => "tasks/pushNotificationConfig/list",
        "DeleteTaskPushNotificationConfig" => "tasks/pushNotificationConfig/delete",
        "GetExtendedAgentCard" => "agent/getAuthenticatedExtendedCard",
        _ => return None,
    })
}

/// Whether a result has a shape that only 1.0 has.
pub(crate) fn is_modern_result(result: &Value) -> bool {
    wrapped(result).is_some()
}

/// The wrapper of a 1.0 result or stream item, and the kind 0.3 gives it.
fn wrapped(result: &Value) -> Option<(&'static str, &'static str)> {
    let map = result.as_object()?;
    if map.contains_key("kind") {
        return None;
    }
    [
        ("task", "task"),
        ("message", "message"),
        ("statusUpdate", "status-update"),
        ("artifactUpdate", "artifact-update"),
    ]
    .into_iter()
    .find(|(key, _)| map.get(*key).is_some_and(Value::is_object) && map.len() == 1)
}

/// The 0.3 form of a 1.0 result, params or stream item. What is not known is left as it is.
pub(crate) fn project(content: &Value, is_result: bool) -> Value {
    if is_result && let Some((key, kind)) = wrapped(content) {
        let mut inner = translate(content.get(key).unwrap_or(&Value::Null));
        if let Some(map) = inner.as_object_mut() {
            map.entry("kind").or_insert_with(|| kind.into());
            if kind == "status-update" {
                let ended = map.get("status").and_then(|status| status.get("state"));
                let ended = ended.and_then(Value::as_str).is_some_and(is_terminal);
                map.entry("final").or_insert(ended.into());
            }
        }
        return inner;
    }
    translate(content)
}

fn is_terminal(state: &str) -> bool {
    matches!(state, "completed" | "canceled" | "failed" | "rejected")
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
            result.insert("kind".into(), "message".into());
        } else if result.contains_key("id") && result.get("status").is_some_and(Value::is_object) {
            result.insert("kind".into(), "task".into());
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
        for (old, new) in [
            ("raw", "bytes"),
            ("url", "uri"),
            ("mediaType", "mimeType"),
            ("filename", "name"),
        ] {
            if let Some(value) = result.shift_remove(old) {
                file[new] = value;
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
