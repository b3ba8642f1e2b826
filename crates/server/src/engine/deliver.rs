//! The deliverer: takes tasks that have something to do, and gives each to a worker of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use proofhouse_store::model::{ClaimedTask, WakeRules};
use proofhouse_wire::sync::lock;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::EngineShared;
use super::leased_task;

/// Tasks that are taken at once.
const BATCH: usize = 16;
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
    /// When the work began: a heartbeat from before that knows nothing of it.
    begun: Instant,
    /// Something may be pending.
    pub(super) news: Notify,
    /// The lease is gone, or this process is about to stop: let go at once.
    pub(super) let_go: proofhouse_wire::CancellationToken,
}

impl ActiveTasks {
    pub(super) fn add(&self, task: &str) -> Arc<TaskSignal> {
        let signal = Arc::new(TaskSignal {
            begun: Instant::now(),
            news: Notify::new(),
            let_go: proofhouse_wire::CancellationToken::new(),
        });
        self.lock().insert(task.to_owned(), Arc::clone(&signal));
        signal
    }

    /// Forgets a worker, unless the task has another one by now.
    pub(super) fn remove(&self, task: &str, signal: &Arc<TaskSignal>) {
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

    /// Lets go of every task from before this time that this does not hold for, and returns how many there were.
    pub(super) fn retain(&self, since: Instant, keep: impl Fn(&str) -> bool) -> u64 {
        let mut count = 0;
        for (task, signal) in self.lock().iter() {
            if signal.begun < since && !keep(task) && !signal.let_go.is_cancelled() {
                signal.let_go.cancel();
                count += 1;
            }
        }
        count
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

/// Takes tasks until the engine stops.
pub(super) async fn run(inner: Arc<EngineShared>) {
    let slots = Arc::new(Semaphore::new(inner.options.workers.max(1)));
    loop {
        let free = slots.available_permits().min(BATCH);
        if free > 0 {
            let wake = WakeRules {
                waiting: true,
                interrupted: true,
            };
            let lease = inner.options.lease_ms();
            let claimed = inner.store.claim_tasks(&inner.owner, lease, wake, free);
            match claimed.await {
                Ok(claimed) => {
                    let is_full = claimed.len() == free;
                    for task in claimed {
                        let slot = Arc::clone(&slots).try_acquire_owned().ok();
                        work(&inner, slot, task);
                    }
                    if is_full {
                        continue;
                    }
                }
                Err(error) => inner.log_store_error("tasks cannot be claimed", &error),
            }
        }
        wake_sleepers(&inner).await;
        tokio::select! {
            () = inner.stopping.cancelled() => return,
            () = inner.wake_deliverer.notified() => {}
            () = tokio::time::sleep(inner.options.look) => {}
        }
    }
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
    let signal = inner.working.add(&claimed.task.id);
    inner.counts().working.inc();
    let inner = Arc::clone(inner);
    let tracker = inner.tracker.clone();
    tracker.spawn(async move {
        let id = claimed.task.id.clone();
        let span = tracing::info_span!("task.work", task = %id, agent = %claimed.task.agent_name);
        let working = leased_task::work(&inner, claimed, &signal, slot);
        working.instrument(span).await;
        inner.working.remove(&id, &signal);
        inner.counts().working.dec();
        // Something may have come while the task was let go of.
        inner.wake_deliverer.notify_one();
    });
}
