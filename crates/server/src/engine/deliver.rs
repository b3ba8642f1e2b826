//! The deliverer: takes tasks that have something to do, and gives each to a worker of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_store::model::{ClaimedTask, WakeRules};
use proofhouse_wire::sync::lock;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tracing::Instrument as _;

use super::EngineShared;
use super::held_leases::LeaseGuard;
use super::leased_task;

/// Tasks that are taken at once.
const BATCH: usize = 64;
/// How long slots are collected before tasks are claimed for them, while more wait than there are slots: each claim is a
/// transaction, whether for one task or for many.
const COLLECT: Duration = Duration::from_millis(2);
/// Tasks that are woken at once.
const MAX_WOKEN: usize = 1_000;

/// The tasks that this process works on, and how each is told that something is new.
#[derive(Default)]
pub(super) struct ActiveTasks {
    tasks: Mutex<HashMap<String, Arc<TaskSignal>>>,
    /// How many of them sleep, with tools that have something open.
    sleeping: AtomicUsize,
}

/// A task that sleeps, for as long as this lives.
pub(super) struct Sleeping<'a>(&'a AtomicUsize);

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How a worker is told something.
#[derive(Debug)]
pub(super) struct TaskSignal {
    /// Something may be pending.
    pub(super) news: Notify,
    /// The lease is gone, or this process is about to stop: let go at once.
    pub(super) let_go: proofhouse_wire::CancellationToken,
}

impl ActiveTasks {
    /// Notes that a task has a worker, until what this returns is dropped.
    fn add(inner: &Arc<EngineShared>, task: &str, guard: &LeaseGuard) -> ActiveTask {
        let signal = Arc::new(TaskSignal {
            news: Notify::new(),
            let_go: guard.lost().clone(),
        });
        let mut tasks = inner.working.lock();
        tasks.insert(task.to_owned(), Arc::clone(&signal));
        inner.counts().working.inc();
        ActiveTask {
            inner: Arc::clone(inner),
            task: task.to_owned(),
            signal,
        }
    }

    /// Forgets a worker, unless the task has another one by now.
    fn remove(&self, task: &str, signal: &Arc<TaskSignal>) {
        let mut tasks = self.lock();
        if tasks
            .get(task)
            .is_some_and(|known| Arc::ptr_eq(known, signal))
        {
            tasks.remove(task);
        }
    }

    /// Tells the worker of a task that something is new, if it is here.
    pub(super) fn notify(&self, task: &str) -> bool {
        let tasks = self.lock();
        match tasks.get(task) {
            Some(signal) => {
                signal.news.notify_one();
                true
            }
            None => false,
        }
    }

    pub(super) fn sleep(&self) -> Sleeping<'_> {
        self.sleeping.fetch_add(1, Ordering::Relaxed);
        Sleeping(&self.sleeping)
    }

    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<TaskSignal>>> {
        lock(&self.tasks)
    }
}

/// A task that has a worker here, for as long as this lives, however the worker ends.
struct ActiveTask {
    inner: Arc<EngineShared>,
    task: String,
    signal: Arc<TaskSignal>,
}

impl Drop for ActiveTask {
    fn drop(&mut self) {
        self.inner.working.remove(&self.task, &self.signal);
        self.inner.counts().working.dec();
        // Its slot is free.
        self.inner.wake_deliverer.notify_one();
    }
}

/// Takes tasks until the engine stops.
pub(super) async fn run(inner: Arc<EngineShared>) {
    let mut is_behind = false;
    loop {
        if is_behind {
            collect_slots(&inner).await;
        }
        let free = inner.slots.available_permits().min(BATCH);
        if free > 0 {
            let wake = WakeRules {
                waiting: true,
                interrupted: true,
            };
            let lease = inner.options.lease_ms();
            let claimed = inner.store.claim_tasks(&inner.owner, lease, wake, free);
            match claimed.await {
                Ok(claimed) => {
                    is_behind = claimed.len() == free;
                    for task in claimed {
                        let slot = Arc::clone(&inner.slots).try_acquire_owned().ok();
                        work(&inner, slot, task);
                    }
                }
                Err(error) => {
                    is_behind = false;
                    inner.log_store_error("tasks cannot be claimed", &error);
                }
            }
        }
        if is_behind && inner.slots.available_permits() > 0 && !inner.stopping.is_cancelled() {
            continue;
        }
        wake_sleepers(&inner).await;
        tokio::select! {
            biased;
            () = inner.stopping.cancelled() => return,
            () = inner.wake_deliverer.notified() => {}
            () = tokio::time::sleep(inner.options.look) => {}
        }
    }
}

/// Waits until a good part of the slots is free, but not for long.
async fn collect_slots(inner: &EngineShared) {
    let enough = (inner.options.workers / 4).clamp(1, BATCH);
    let collected = async {
        while inner.slots.available_permits() < enough {
            inner.wake_deliverer.notified().await;
        }
    };
    // Whatever is free by then is used.
    let _ = tokio::time::timeout(COLLECT, collected).await;
}

/// Wakes the tasks that sleep here and that another process kept something for.
async fn wake_sleepers(inner: &EngineShared) {
    if inner.working.sleeping.load(Ordering::Relaxed) == 0 {
        return;
    }
    match inner.store.pending_of(&inner.owner, MAX_WOKEN).await {
        Ok(tasks) => tasks.iter().for_each(|task| {
            inner.working.notify(task);
        }),
        Err(error) => inner.log_store_error("deliveries cannot be read", &error),
    }
}

fn work(inner: &Arc<EngineShared>, slot: Option<OwnedSemaphorePermit>, claimed: ClaimedTask) {
    let guard = inner.leases.hold(&claimed.lease);
    let active = ActiveTasks::add(inner, &claimed.task.id, &guard);
    let tracker = inner.tracker.clone();
    tracker.spawn(async move {
        let task = &claimed.task;
        let span = tracing::info_span!("task.work", task = %task.id, agent = %task.agent_name);
        let working = leased_task::work(&active.inner, claimed, &active.signal, guard, slot);
        working.instrument(span).await;
    });
}
