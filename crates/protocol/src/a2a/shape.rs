//! What a result or a stream item is: a task, a message, an update, or nothing that is known.

use serde_json::{Value, json};

use super::methods::Generation;
use super::values;

/// What results and stream items can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) enum Shape {
    Task,
    Message,
    StatusUpdate,
    ArtifactUpdate,
}

/// The shape, its `kind` in 0.3 and its member in 1.0.
const SHAPES: [(Shape, &str, &str); 4] = [
    (Shape::Task, "task", "task"),
    (Shape::Message, "message", "message"),
    (Shape::StatusUpdate, "status-update", "statusUpdate"),
    (Shape::ArtifactUpdate, "artifact-update", "artifactUpdate"),
];

impl Shape {
    fn member(self) -> &'static str {
        let row = SHAPES.iter().find(|(shape, ..)| *shape == self);
        row.map_or("", |(_, _, member)| member)
    }

    /// The value in a generation, not wrapped.
    pub(in crate::drivers) fn bare(self, value: &Value, to: Generation) -> Value {
        match self {
            Self::Task => values::task(value, to),
            Self::Message => values::message(value, to),
            Self::StatusUpdate => values::status_update(value, to),
            Self::ArtifactUpdate => values::artifact_update(value, to),
        }
    }

    /// The value as a result or a stream item of a generation.
    pub(in crate::drivers) fn wire(self, value: &Value, to: Generation) -> Value {
        let bare = self.bare(value, to);
        match to {
            Generation::Legacy => bare,
            Generation::Modern => json!({ self.member(): bare }),
        }
    }
}

/// What a value is, with the value as 0.3 has it; `None` for what is neither generation's.
pub(in crate::drivers) fn recognise(value: &Value) -> Option<(Shape, Value)> {
    let map = value.as_object()?;
    if let Some(kind) = map.get("kind").and_then(Value::as_str)
        && let Some((shape, ..)) = SHAPES.iter().find(|(_, name, _)| *name == kind)
    {
        return Some((*shape, shape.bare(value, Generation::Legacy)));
    }
    let shape = if map.get("artifact").is_some_and(Value::is_object) {
        Shape::ArtifactUpdate
    } else if map.contains_key("taskId") && has_status(value) {
        Shape::StatusUpdate
    } else if has_status(value) || map.get("artifacts").is_some_and(Value::is_array) {
        Shape::Task
    } else if map.get("parts").is_some_and(Value::is_array) {
        Shape::Message
    } else {
        return unwrapped(value);
    };
    Some((shape, shape.bare(value, Generation::Legacy)))
}

/// Documents also write the bare state.
fn has_status(value: &Value) -> bool {
    match value.get("status") {
        Some(Value::Object(_)) => true,
        Some(Value::String(state)) => values::is_state(state),
        _ => false,
    }
}

/// The wrapper of 1.0 holds exactly one of its members.
fn unwrapped(value: &Value) -> Option<(Shape, Value)> {
    let mut found = SHAPES.iter().filter_map(|(shape, _, member)| {
        let inner = value.get(member)?;
        inner.is_object().then_some((*shape, inner))
    });
    let (shape, inner) = found.next()?;
    found
        .next()
        .is_none()
        .then(|| (shape, shape.bare(inner, Generation::Legacy)))
}

/// A result or a stream item in a generation; what is not recognised stays as it is.
pub(in crate::drivers) fn translate(value: &Value, to: Generation) -> Value {
    match recognise(value) {
        Some((shape, legacy)) => shape.wire(&legacy, to),
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
                assert_eq!(translate(from, Generation::Legacy), legacy);
                assert_eq!(translate(from, Generation::Modern), modern);
            }
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
            assert_eq!(translate(&odd, Generation::Modern), odd);
        }
        let odd = json!({"kind": "task", "id": 3, "status": {"state": "resting", "timestamp": "soon"},
            "artifacts": [7, {"parts": [{"kind": "video", "text": "x"}, {"kind": "file", "file": {"bytes": "a", "uri": "b"}}]}],
            "history": "none", "extra": {"role": "user"}});
        let modern = translate(&odd, Generation::Modern);
        assert_eq!(modern["task"]["status"], odd["status"]);
        assert_eq!(modern["task"]["artifacts"], odd["artifacts"]);
        assert_eq!(modern["task"]["extra"], odd["extra"]);
        assert_eq!(translate(&modern, Generation::Legacy), {
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
            for to in [Generation::Legacy, Generation::Modern] {
                let translated = translate(&task, to);
                let task = translated.get("task").unwrap_or(&translated);
                assert_eq!(task["status"]["timestamp"], zoned);
            }
        }
    }
}
