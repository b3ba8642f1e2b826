//! The journal of a task in the store: every entry is one transaction under the fence of the task's lease.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofhouse_agent::task::{Journal, JournalEntry, JournalError, TaskState as AgentState, Turn};
use proofhouse_store::model::{AllowEntry, AppendTurns, HeldLease, NewTurn, TaskState, ToolRef};
use proofhouse_store::{Store, StoreError};
use proofhouse_wire::sync::lock;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::EngineShared;
use super::watch::TaskChanges;
use crate::metrics::engine::SettledOutcome;

/// How often a write is tried while the store is unavailable, and the pause after the first try, which
/// doubles: some eight seconds together, less than a lease, so that a short outage loses no work.
const TRIES: u32 = 7;
const PAUSE: Duration = Duration::from_millis(125);

/// Why a turn was not kept, though the task is still this process's.
#[derive(Debug, Clone)]
pub(super) enum JournalFailure {
    /// It never can be; it may be an input, which this is the delivery of.
    Refused {
        /// The delivery.
        input: Option<i64>,
        /// Why.
        reason: String,
    },
    /// It cannot be now.
    ForNow,
}

/// Keeps the turns of one task, for as long as this process holds its lease.
pub(super) struct StoreJournal {
    store: Arc<Store>,
    hub: TaskChanges,
    task: String,
    held: HeldLease,
    /// The number of the next turn. Entries are written one after the other.
    next: Mutex<i64>,
    /// The same, for those who do not write.
    kept_up_to: AtomicI64,
    closed: AtomicBool,
    failure: std::sync::Mutex<Option<JournalFailure>>,
    /// Nothing was pending for the task when its last turn was kept.
    drained: AtomicBool,
    /// What the agent calls its tools.
    tools: Vec<(String, ToolRef)>,
    inner: Arc<EngineShared>,
}

impl StoreJournal {
    pub(super) fn new(
        store: Arc<Store>,
        hub: TaskChanges,
        task: &str,
        held: HeldLease,
        next_seq: i64,
        tools: Vec<(String, ToolRef)>,
        inner: Arc<EngineShared>,
    ) -> Self {
        Self {
            store,
            hub,
            task: task.to_owned(),
            held,
            next: Mutex::new(next_seq),
            kept_up_to: AtomicI64::new(next_seq),
            closed: AtomicBool::new(false),
            failure: std::sync::Mutex::default(),
            drained: AtomicBool::new(false),
            tools,
            inner,
        }
    }

    /// Tells that an entry is kept, and the number of the next.
    fn kept(&self, next: i64, is_delivery: bool, turn: &Turn) {
        self.kept_up_to.store(next, Ordering::SeqCst);
        let options = &self.inner.options;
        let metrics = &options.metrics;
        if is_delivery {
            metrics.engine.settled.one(SettledOutcome::Given);
        }
        if let Turn::Llm { model, usage, .. } = turn {
            let cost = options.cost(model, *usage);
            metrics.models.reply(model, *usage, cost);
        }
        self.hub.turn(&self.task);
    }

    /// The number that the next turn will have.
    pub(super) fn next_seq(&self) -> i64 {
        self.kept_up_to.load(Ordering::SeqCst)
    }

    /// Whether nothing was pending when the last turn was kept, so that nobody has to look; only said once.
    pub(super) fn take_drained(&self) -> bool {
        self.drained.swap(false, Ordering::SeqCst)
    }

    /// Refuses everything from now on: the task is handed over.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Why the last turn was not kept, if it could not be.
    pub(super) fn failure(&self) -> Option<JournalFailure> {
        lock(&self.failure).clone()
    }

    async fn write(&self, entry: JournalEntry) -> Result<(), JournalError> {
        let mut next = self.next.lock().await;
        if self.closed.load(Ordering::SeqCst) {
            return Err(JournalError::Failed("the task is handed over".to_owned()));
        }
        let failed = |message: String| JournalError::Failed(message);
        let body = serde_json::to_value(&entry.turn).map_err(|error| failed(error.to_string()))?;
        let delivered: Option<i64> = match &entry.delivery {
            Some(id) => Some(id.parse().map_err(|_| failed(format!("delivery `{id}`")))?),
            None => None,
        };
        let allow = entry.allowed.iter().filter_map(|entry| {
            let mut tools = self.tools.iter();
            let (_, tool) = tools.find(|(reference, _)| *reference == entry.tool)?;
            Some(AllowEntry {
                tool: tool.clone(),
                name: entry.name.clone(),
                value: entry.value.clone(),
                sealed: entry.sealed,
            })
        });
        let append = AppendTurns {
            task: self.task.clone(),
            held: self.held.clone(),
            expected_seq: *next,
            turns: vec![NewTurn {
                kind: entry.turn.kind().to_owned(),
                body: body.clone(),
            }],
            allow: allow.collect(),
            from: Vec::new(),
            state: Some((state(entry.state), detail(&entry.turn))),
            delivered,
        };
        let mut pause = PAUSE;
        let mut unsure = false;
        for attempt in 1..=TRIES {
            match self.store.append(append.clone()).await {
                Ok(appended) => {
                    *next = appended.next_seq;
                    self.drained.store(!appended.has_work, Ordering::SeqCst);
                    self.kept(*next, delivered.is_some(), &entry.turn);
                    return Ok(());
                }
                // An earlier try may have been written though its answer was lost.
                Err(StoreError::Conflict(_)) if unsure && self.is_there(*next, &body).await => {
                    *next += 1;
                    self.kept(*next, delivered.is_some(), &entry.turn);
                    return Ok(());
                }
                Err(StoreError::Unavailable(_)) if attempt < TRIES => unsure = true,
                Err(StoreError::Fenced(why) | StoreError::Conflict(why)) => {
                    return Err(JournalError::Fenced(why));
                }
                Err(error) => {
                    let reason = error.to_string();
                    *lock(&self.failure) = Some(if error.is_permanent() {
                        JournalFailure::Refused {
                            input: delivered,
                            reason: reason.clone(),
                        }
                    } else {
                        JournalFailure::ForNow
                    });
                    return Err(failed(reason));
                }
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        // The last try returns.
        Err(failed("the store is unavailable".to_owned()))
    }

    async fn is_there(&self, seq: i64, body: &Value) -> bool {
        match self.store.turns(&self.task, seq, 1).await {
            Ok(turns) => turns
                .first()
                .is_some_and(|turn| turn.seq == seq && turn.body == *body),
            Err(_) => false,
        }
    }
}

impl Journal for StoreJournal {
    fn keep(&self, entry: JournalEntry) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(self.write(entry))
    }
}

impl fmt::Debug for StoreJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreJournal")
            .field("task", &self.task)
            .finish_non_exhaustive()
    }
}

fn state(state: AgentState) -> TaskState {
    match state {
        AgentState::Idle => TaskState::Idle,
        AgentState::Running => TaskState::Running,
        AgentState::Waiting => TaskState::Waiting,
        AgentState::Interrupted => TaskState::Interrupted,
        AgentState::Ended => TaskState::Ended,
    }
}

/// What is worth knowing about a state without reading the turns.
fn detail(turn: &Turn) -> Option<Value> {
    match turn {
        Turn::Asked { review, .. } => Some(json!({"review": review})),
        Turn::Ended { end, .. } => Some(json!({"end": end})),
        Turn::Failed { message, .. } => Some(json!({"failed": message})),
        Turn::Input { .. }
        | Turn::Llm { .. }
        | Turn::Capability { .. }
        | Turn::Discarded { .. }
        | Turn::Interrupted { .. }
        | Turn::Calling { .. }
        | Turn::Invoked { .. }
        | Turn::Decided { .. }
        | Turn::Output { .. } => None,
    }
}
