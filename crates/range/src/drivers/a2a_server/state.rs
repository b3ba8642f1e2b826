//! The state of a phase, as this driver reads it.

use proofhouse_oatf::{Fragment, ResponseEntry};
use serde_json::Value;

use crate::drivers::a2a::{asks_verbatim, is_verbatim};

/// What a phase answers with.
#[derive(Debug, Default)]
pub(super) struct A2aServerState {
    /// `agent_card`.
    pub(super) card: Option<Value>,
    /// `task_responses`.
    pub(super) responses: Vec<ResponseEntry>,
    /// `verbatim`: everything goes out as it is written.
    pub(super) verbatim: bool,
    /// What could not be read.
    pub(super) problems: Vec<String>,
}

impl A2aServerState {
    pub(super) fn read(state: &Value) -> Self {
        let mut read = Self {
            card: state.get("agent_card").cloned(),
            verbatim: is_verbatim(state),
            ..Self::default()
        };
        match state.get("task_responses") {
            None | Some(Value::Null) => {}
            Some(Value::Array(entries)) => {
                for (index, entry) in entries.iter().enumerate() {
                    match ResponseEntry::from_value(entry) {
                        Ok(entry) => read.responses.push(entry),
                        Err(_) => read.problems.push(format!(
                            "task_responses[{index}] cannot be read; it is left out"
                        )),
                    }
                }
            }
            Some(_) => read
                .problems
                .push("`task_responses` is not a list; it is left out".to_owned()),
        }
        read
    }

    /// Whether an entry goes out as it is written.
    pub(super) fn is_verbatim(&self, entry: &ResponseEntry) -> bool {
        self.verbatim || asks_verbatim(&entry.fields)
    }

    /// Whether the card says that there are no push notifications.
    pub(super) fn refuses_push(&self) -> bool {
        let card = self.card.as_ref();
        card.and_then(|card| card.get("capabilities")?.get("pushNotifications"))
            == Some(&Value::Bool(false))
    }
}

/// What the exposure calls a card.
pub(super) fn card_name(card: &Value) -> &str {
    card.get("name")
        .and_then(Value::as_str)
        .unwrap_or("agent_card")
}

/// What the exposure calls an answer, by the phase whose state has it.
pub(super) fn response_name(phase: &str, index: usize) -> String {
    format!("{phase}.task_responses[{index}]")
}
