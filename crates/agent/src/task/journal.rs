//! Journals: what happens in a task is kept before it is acted on, so that another process can go on with it.

use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Turn;

/// Keeps what happens in a task. A task waits for it before it does anything that follows from the entry.
pub trait Journal: fmt::Debug + Send + Sync {
    /// Keeps one entry, durably, after those before it.
    fn keep(&self, entry: JournalEntry) -> BoxFuture<'_, Result<(), JournalError>>;
}

/// One thing to keep: everything in it becomes true together.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    /// What happened, or is about to.
    pub turn: Turn,
    /// The delivery that is settled with it: [`TaskInput::delivery`](super::TaskInput::delivery).
    pub delivery: Option<String>,
    /// What the allow list gains.
    pub allowed: Vec<AllowedValue>,
    /// What the task is doing from now on.
    pub state: TaskState,
}

/// A value that the allow list gains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllowedValue {
    /// The capability, as the agent's manifest names the tool.
    pub tool: String,
    /// The parameter.
    pub name: String,
    /// The value.
    pub value: Value,
    /// Whether a binding fixes the parameter to it.
    pub sealed: bool,
}

/// What a task is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It waits for input.
    Idle,
    /// It works on an input.
    Running,
    /// It waits for a person.
    Waiting,
    /// It was stopped and can go on.
    Interrupted,
    /// It is over.
    Ended,
}

/// Why something could not be kept. The task stops at once, without an end: it is not over, but whoever
/// holds this part of it has lost it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum JournalError {
    /// Somebody else owns the task now.
    #[error("somebody else owns the task now: {0}")]
    Fenced(String),
    /// It cannot be written.
    #[error("the task cannot be written down: {0}")]
    Failed(String),
}

/// The journal of a task, if it has one, and whether it is lost.
pub(super) struct Keeper {
    journal: Option<Arc<dyn Journal>>,
    lost: Arc<Mutex<Option<JournalError>>>,
    /// Stops everything that is under way.
    stop: CancellationToken,
}

/// Something could not be kept.
#[derive(Debug)]
pub(super) struct Lost;

impl Keeper {
    pub(super) fn new(
        journal: Option<Arc<dyn Journal>>,
        lost: Arc<Mutex<Option<JournalError>>>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            journal,
            lost,
            stop,
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.journal.is_some()
    }

    /// Keeps an entry. After a failure nothing is kept any more, and everything under way is stopped.
    pub(super) async fn keep(&self, entry: JournalEntry) -> Result<(), Lost> {
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        if self.lost().is_some() {
            return Err(Lost);
        }
        match journal.keep(entry).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let mut lost = lock(&self.lost);
                lost.get_or_insert(error);
                drop(lost);
                self.stop.cancel();
                Err(Lost)
            }
        }
    }

    /// Keeps a turn that changes nothing else.
    pub(super) async fn turn(&self, turn: impl FnOnce() -> Turn) -> Result<(), Lost> {
        if !self.is_there() {
            return Ok(());
        }
        let turn = turn();
        let state = turn.state();
        self.keep(JournalEntry {
            turn,
            delivery: None,
            allowed: Vec::new(),
            state,
        })
        .await
    }

    pub(super) fn lost(&self) -> Option<JournalError> {
        let lost = lock(&self.lost);
        lost.clone()
    }
}
