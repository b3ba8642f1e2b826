//! Fills in what documents may leave out and the protocol asks for. What is there is never replaced.

use std::hash::{BuildHasher, Hasher, RandomState};

use proofhouse_protocol::a2a::{A2aShape, A2aVersion, values};
use serde_json::{Map, Value, json};

/// The task and the context an answer belongs to.
#[derive(Debug, Clone)]
pub(in crate::drivers) struct Ids {
    pub(in crate::drivers) task: String,
    pub(in crate::drivers) context: String,
}

impl Ids {
    /// Those of the message that is answered, or new ones.
    pub(in crate::drivers) fn of_request(params: &Value) -> Self {
        let told = |key: &str| {
            let id = params.get("message")?.get(key)?.as_str()?;
            (!id.is_empty()).then(|| id.to_owned())
        };
        Self {
            task: told("taskId").unwrap_or_else(fresh_id),
            context: told("contextId").unwrap_or_else(fresh_id),
        }
    }
}

/// An id that nobody has used.
pub(in crate::drivers) fn fresh_id() -> String {
    // The seeds of hash maps are random; that is enough for ids that only need to differ.
    let half = || RandomState::new().build_hasher().finish();
    let (high, low) = (half(), half());
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}

/// Completes a result or stream item that is in the form of 0.3.
pub(in crate::drivers) fn complete(shape: A2aShape, value: &mut Value, ids: &Ids) {
    let Value::Object(map) = value else { return };
    match shape {
        A2aShape::Task => complete_task(map, ids),
        A2aShape::Message => complete_message(map, "agent"),
        A2aShape::StatusUpdate => {
            fill_ids(map, ids);
            complete_status(map);
        }
        A2aShape::ArtifactUpdate => {
            fill_ids(map, ids);
            if let Some(Value::Object(artifact)) = map.get_mut("artifact") {
                complete_artifact(artifact);
            }
        }
    }
}

/// Completes the message of a request.
pub(in crate::drivers) fn complete_request(params: &mut Value) {
    if let Some(Value::Object(message)) = params.get_mut("message") {
        complete_message(message, "user");
    }
}

/// The task that is answered when the document says nothing.
pub(in crate::drivers) fn empty_task(ids: &Ids) -> Value {
    json!({"kind": "task", "id": ids.task, "contextId": ids.context, "status": {"state": "completed"}})
}

fn complete_task(map: &mut Map<String, Value>, ids: &Ids) {
    fill(map, "id", || ids.task.as_str().into());
    fill(map, "contextId", || ids.context.as_str().into());
    complete_status(map);
    if let Some(Value::Array(artifacts)) = map.get_mut("artifacts") {
        for artifact in artifacts.iter_mut().filter_map(Value::as_object_mut) {
            complete_artifact(artifact);
        }
    }
    if let Some(Value::Array(history)) = map.get_mut("history") {
        for message in history.iter_mut().filter_map(Value::as_object_mut) {
            complete_message(message, "agent");
        }
    }
}

/// A status may be written as the bare state, with the message beside it; clients only find the
/// message where the protocol has it.
fn complete_status(map: &mut Map<String, Value>) {
    let beside = map.get("message").filter(|message| message.is_object());
    let beside = beside.map(|message| values::message(message, A2aVersion::V0_3));
    let status = map
        .entry("status")
        .or_insert_with(|| json!({"state": "completed"}));
    if let Value::String(state) = status {
        let state = values::state(&std::mem::take(state).into(), A2aVersion::V0_3);
        *status = json!({ "state": state });
    }
    let Value::Object(status) = status else {
        return;
    };
    fill(status, "state", || "completed".into());
    if let Some(beside) = beside {
        fill(status, "message", || beside);
    }
    if let Some(Value::Object(message)) = status.get_mut("message") {
        complete_message(message, "agent");
    }
}

fn complete_message(map: &mut Map<String, Value>, role: &str) {
    fill(map, "kind", || "message".into());
    fill(map, "messageId", || fresh_id().into());
    fill(map, "role", || role.into());
    complete_parts(map);
}

/// Older documents give an artifact's `content` in place of parts.
fn complete_artifact(map: &mut Map<String, Value>) {
    fill(map, "artifactId", || fresh_id().into());
    if !map.contains_key("parts") {
        match map.get("content").cloned() {
            Some(Value::String(text)) => {
                map.insert("parts".to_owned(), json!([{"kind": "text", "text": text}]));
            }
            Some(data @ Value::Object(_)) => {
                map.insert("parts".to_owned(), json!([{"kind": "data", "data": data}]));
            }
            _ => {}
        }
    }
    complete_parts(map);
}

fn complete_parts(map: &mut Map<String, Value>) {
    if let Some(Value::Array(parts)) = map.get_mut("parts") {
        for part in parts {
            *part = values::part(part, A2aVersion::V0_3);
        }
    }
}

fn fill_ids(map: &mut Map<String, Value>, ids: &Ids) {
    fill(map, "taskId", || ids.task.as_str().into());
    fill(map, "contextId", || ids.context.as_str().into());
}

pub(super) fn fill(map: &mut Map<String, Value>, key: &str, value: impl FnOnce() -> Value) {
    map.entry(key).or_insert_with(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> Ids {
        Ids {
            task: "t".to_owned(),
            context: "c".to_owned(),
        }
    }

    #[test]
    fn what_is_missing_is_filled_and_what_is_there_stays() {
        let (shape, mut task) =
            A2aShape::recognise(&json!({"id": "task-021", "status": "completed",
            "artifacts": [{"name": "a.csv", "content": "1,2"}],
            "message": {"role": "agent", "parts": [{"type": "text", "text": "done"}]}}))
            .unwrap();
        complete(shape, &mut task, &ids());
        assert_eq!(
            (task["kind"].as_str(), task["id"].as_str()),
            (Some("task"), Some("task-021"))
        );
        assert_eq!(task["contextId"], "c");
        assert_eq!(task["status"]["state"], "completed");
        assert_eq!(task["status"]["message"]["parts"][0]["kind"], "text");
        assert!(task["status"]["message"]["messageId"].is_string());
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], "1,2");
        assert!(task["artifacts"][0]["artifactId"].is_string());

        let whole = json!({"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]});
        let (shape, mut message) = A2aShape::recognise(&whole).unwrap();
        complete(shape, &mut message, &ids());
        assert_eq!(message, whole);

        let (shape, mut update) =
            A2aShape::recognise(&json!({"kind": "artifact-update", "artifact": {"parts": []}}))
                .unwrap();
        complete(shape, &mut update, &ids());
        assert_eq!(
            (&update["taskId"], &update["contextId"]),
            (&json!("t"), &json!("c"))
        );
        assert!(update["artifact"]["artifactId"].is_string());
    }

    #[test]
    fn the_ids_of_the_message_are_taken_up() {
        let ids = Ids::of_request(&json!({"message": {"taskId": "t", "contextId": ""}}));
        assert_eq!(ids.task, "t");
        assert_eq!(ids.context.len(), 36);
        assert_ne!(fresh_id(), fresh_id());
    }
}
