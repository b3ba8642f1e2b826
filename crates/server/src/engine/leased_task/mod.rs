//! A task while this process holds its lease: restored, given what is pending, and let go of when it is idle.

mod await_output;
mod controls;
mod deliver_input;
mod restore;

use std::sync::Arc;
use std::time::Duration;

use proofhouse_agent::task::{Decision, HeldTools, Task, TaskOutput};
use proofhouse_store::Result;
use proofhouse_store::model::{ClaimedTask, DeliveryRecord, HeldLease, StateChange, TaskState};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::EngineShared;
use super::commands::{Control, pending_controls, wait_for_control};
use super::deliver::TaskSignal;
use super::journal::StoreJournal;
use super::manifests::ManifestSnapshot;
use crate::metrics::engine::SettledOutcome;
use restore::{RestoreError, restore};

/// Deliveries that are looked at for the next input.
const PENDING: usize = 64;
/// How long a task that cannot be restored is left alone, so that it is not tried without end.
const BACK_OFF: Duration = Duration::from_secs(5);

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
    slot: Option<OwnedSemaphorePermit>,
    /// Where another slot comes from, after this one was given back.
    slots: Option<Arc<Semaphore>>,
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
    slot: Option<OwnedSemaphorePermit>,
) {
    let held = claimed.lease.held();
    let id = claimed.task.id.clone();
    let mut slot = slot;
    if claimed.task.state == TaskState::Waiting {
        // Nobody is asked again before there is an answer, and whoever waits keeps nobody from working.
        slot = None;
        if !wait_for_control(inner, &id, signal).await {
            if let Err(error) = inner.store.release(held).await {
                inner.log_store_error("a lease cannot be released", &error);
            }
            return;
        }
    }
    match restore(inner, claimed, signal, slot).await {
        Ok(mut leased) => {
            leased.run().await;
            // Whatever is under way stops here without a trace, and the tools are torn down.
            leased.journal.close();
            leased.task.cancel();
            leased.task.end().await;
        }
        Err(RestoreError::Store(error)) => inner.log_store_error("a task cannot be read", &error),
        Err(RestoreError::Start(reason)) => {
            tracing::warn!(task = %id, %reason, "a task cannot go on");
            let ended = end_if_cancelled(inner, &id, &held, &reason).await;
            if let Err(error) = &ended {
                inner.log_store_error("a task cannot be ended", error);
            }
            if !matches!(ended, Ok(true)) {
                tokio::select! {
                    () = tokio::time::sleep(BACK_OFF) => {}
                    () = signal.news.notified() => {}
                    () = signal.let_go.cancelled() => {}
                    () = inner.stopping.cancelled() => {}
                }
            }
        }
    }
    if let Err(error) = inner.store.release(held).await {
        inner.log_store_error("a lease cannot be released", &error);
    }
}

/// Ends a task that cannot be restored, such as one whose agent is gone, when somebody wants it to end. Returns whether it
/// has.
async fn end_if_cancelled(
    inner: &EngineShared,
    id: &str,
    held: &HeldLease,
    reason: &str,
) -> Result<bool> {
    let wanted = pending_controls(inner, id).await?;
    let is_cancelled = wanted
        .iter()
        .any(|(_, control)| *control == Control::Cancel);
    if is_cancelled {
        let change = StateChange {
            task: id.to_owned(),
            held: Some(held.clone()),
            from: Vec::new(),
            to: TaskState::Ended,
            detail: Some(json!({"failed": reason})),
        };
        inner.store.change_state(change).await?;
    }
    Ok(is_cancelled)
}

impl LeasedTask<'_> {
    async fn run(&mut self) {
        // Whoever is about to be ended does not begin anything.
        let cancelled = pending_controls(self.inner, &self.id)
            .await
            .is_ok_and(|wanted| {
                let mut controls = wanted.iter();
                controls.any(|(_, control)| *control == Control::Cancel)
            });
        if cancelled {
            self.apply_control(0, &Control::Cancel).await;
            return;
        }
        if !self.interrupted {
            super::channels::ensure(self.inner, &self.id);
        }
        if self.task.is_unfinished() && !self.interrupted {
            let task = self.task.clone();
            if self.await_output(async move { task.resume().await }).await == Flow::Stop {
                return;
            }
        }
        // What is pending when the process is about to stop is left to the next one.
        while !self.inner.stopping.is_cancelled() && !self.signal.let_go.is_cancelled() {
            let looked = match pending_controls(self.inner, &self.id).await {
                Ok(wanted) => self.next_input().await.map(|input| (wanted, input)),
                Err(error) => Err(error),
            };
            let (wanted, input) = match looked {
                Ok(looked) => looked,
                Err(error) => {
                    return self
                        .inner
                        .log_store_error("deliveries cannot be read", &error);
                }
            };
            if let Some((id, control)) = wanted.into_iter().next() {
                match self.apply_control(id, &control).await {
                    Flow::Continue => continue,
                    Flow::Stop => return,
                }
            }
            let Some(delivery) = input else {
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

    /// The oldest delivery that is an input.
    async fn next_input(&self) -> Result<Option<DeliveryRecord>> {
        let pending = self.inner.store.pending(&self.id, PENDING).await?;
        let mut inputs = pending.into_iter();
        Ok(inputs.find(|delivery| Control::of(delivery).is_none()))
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

    /// Waits for more; whether to look again. A task whose tools have something open sleeps, and keeps nobody from
    /// working meanwhile. Others are let go of after a while.
    async fn linger(&mut self) -> bool {
        let held = self.task.held_tools();
        if self.interrupted && held == HeldTools::Nothing {
            return false;
        }
        let options = &self.inner.options;
        if self.wait_for_news(Some(options.linger)).await {
            return true;
        }
        let time = match held {
            HeldTools::Nothing => return false,
            HeldTools::Evictable => Some(options.idle_tools.saturating_sub(options.linger)),
            HeldTools::Kept => None,
        };
        self.slot = None;
        let sleeping = self.inner.working.sleep();
        let is_woken = self.wait_for_news(time).await;
        drop(sleeping);
        // What has changed since it began is used by whoever takes it up anew.
        if !is_woken || !self.is_current() {
            return false;
        }
        if let Some(slots) = &self.slots {
            self.slot = tokio::select! {
                () = self.signal.let_go.cancelled() => return false,
                slot = Arc::clone(slots).acquire_owned() => slot.ok(),
            };
        }
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
