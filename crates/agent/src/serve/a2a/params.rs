//! What requests of A2A say beside the message itself, checked.

use proofhouse_protocol::a2a::{A2aTaskState, A2aVersion};
use serde_json::Value;

use super::super::texts::decision;
use super::records::A2aTaskRecord;
use super::refusal::A2aRefusal;
use crate::task::Decision;

/// The longest id that is looked for.
const MAX_ID_BYTES: usize = 512;

/// What a message says to a task that waits for a decision.
pub(super) fn decide(
    record: &A2aTaskRecord,
    text: &str,
    message: &Value,
    generation: A2aVersion,
) -> Result<Decision, A2aRefusal> {
    match (record.state(), generation) {
        (A2aTaskState::InputRequired, _) => {}
        (state, A2aVersion::V0_3) if state.is_terminal() => {
            return Err(A2aRefusal::Params("the task is over".to_owned()));
        }
        (state, A2aVersion::V1_0) if state.is_terminal() => {
            return Err(A2aRefusal::Unsupported("the task is over"));
        }
        _ => {
            return Err(A2aRefusal::Unsupported(
                "the task does not wait for a message",
            ));
        }
    }
    let parts = message.get("parts").and_then(Value::as_array);
    let data = parts.into_iter().flatten().find_map(|part| {
        let said = part.get("data")?.get("decision")?.as_str()?;
        decision(said)
    });
    data.or_else(|| decision(text)).ok_or_else(|| {
        A2aRefusal::Params("the task waits for an answer: `approve` or `deny`".to_owned())
    })
}

/// Text or JSON must be among what the client takes, if it says.
pub(super) fn accepts_text(settings: Option<&Value>) -> Result<(), A2aRefusal> {
    let modes = settings
        .and_then(|settings| settings.get("acceptedOutputModes"))
        .and_then(Value::as_array);
    let Some(modes) = modes.filter(|modes| !modes.is_empty()) else {
        return Ok(());
    };
    let is_text = |mode: &Value| {
        let mode = mode.as_str().unwrap_or_default();
        mode.starts_with("text") || mode == "*/*" || mode == "application/json"
    };
    if modes.iter().any(is_text) {
        Ok(())
    } else {
        Err(A2aRefusal::ContentType)
    }
}

pub(super) fn text_id(object: &Value, key: &str) -> Result<Option<String>, A2aRefusal> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if id.is_empty() => Ok(None),
        Some(Value::String(id)) if id.len() <= MAX_ID_BYTES => Ok(Some(id.clone())),
        Some(_) => Err(A2aRefusal::Params(format!(
            "`{key}` must be a text of at most {MAX_ID_BYTES} bytes"
        ))),
    }
}

pub(super) fn count(object: Option<&Value>, key: &str) -> Result<Option<usize>, A2aRefusal> {
    match object.and_then(|object| object.get(key)) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
            .map(Some)
            .ok_or_else(|| A2aRefusal::Params(format!("`{key}` must be a number"))),
    }
}
