//! A task while this process holds its lease: restored, given what is pending, and let go of when it is idle.

mod await_output;
mod controls;
mod deliver_input;
mod restore;

use std::sync::Arc;
use std::time::Duration;

use proofhouse_agent::task::{Decision, HeldTools, Task, TaskOutput};
use proofhouse_store::Result;
use proofhouse_store::model::{
    ClaimedTask, DeliveryRecord, HeldLease, StateChange, TaskQueues, TaskState,
};
use proofhouse_wire::trace::{TraceParent, TraceScope};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use super::EngineShared;
use super::commands::{Control, MAX_COMMANDS, pending_controls};
use super::deliver::TaskSignal;
use super::held_leases::LeaseGuard;
use super::journal::{JournalFailure, StoreJournal};
use super::manifests::ManifestSnapshot;
use crate::metrics::engine::SettledOutcome;
use restore::restore;

/// How long a task that cannot go on is left alone, so that it is not tried without end, in milliseconds.
const BACK_OFF_MS: i64 = 5_000;

/// A task that this process works on.
struct LeasedTask<'a> {
    inner: &'a Arc<EngineShared>,
    signal: &'a TaskSignal,
    task: Task,
    id: String,
    held: HeldLease,
    journal: Arc<StoreJournal>,
    agent: (String, String),
    /// Decisions of people that are not settled yet.
    decisions: Vec<PendingDecision>,
    /// Somebody stopped the task, and nobody wants it to go on yet.
    interrupted: bool,
    /// The delivery that wants what is under way stopped, and the end of that.
    interrupting: Option<(i64, JoinHandle<TaskOutput>)>,
    /// What it was begun for.
    trace: Option<TraceParent>,
    /// What it was claimed for, until that is given to it.
    next: Option<DeliveryRecord>,
    slot: Option<OwnedSemaphorePermit>,
    /// Whether some of its events are pushed through channels of their own.
    has_push: bool,
    /// The manifests that it began with.
    snapshot: Arc<ManifestSnapshot>,
}

/// A person's decision, from when it is read until what came of it is kept.
struct PendingDecision {
    /// The delivery that it came as.
    delivery: i64,
    /// The question, which may not have been asked again yet.
    review: u64,
    decision: Decision,
    /// The number that the next turn had when the question got it.
    given: Option<i64>,
}

/// What to do after something was obeyed or answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Continue,
    /// The task is over, lost or handed over.
    Stop,
}

/// Works on a task until there is nothing to do for it.
pub(super) async fn work(
    inner: &Arc<EngineShared>,
    claimed: ClaimedTask,
    signal: &TaskSignal,
    guard: LeaseGuard,
    slot: Option<OwnedSemaphorePermit>,
) {
    let held = guard.held().clone();
    let id = claimed.task.id.clone();
    match restore(inner, claimed, signal, slot).await {
        Ok(mut leased) => {
            leased.run().await;
            // Whatever is under way stops here without a trace, and the tools are torn down.
            leased.journal.close();
            leased.task.cancel();
            leased.task.end().await;
            match leased.journal.failure() {
                None => {}
                Some(JournalFailure::ForNow) => put_off(inner, guard).await,
                Some(JournalFailure::Refused { input, reason }) => {
                    tracing::warn!(task = %id, %reason, "what a task does cannot be kept");
                    let done = match input {
                        // It goes on with the next.
                        Some(input) => inner.store.discard(held, input, &reason).await,
                        None => end_failed(inner, &id, held, &reason).await,
                    };
                    if let Err(error) = done {
                        inner.log_store_error("a failure cannot be kept", &error);
                        put_off(inner, guard).await;
                    }
                }
            }
        }
        Err(reason) => {
            tracing::warn!(task = %id, %reason, "a task cannot go on");
            match is_cancelled(inner, &id).await {
                Ok(false) => put_off(inner, guard).await,
                Ok(true) => {
                    if let Err(error) = end_failed(inner, &id, held, &reason.to_string()).await {
                        inner.log_store_error("a task cannot be ended", &error);
                    }
                }
                Err(error) => inner.log_store_error("commands cannot be read", &error),
            }
        }
    }
}

/// Leaves a task alone for a while: tried again at once, it would fail again.
async fn put_off(inner: &EngineShared, guard: LeaseGuard) {
    let held = guard.held().clone();
    match inner.store.postpone(held, BACK_OFF_MS).await {
        Ok(()) => guard.ended(),
        Err(error) => inner.log_store_error("a task cannot be postponed", &error),
    }
}

/// Whether somebody wants a task to end.
async fn is_cancelled(inner: &EngineShared, id: &str) -> Result<bool> {
    let wanted = pending_controls(inner, id).await?;
    Ok(wanted.iter().any(|(_, one)| *one == Control::Cancel))
}

/// Ends a task that cannot go on, such as one whose agent is gone.
async fn end_failed(inner: &EngineShared, id: &str, held: HeldLease, reason: &str) -> Result<()> {
    let change = StateChange {
        task: id.to_owned(),
        held: Some(held),
        from: Vec::new(),
        to: TaskState::Ended,
        detail: Some(json!({"failed": reason})),
    };
    inner.store.change_state(change).await.map(drop)
}

impl LeasedTask<'_> {
    async fn run(&mut self) {
        if self.task.is_unfinished() && !self.interrupted {
            // Whoever is about to be ended does not begin anything, and whoever was answered is not asked again for long.
            match pending_controls(self.inner, &self.id).await {
                Ok(wanted) if wanted.iter().any(|(_, one)| *one == Control::Cancel) => {
                    self.apply_control(0, &Control::Cancel).await;
                    return;
                }
                Ok(wanted) => self.note_decisions(&wanted),
                Err(error) => {
                    return self
                        .inner
                        .log_store_error("commands cannot be read", &error);
                }
            }
            self.listen();
            let task = self.task.clone();
            let scope = self.scope(self.trace);
            let resumed = async move { task.resume().await };
            if self.await_output(scope, resumed).await == Flow::Stop {
                return;
            }
        }
        // What is pending when the process is about to stop is left to the next one.
        while !self.inner.stopping.is_cancelled() && !self.signal.let_go.is_cancelled() {
            let queues = match self.queues().await {
                Ok(queues) => queues,
                Err(error) => {
                    return self
                        .inner
                        .log_store_error("deliveries cannot be read", &error);
                }
            };
            if let Some(command) = queues.commands.first() {
                let flow = match Control::of(command) {
                    Some((id, control)) => self.apply_control(id, &control).await,
                    None => self.settle(command.id, "the command makes no sense").await,
                };
                match flow {
                    Flow::Continue => continue,
                    Flow::Stop => return,
                }
            }
            let Some(delivery) = queues.input else {
                if self.linger().await {
                    continue;
                }
                return;
            };
            if self.interrupted && delivery.event.is_some() {
                let reason = "the task is interrupted";
                if let Err(error) = self.discard_input(delivery.id, reason).await {
                    return self
                        .inner
                        .log_store_error("a delivery cannot be settled", &error);
                }
                continue;
            }
            if self.deliver_input(delivery).await == Flow::Stop {
                return;
            }
        }
    }

    /// What the task is to be given next. The store is only asked for what is not known: what the task was claimed for comes
    /// with its lease, and the last turn was kept together with a look at what is pending. Whatever came later wakes the task
    /// while it waits, or whoever claims it next.
    async fn queues(&mut self) -> Result<TaskQueues> {
        let is_drained = self.journal.take_drained();
        match self.next.take() {
            Some(input) => Ok(TaskQueues {
                input: Some(input),
                ..TaskQueues::default()
            }),
            None if is_drained => Ok(TaskQueues::default()),
            None => self.inner.store.queues(&self.id, MAX_COMMANDS).await,
        }
    }

    /// What the task does next is done for: a span of its own, in the trace of whoever asked for it. Its name and fields are
    /// those of the conventions of OpenTelemetry for generative AI.
    fn scope(&self, parent: Option<TraceParent>) -> TraceScope {
        let (namespace, agent) = &self.agent;
        let span = tracing::info_span!(
            "task.input", otel.name = %format_args!("invoke_agent {agent}"),
            gen_ai.operation.name = "invoke_agent", gen_ai.agent.name = %agent,
            gen_ai.agent.id = %format_args!("{namespace}/{agent}"), gen_ai.conversation.id = %self.id
        );
        TraceScope::below(span, parent)
    }

    /// Opens the push channels that the task wants and does not have.
    fn listen(&self) {
        if self.has_push && !self.interrupted {
            super::channels::ensure(self.inner, &self.id);
        }
    }

    /// Settles a command; the worker stops if it cannot.
    async fn settle(&self, command: i64, reason: &str) -> Flow {
        match self.discard(command, reason).await {
            Ok(()) => Flow::Continue,
            Err(error) => {
                self.inner
                    .log_store_error("a command cannot be settled", &error);
                Flow::Stop
            }
        }
    }

    /// Discards what the task would have been given.
    async fn discard_input(&self, delivery: i64, reason: &str) -> Result<()> {
        self.discard(delivery, reason).await?;
        self.inner.counts().settled.one(SettledOutcome::Discarded);
        Ok(())
    }

    async fn discard(&self, delivery: i64, reason: &str) -> Result<()> {
        let held = self.held.clone();
        self.inner.store.discard(held, delivery, reason).await
    }

    /// Waits for more; whether to look again. Whoever waits keeps nobody from working. A task whose tools have something
    /// open sleeps until they may be closed; others are let go of after a while, at once if many wait already.
    async fn linger(&mut self) -> bool {
        let held = self.task.held_tools();
        if self.interrupted && held == HeldTools::Nothing {
            return false;
        }
        self.slot = None;
        self.inner.wake_deliverer.notify_one();
        let options = &self.inner.options;
        let place = Arc::clone(&self.inner.lingering).try_acquire_owned();
        let is_woken = match (place, held) {
            (Err(_), HeldTools::Nothing) => return false,
            (Ok(_place), _) => self.wait_for_news(Some(options.linger)).await,
            (Err(_), HeldTools::Evictable | HeldTools::Kept) => false,
        };
        if !is_woken {
            let time = match held {
                HeldTools::Nothing => return false,
                HeldTools::Evictable => Some(options.idle_tools.saturating_sub(options.linger)),
                HeldTools::Kept => None,
            };
            let sleeping = self.inner.working.sleep();
            let is_woken = self.wait_for_news(time).await;
            drop(sleeping);
            // What has changed since it began is used by whoever takes it up anew.
            if !is_woken || !self.is_current() {
                return false;
            }
        }
        self.slot = tokio::select! {
            biased;
            () = self.signal.let_go.cancelled() => return false,
            slot = Arc::clone(&self.inner.slots).acquire_owned() => slot.ok(),
        };
        true
    }

    /// Whether something came within this time, or ever. Nothing does once the task is to be let go of.
    async fn wait_for_news(&self, time: Option<Duration>) -> bool {
        let over = async {
            match time {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.signal.let_go.cancelled() => false,
            () = self.inner.stopping.cancelled() => false,
            () = self.signal.news.notified() => true,
            () = over => false,
        }
    }

    /// Whether its agent and its tools are still what they were.
    fn is_current(&self) -> bool {
        let now = self.inner.manifests.current();
        let (namespace, name) = &self.agent;
        now.version == self.snapshot.version
            || now.definitions(namespace, name) == self.snapshot.definitions(namespace, name)
    }
}
