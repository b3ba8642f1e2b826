//! What a result or a stream item is: a task, a message, an update, or nothing that is known.

use serde_json::{Value, json};

use super::{A2aTaskState, A2aVersion, values};

/// What results and stream items can be.
///
/// ```
/// use proofhouse_protocol::a2a::{A2aShape, A2aVersion, translate_item};
/// use serde_json::json;
///
/// let new = json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}});
/// let (shape, old) = A2aShape::recognise(&new).unwrap();
/// assert_eq!((shape, &old["kind"], &old["role"]), (A2aShape::Message, &json!("message"), &json!("agent")));
/// assert_eq!(translate_item(&old, A2aVersion::V1_0), new);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum A2aShape {
    /// A task.
    Task,
    /// A message.
    Message,
    /// How far a task is now.
    StatusUpdate,
    /// What a task has come to.
    ArtifactUpdate,
}

impl A2aShape {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Task,
        Self::Message,
        Self::StatusUpdate,
        Self::ArtifactUpdate,
    ];

    /// Its `kind` in 0.3.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Message => "message",
            Self::StatusUpdate => "status-update",
            Self::ArtifactUpdate => "artifact-update",
        }
    }

    /// The member of a result or stream item that holds it in 1.0.
    #[must_use]
    pub const fn member(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Message => "message",
            Self::StatusUpdate => "statusUpdate",
            Self::ArtifactUpdate => "artifactUpdate",
        }
    }

    /// The one with this `kind`.
    #[must_use]
    pub fn of_kind(kind: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|shape| shape.kind() == kind)
    }

    /// A value that is in the form of a generation already, as a result or a stream item of it: 1.0 wraps it.
    #[must_use]
    pub fn wrap(self, value: Value, version: A2aVersion) -> Value {
        match version {
            A2aVersion::V0_3 => value,
            A2aVersion::V1_0 => json!({ self.member(): value }),
        }
    }

    /// The value in a generation, not wrapped.
    #[must_use]
    pub fn translate(self, value: &Value, to: A2aVersion) -> Value {
        match self {
            Self::Task => values::task(value, to),
            Self::Message => values::message(value, to),
            Self::StatusUpdate => values::status_update(value, to),
            Self::ArtifactUpdate => values::artifact_update(value, to),
        }
    }

    /// The value as a result or a stream item of a generation.
    #[must_use]
    pub fn to_item(self, value: &Value, to: A2aVersion) -> Value {
        self.wrap(self.translate(value, to), to)
    }

    /// What a value is, with the value as 0.3 has it; `None` for what is neither generation's.
    #[must_use]
    pub fn recognise(value: &Value) -> Option<(Self, Value)> {
        recognise(value)
    }
}

fn recognise(value: &Value) -> Option<(A2aShape, Value)> {
    let map = value.as_object()?;
    let kind = map.get("kind").and_then(Value::as_str);
    if let Some(shape) = kind.and_then(A2aShape::of_kind) {
        return Some((shape, shape.translate(value, A2aVersion::V0_3)));
    }
    let shape = if map.get("artifact").is_some_and(Value::is_object) {
        A2aShape::ArtifactUpdate
    } else if map.contains_key("taskId") && has_status(value) {
        A2aShape::StatusUpdate
    } else if has_status(value) || map.get("artifacts").is_some_and(Value::is_array) {
        A2aShape::Task
    } else if map.get("parts").is_some_and(Value::is_array) {
        A2aShape::Message
    } else {
        return unwrapped(value);
    };
    Some((shape, shape.translate(value, A2aVersion::V0_3)))
}

/// Documents also write the bare state.
fn has_status(value: &Value) -> bool {
    match value.get("status") {
        Some(Value::Object(_)) => true,
        Some(Value::String(state)) => A2aTaskState::parse(state).is_some(),
        _ => false,
    }
}

/// The wrapper of 1.0 holds exactly one of its members.
fn unwrapped(value: &Value) -> Option<(A2aShape, Value)> {
    let mut found = A2aShape::ALL.iter().filter_map(|shape| {
        let inner = value.get(shape.member())?;
        inner.is_object().then_some((*shape, inner))
    });
    let (shape, inner) = found.next()?;
    if found.next().is_some() {
        return None;
    }
    let mut legacy = shape.translate(inner, A2aVersion::V0_3);
    // The wrapper says what it is, whatever stands inside.
    if let Some(map) = legacy.as_object_mut() {
        map.insert("kind".to_owned(), json!(shape.kind()));
    }
    Some((shape, legacy))
}

/// A result or a stream item in a generation; what is not recognised stays as it is.
#[must_use]
pub fn translate_item(value: &Value, to: A2aVersion) -> Value {
    match recognise(value) {
        Some((shape, legacy)) => shape.to_item(&legacy, to),
        None => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_say_the_same() {
        for (legacy, modern) in [
            (
                json!({"kind": "task", "id": "1", "contextId": "c", "status": {"state": "input-required",
                    "message": {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "hi"}]}},
                    "artifacts": [{"artifactId": "a", "parts": [{"kind": "data", "data": {"kind": "text"}}]}],
                    "history": [{"kind": "message", "messageId": "n", "role": "user", "parts": []}]}),
                json!({"task": {"id": "1", "contextId": "c", "status": {"state": "TASK_STATE_INPUT_REQUIRED",
                    "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}},
                    "artifacts": [{"artifactId": "a", "parts": [{"data": {"kind": "text"}}]}],
                    "history": [{"messageId": "n", "role": "ROLE_USER", "parts": []}]}}),
            ),
            (
                json!({"kind": "message", "messageId": "m", "role": "agent", "parts": [
                    {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "a/b", "name": "f"}, "metadata": {"x": 1}},
                    {"kind": "file", "file": {"uri": "https://x"}},
                    {"kind": "data", "data": {"value": 7}, "metadata": {"data_part_compat": true}}]}),
                json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [
                    {"raw": "aGk=", "mediaType": "a/b", "filename": "f", "metadata": {"x": 1}},
                    {"url": "https://x"}, {"data": 7}]}}),
            ),
            (
                json!({"kind": "status-update", "taskId": "1", "contextId": "c", "status": {"state": "failed"}, "final": true}),
                json!({"statusUpdate": {"taskId": "1", "contextId": "c", "status": {"state": "TASK_STATE_FAILED"}}}),
            ),
            (
                json!({"kind": "artifact-update", "taskId": "1", "contextId": "c", "append": true, "lastChunk": false,
                    "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]}}),
                json!({"artifactUpdate": {"taskId": "1", "contextId": "c", "append": true, "lastChunk": false,
                    "artifact": {"artifactId": "a", "parts": [{"text": "x"}]}}}),
            ),
        ] {
            for from in [&legacy, &modern] {
                assert_eq!(translate_item(from, A2aVersion::V0_3), legacy);
                assert_eq!(translate_item(from, A2aVersion::V1_0), modern);
            }
        }
    }

    #[test]
    fn the_wrapper_says_what_it_is() {
        for kind in [Value::Null, json!("other")] {
            let wrapped = json!({"task": {"kind": kind, "task": {}}});
            let legacy = translate_item(&wrapped, A2aVersion::V0_3);
            assert_eq!(legacy, json!({"kind": "task", "task": {}}));
            assert_eq!(translate_item(&legacy, A2aVersion::V0_3), legacy);
        }
    }

    #[test]
    fn the_unknown_stays_as_it_is() {
        for odd in [
            json!("text"),
            json!(null),
            json!([1]),
            json!({}),
            json!({"kind": "telegram"}),
            json!({"task": 3}),
            json!({"task": {}, "message": {}}),
            json!({"status": "gone fishing"}),
        ] {
            assert_eq!(recognise(&odd), None, "{odd}");
            assert_eq!(translate_item(&odd, A2aVersion::V1_0), odd);
        }
        let odd = json!({"kind": "task", "id": 3, "status": {"state": "resting", "timestamp": "soon"},
            "artifacts": [7, {"parts": [{"kind": "video", "text": "x"}, {"kind": "file", "file": {"bytes": "a", "uri": "b"}}]}],
            "history": "none", "extra": {"role": "user"}});
        let modern = translate_item(&odd, A2aVersion::V1_0);
        assert_eq!(modern["task"]["status"], odd["status"]);
        assert_eq!(modern["task"]["artifacts"], odd["artifacts"]);
        assert_eq!(modern["task"]["extra"], odd["extra"]);
        assert_eq!(translate_item(&modern, A2aVersion::V0_3), {
            let mut odd = odd;
            let kind = odd.as_object_mut().unwrap().shift_remove("kind").unwrap();
            odd["kind"] = kind;
            odd
        });
    }

    #[test]
    fn times_get_a_zone_only_where_they_have_none() {
        for (time, zoned) in [
            ("2026-01-02T03:04:05", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05.123", "2026-01-02T03:04:05.123Z"),
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05+01:00", "2026-01-02T03:04:05+01:00"),
            ("2026-01-02", "2026-01-02"),
            ("yesterday", "yesterday"),
        ] {
            let task = json!({"id": "1", "status": {"state": "working", "timestamp": time}});
            for to in [A2aVersion::V0_3, A2aVersion::V1_0] {
                let translated = translate_item(&task, to);
                let task = translated.get("task").unwrap_or(&translated);
                assert_eq!(task["status"]["timestamp"], zoned);
            }
        }
    }
}
