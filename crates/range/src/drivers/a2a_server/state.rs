//! The state of a phase, as this driver reads it.

use std::collections::HashMap;

use proofhouse_oatf::{Document, Fragment, Mode, ResponseEntry};
use serde_json::{Value, json};

use crate::drivers::a2a::hybrid::hybrid;
use crate::drivers::a2a::{asks_verbatim, is_verbatim};

/// The card of an agent as a document has it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedCard {
    written: Value,
    is_verbatim: bool,
}

impl OfferedCard {
    /// The card as it is served at an address.
    #[must_use]
    pub fn at(&self, address: &str) -> Value {
        if self.is_verbatim {
            self.written.clone()
        } else {
            hybrid(&self.written, address)
        }
    }
}

/// The cards that the agents of a document show before anything has happened, by actor.
#[must_use]
pub fn offered_cards(document: &Document) -> HashMap<String, OfferedCard> {
    let actors = document.attack.execution.actors().iter();
    let agents = actors.filter(|actor| actor.mode == Mode::A2aServer);
    let offered = agents.filter_map(|actor| {
        let state = actor.phases.iter().find_map(|phase| phase.state.as_ref())?;
        let card = A2aServerState::read(state).served_card(&actor.name, Value::clone);
        Some((actor.name.clone(), card))
    });
    offered.collect()
}

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

    /// The card, with its templates filled in, or one that is just enough to find the way to the agent of this name.
    pub(super) fn served_card(
        &self,
        name: &str,
        filled: impl FnOnce(&Value) -> Value,
    ) -> OfferedCard {
        let written = self.card.as_ref().map(filled);
        OfferedCard {
            written: written.unwrap_or_else(|| json!({ "name": name })),
            is_verbatim: self.verbatim,
        }
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
