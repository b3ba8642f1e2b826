//! Calls of the modern era that wait for the client to come back with answers.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use proofhouse_wire::sync::lock;
use serde_json::{Map, Value};

use super::ids;
use crate::phases::PhaseView;

/// Calls that may wait; the oldest is forgotten, and its client has to start anew.
const MAX_WAITING: usize = 1_000;
/// The answers of one call, in bytes of JSON: they come from the client.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// A call that waits.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) method: String,
    /// The tool, prompt or resource.
    pub(super) name: String,
    /// The phase that the call came in, which answers it.
    pub(super) phase: Arc<PhaseView>,
    /// What the client answered so far.
    pub(super) answers: Map<String, Value>,
    /// Whether the client has come back already; coming back again is no news.
    pub(super) resumed: bool,
}

/// All calls that wait, by the `requestState` that the client must bring back.
#[derive(Debug, Default)]
pub(super) struct Rounds(Mutex<PendingRound>);

#[derive(Debug, Default)]
struct PendingRound {
    by_state: HashMap<String, Round>,
    order: VecDeque<String>,
}

impl Rounds {
    /// Keeps a call; the state for the client, which no client can make up.
    pub(super) fn wait(&self, mut round: Round) -> String {
        let size = serde_json::to_string(&round.answers).map_or(0, |text| text.len());
        if size > MAX_ANSWER_BYTES {
            round.answers.clear();
        }
        let state = ids::unguessable();
        let mut waiting = lock(&self.0);
        while waiting.order.len() >= MAX_WAITING {
            if let Some(oldest) = waiting.order.pop_front() {
                waiting.by_state.remove(&oldest);
            }
        }
        waiting.order.push_back(state.clone());
        waiting.by_state.insert(state.clone(), round);
        state
    }

    /// The call that a state belongs to. It stays, for the answer may get lost on its way and the
    /// client ask again.
    pub(super) fn resume(&self, state: &str, method: &str, name: &str) -> Option<Round> {
        let mut waiting = lock(&self.0);
        let round = waiting.by_state.get_mut(state)?;
        (round.method == method && round.name == name).then(|| {
            let found = round.clone();
            round.resumed = true;
            found
        })
    }
}
