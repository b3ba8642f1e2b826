//! What another agent answers over A2A, in whatever shape its generation gives it.

use proofhouse_protocol::a2a::{A2aShape, A2aTaskState};
use proofhouse_protocol::text;
use serde_json::{Value, json};

/// Texts of one answer that are read; a hostile agent could send very many.
const MAX_TEXTS: usize = 1_000;

/// What was read of an answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RemoteAnswer {
    pub(super) context: Option<String>,
    pub(super) task: Option<String>,
    /// How far the task is, as 0.3 says it; a message has none.
    state: Option<String>,
    texts: Vec<String>,
}

impl RemoteAnswer {
    /// Reads a result: a task or a message, wrapped or not.
    pub(super) fn read(result: &Value) -> Self {
        let inner = result
            .get(A2aShape::Task.member())
            .or_else(|| result.get(A2aShape::Message.member()))
            .filter(|inner| inner.is_object())
            .unwrap_or(result);
        let member = |value: &Value, key: &str| {
            let text = value.get(key).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let mut answer = Self {
            context: member(inner, "contextId"),
            ..Self::default()
        };
        let Some(status) = inner.get("status") else {
            answer.add(inner);
            return answer;
        };
        answer.task = member(inner, "id");
        answer.state = member(status, "state").map(|state| A2aTaskState::plain_name(&state));
        let artifacts = inner.get("artifacts").and_then(Value::as_array);
        for artifact in artifacts.into_iter().flatten() {
            answer.add(artifact);
        }
        if let Some(message) = status.get("message") {
            answer.add(message);
        }
        answer
    }

    fn add(&mut self, parted: &Value) {
        let parts = parted.get("parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            if self.texts.len() >= MAX_TEXTS {
                return;
            }
            if let Some(text) = text::of_part(part) {
                self.texts.push(text.to_owned());
            } else if let Some(data) = part.get("data") {
                self.texts.push(data.to_string());
            }
        }
    }

    /// Whether there will be more without another message.
    pub(super) fn goes_on(&self) -> bool {
        self.known_state().is_some_and(A2aTaskState::is_running)
    }

    /// Whether the other agent waits for another message.
    pub(super) fn waits(&self) -> bool {
        self.known_state().is_some_and(A2aTaskState::is_waiting)
    }

    fn known_state(&self) -> Option<A2aTaskState> {
        self.state.as_deref().and_then(A2aTaskState::parse)
    }

    /// What the model is told: the words, and how far it is where that is not simply done.
    pub(super) fn into_value(self) -> Value {
        let text = self.texts.join("\n");
        match self.state.as_deref() {
            None | Some("completed") => text.into(),
            Some(state) => json!({"state": state, "message": text}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_both_generations_are_read() {
        let legacy = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"},
            "artifacts": [{"parts": [{"kind": "text", "text": "a"}, {"kind": "data", "data": {"b": 1}}]}]});
        assert_eq!(RemoteAnswer::read(&legacy).into_value(), "a\n{\"b\":1}");
        let modern = json!({"task": {"id": "t", "status": {"state": "TASK_STATE_INPUT_REQUIRED",
            "message": {"parts": [{"text": "your key?"}]}}}});
        let answer = RemoteAnswer::read(&modern);
        assert!(answer.waits() && !answer.goes_on());
        assert_eq!(
            answer.into_value(),
            json!({"state": "input-required", "message": "your key?"})
        );
        let message = json!({"message": {"contextId": "c", "parts": [{"text": "hi"}]}});
        assert_eq!(RemoteAnswer::read(&message).into_value(), "hi");
        assert!(
            RemoteAnswer::read(
                &json!({"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}})
            )
            .goes_on()
        );
        for odd in [
            json!(null),
            json!([]),
            json!({"task": 3}),
            json!({"status": {"state": 3}}),
            json!({"parts": 1}),
        ] {
            assert_eq!(RemoteAnswer::read(&odd).into_value(), "", "{odd}");
        }
    }
}
