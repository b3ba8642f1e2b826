//! Exposure: which parts of the attack reached the subject, and which never did.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// What can carry an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CarrierKind {
    /// The server's instructions.
    Instructions,
    /// A tool in a list.
    ToolListed,
    /// The result of a tool call.
    ToolResponse,
    /// A resource in a list.
    ResourceListed,
    /// The content of a resource.
    Resource,
    /// A prompt in a list.
    PromptListed,
    /// The messages of a prompt.
    Prompt,
    /// A request for input or a completion.
    Elicitation,
    /// A request for a completion by the client's model.
    Sampling,
    /// A notification.
    Notification,
    /// An agent card.
    Card,
    /// A task, message or stream item answered.
    TaskResponse,
    /// A message, call or input sent.
    Message,
    /// The result of a tool the subject called at its frontend.
    FrontendToolResult,
}

/// One thing that carries a part of the attack, and how often it was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Carrier {
    /// The actor whose it is.
    pub actor: String,
    /// What it is.
    pub kind: CarrierKind,
    /// Which one: a tool's name, a resource's URI, a method.
    pub name: String,
    /// How often it reached the subject.
    pub delivered: u64,
}

/// What reached the subject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Exposure {
    /// Whether anything that carries the attack was delivered.
    pub reached: bool,
    /// Everything that was planned or delivered.
    pub carriers: Vec<Carrier>,
}

/// How many different carriers are counted; names come from the subject too.
const MAX_CARRIERS: usize = 10_000;

/// Counts deliveries while a run goes on.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<BTreeMap<(String, CarrierKind, String), u64>>);

impl Ledger {
    /// Something that the document has and that may be delivered.
    pub(crate) fn plan(&self, actor: &str, kind: CarrierKind, name: &str) {
        self.add(actor, kind, name, 0);
    }

    pub(crate) fn delivered(&self, actor: &str, kind: CarrierKind, name: &str) {
        self.add(actor, kind, name, 1);
    }

    fn add(&self, actor: &str, kind: CarrierKind, name: &str, times: u64) {
        let mut ledger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name: String = name.chars().take(200).collect();
        let key = (actor.to_owned(), kind, name);
        if ledger.len() < MAX_CARRIERS || ledger.contains_key(&key) {
            *ledger.entry(key).or_default() += times;
        }
    }

    pub(crate) fn exposure(&self) -> Exposure {
        let ledger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let carriers: Vec<Carrier> = ledger
            .iter()
            .map(|((actor, kind, name), delivered)| Carrier {
                actor: actor.clone(),
                kind: *kind,
                name: name.clone(),
                delivered: *delivered,
            })
            .collect();
        Exposure {
            reached: carriers.iter().any(|carrier| carrier.delivered > 0),
            carriers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_planned_and_never_delivered_is_told_too() {
        let ledger = Ledger::default();
        ledger.plan("default", CarrierKind::ToolListed, "weather");
        assert!(!ledger.exposure().reached);
        ledger.delivered("default", CarrierKind::ToolResponse, "weather");
        let exposure = ledger.exposure();
        assert!(exposure.reached);
        let counts: Vec<u64> = exposure.carriers.iter().map(|c| c.delivered).collect();
        assert_eq!(counts, [0, 1]);
    }
}
