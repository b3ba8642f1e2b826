//! The engine: takes events in, finds the tasks they concern, and works on tasks, all of it through the store.
//!
//! Several engines, in several processes, share one store. Whatever one of them does is kept before it is acted
//! on, under a lease that a heartbeat renews; when a process goes away, the others take up its work from what is
//! kept. See `docs/decisions/0014-exactly-once.md`.
//!
//! - [`Engine::accept`] stores a webhook before it is answered (`ingest.rs`).
//! - The router (`route.rs`) decides about each stored event once: deliveries, and tasks that triggers begin.
//! - The deliverer (`deliver.rs`) leases tasks with something to do; a worker (`leased_task/`) restores one, gives it
//!   its deliveries, and keeps every turn through its journal (`journal.rs`).
//! - The poller (`polls.rs`), the keeper of channels (`channels/`) and the scheduler (`schedules.rs`) bring
//!   events and tasks about.
//! - [`Engine::watch`] shows a task to whoever asks, wherever it runs (`watch.rs`).

mod channels;
mod commands;
mod deliver;
mod feed;
mod held_leases;
mod idempotency;
mod ingest;
mod journal;
mod kept_trace;
mod leased_task;
mod leases;
mod listener;
mod load;
mod manifests;
mod new_task;
mod options;
mod polls;
mod progress;
mod pushed;
mod route;
mod routing_counts;
mod schedules;
mod signatures;
mod sweeps;
mod tracker;
mod watch;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_agent::model::Usage;
use proofhouse_store::model::{TaskRecord, TriggerKey, TriggerKind};
use proofhouse_store::{Store, StoreError};
use proofhouse_tools::operator::ModelCost;
use proofhouse_wire::CancellationToken;
use tokio::sync::{Notify, Semaphore, broadcast};

pub(crate) use feed::TaskFollower;
pub use idempotency::Idempotency;
pub use ingest::{ToolAddress, WebhookOutcome, WebhookRefusal};
pub use load::ManifestSource;
pub use manifests::{LoadedFile, ManifestProblem, ManifestSnapshot, Manifests};
pub use new_task::TaskRequest;
pub use options::{
    EngineClock, EngineOptions, EngineRetention, HostFactory, MAX_LEASE, MIN_LEASE, OperatorSetup,
    PutBackFault, RandomSource,
};
pub use progress::EngineProgress;
pub use watch::{TaskUpdate, TaskWatch};

use crate::metrics::engine::{EngineLoop, EngineMetrics, TaskStarter};
use deliver::ActiveTasks;
use feed::ChangeFeed;
use held_leases::HeldLeases;
use progress::IdleLeases;
use tracker::{WorkerSet, kept_up};
use watch::TaskChanges;

/// Tasks that may work at the same time at most, whatever the options say.
const MAX_WORKERS: usize = 10_000;
/// Tasks that may stay in memory without working, for each that may work.
const LINGERING: usize = 4;
/// How long handing over may take after the time for finishing is over.
const HAND_OVER: Duration = Duration::from_secs(5);
/// The pause between two tries to release everything at the end.
const RELEASE_PAUSE: Duration = Duration::from_millis(100);

/// Why the engine does not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// There is nothing of that name.
    #[error("there is no {0}")]
    NotFound(String),
    /// It makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// It cannot be done as things stand.
    #[error("{0}")]
    Conflict(String),
    /// It cannot be kept now; try again.
    #[error("{0}")]
    Unavailable(String),
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(what) => Self::NotFound(what),
            StoreError::Invalid(_) | StoreError::TooLarge { .. } => {
                Self::Invalid(error.to_string())
            }
            StoreError::Conflict(_) | StoreError::Fenced(_) | StoreError::KeyTaken(_) => {
                Self::Conflict(error.to_string())
            }
            StoreError::Unavailable(_)
            | StoreError::Corrupt(_)
            | StoreError::NewerSchema { .. } => Self::Unavailable(error.to_string()),
        }
    }
}

/// Runs tasks and what brings events to them. Dropping it stops everything at once, as a crash would.
pub struct Engine {
    inner: Arc<EngineShared>,
}

pub(crate) struct EngineShared {
    store: Arc<Store>,
    manifests: Manifests,
    source: ManifestSource,
    options: EngineOptions,
    owner: String,
    hub: TaskChanges,
    feed: ChangeFeed,
    working: ActiveTasks,
    leases: HeldLeases,
    idle_leases: IdleLeases,
    opening: channels::InProgress,
    arriving: ingest::PendingWebhooks,
    tracker: WorkerSet,
    /// One per task that works.
    slots: Arc<Semaphore>,
    /// One per task that stays in memory for a while, in case something comes for it.
    lingering: Arc<Semaphore>,
    wake_router: Notify,
    wake_deliverer: Notify,
    /// Others should be asked instead.
    draining: CancellationToken,
    /// Nothing new is begun.
    stopping: CancellationToken,
    /// What is under way is handed over.
    deadline: CancellationToken,
    /// Nothing is left; the heartbeat may stop.
    finished: CancellationToken,
}

impl EngineShared {
    /// Notes that something could not be done, which is tried again later.
    fn log_store_error(&self, what: &str, error: &StoreError) {
        tracing::warn!(owner = %self.owner, %error, "{what}");
    }

    /// What is counted.
    fn counts(&self) -> &EngineMetrics {
        &self.options.metrics.engine
    }

    fn out_of_time(&self) -> bool {
        self.deadline.is_cancelled()
    }
}

impl Engine {
    /// Reads the manifests and begins to work.
    ///
    /// # Errors
    ///
    /// Returns an error when the store does not answer, or when the system gives no random numbers to name this process
    /// with.
    pub async fn open(
        store: Arc<Store>,
        source: ManifestSource,
        mut options: EngineOptions,
    ) -> Result<Self, EngineError> {
        if options.by_store_clock {
            options.set_clock(store.now().await?);
        }
        let owner = if options.owner.is_empty() {
            new_task::random_id(&options, "process")?
        } else {
            options.owner.clone()
        };
        let (loader, snapshot) = load::first(&source, &options).await?;
        let snapshot = snapshot
            .ok_or_else(|| EngineError::Unavailable("the manifests cannot be read".to_owned()))?;
        let feed = ChangeFeed::default();
        let workers = options.workers.clamp(1, MAX_WORKERS);
        let inner = Arc::new(EngineShared {
            store,
            manifests: Manifests::new(snapshot),
            source,
            options,
            owner,
            hub: TaskChanges::new(&feed),
            feed,
            working: ActiveTasks::default(),
            leases: HeldLeases::default(),
            idle_leases: IdleLeases::default(),
            draining: CancellationToken::new(),
            opening: channels::InProgress::default(),
            arriving: ingest::PendingWebhooks::default(),
            tracker: WorkerSet::default(),
            slots: Arc::new(Semaphore::new(workers)),
            lingering: Arc::new(Semaphore::new(workers * LINGERING)),
            wake_router: Notify::new(),
            wake_deliverer: Notify::new(),
            stopping: CancellationToken::new(),
            deadline: CancellationToken::new(),
            finished: CancellationToken::new(),
        });
        load::count(&inner, &inner.manifests.current());
        let tracker = &inner.tracker;
        let loader = Arc::new(Mutex::new(loader));
        let load = move |inner| load::run(inner, Arc::clone(&loader));
        tracker.keep_up(&inner, EngineLoop::Router, route::run);
        tracker.keep_up(&inner, EngineLoop::Deliverer, deliver::run);
        tracker.keep_up(&inner, EngineLoop::Polls, polls::run);
        tracker.keep_up(&inner, EngineLoop::Channels, channels::run);
        tracker.keep_up(&inner, EngineLoop::Schedules, schedules::run);
        tracker.keep_up(&inner, EngineLoop::Manifests, load);
        tracker.keep_up(&inner, EngineLoop::Changes, feed::run);
        tracker.keep_up(&inner, EngineLoop::Sweeps, sweeps::run);
        // These go on while the others finish.
        let (beats, releases) = (Arc::clone(&inner), Arc::clone(&inner));
        tokio::spawn(kept_up(beats, EngineLoop::Heartbeat, leases::run));
        tokio::spawn(kept_up(releases, EngineLoop::Releases, leases::release));
        Ok(Self { inner })
    }

    /// Names this process among those on the store.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.inner.owner
    }

    /// Where everything is kept.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.inner.store
    }

    /// The manifests in use, and what is wrong with those that are not.
    #[must_use]
    pub fn manifests(&self) -> Arc<ManifestSnapshot> {
        self.inner.manifests.current()
    }

    /// Uses what the operator configures now. Tasks that are at work keep what they began with.
    pub fn reconfigure(&self, setup: OperatorSetup) {
        self.inner.options.reconfigure(setup);
    }

    /// How long things are kept now.
    #[must_use]
    pub fn retention(&self) -> EngineRetention {
        self.inner.options.retention()
    }

    /// What so many tokens of a model cost, and in which currency, where the operator names its price.
    pub(crate) fn cost(&self, model: &str, usage: Usage) -> Option<(ModelCost, String)> {
        self.inner.options.cost(model, usage)
    }

    /// Tasks that this process works on right now.
    #[must_use]
    pub fn working(&self) -> usize {
        self.inner.working.count()
    }

    /// Whether it is shutting down.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.inner.stopping.is_cancelled()
    }

    /// Whether there is such a schedule or trigger among the manifests.
    pub(crate) fn has_trigger(&self, key: &TriggerKey) -> bool {
        let snapshot = self.manifests();
        let catalog = snapshot.catalog();
        let is_it = |namespace: &str, name: &str| (namespace, name) == (&key.namespace, &key.name);
        match key.kind {
            TriggerKind::Schedule => catalog
                .schedules()
                .any(|schedule| is_it(&schedule.namespace, &schedule.name)),
            TriggerKind::Trigger => catalog
                .triggers()
                .any(|trigger| is_it(&trigger.namespace, &trigger.name)),
        }
    }

    /// Pieces of text that a task's model says, while the task runs in this process.
    pub(crate) fn texts(&self, task: &str) -> broadcast::Receiver<String> {
        self.inner.hub.texts(task)
    }

    /// Starts a task. It is kept when this returns; what it says comes as turns.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no such agent, when the input does not fit, or when it cannot be kept.
    pub async fn start_task(&self, request: TaskRequest) -> Result<TaskRecord, EngineError> {
        let id = self.new_task_id()?;
        self.start_task_as(id, request).await
    }

    /// The id of a task that is about to be started, which nobody can guess.
    pub(crate) fn new_task_id(&self) -> Result<String, EngineError> {
        new_task::random_id(&self.inner.options, "task")
    }

    /// Starts a task with this id.
    ///
    /// # Errors
    ///
    /// As [`Self::start_task`]; `Conflict` when there is one with this id.
    pub(crate) async fn start_task_as(
        &self,
        id: String,
        request: TaskRequest,
    ) -> Result<TaskRecord, EngineError> {
        let snapshot = self.inner.manifests.current();
        let request = new_task::with_namespace(&snapshot, request)?;
        let task = new_task::build_as(id, &snapshot, &self.inner.options, request)?;
        let task = self.inner.store.create_task(task).await?;
        self.inner.counts().begun.one(TaskStarter::Api);
        self.inner.wake_deliverer.notify_one();
        Ok(task)
    }

    /// Routes an event again, as a new attempt, whose number it returns.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no such event, when it is still to be routed, or when it cannot be kept.
    pub async fn replay(&self, event: i64) -> Result<i64, EngineError> {
        let attempt = self.inner.store.replay(event).await?;
        self.inner.wake_router.notify_one();
        Ok(attempt)
    }

    /// Watches a task from the turn of this number on.
    #[must_use]
    pub fn watch(&self, task: &str, from: i64) -> TaskWatch {
        TaskWatch::new(Arc::clone(&self.inner.store), &self.inner.hub, task, from)
    }

    /// Stops: nothing new is begun, what is under way may finish within this time, and the rest is handed over
    /// to other processes, or to the next one.
    pub async fn shutdown(&self, grace: Duration) {
        let inner = &self.inner;
        inner.stopping.cancel();
        if tokio::time::timeout(grace, inner.tracker.wait())
            .await
            .is_err()
        {
            inner.deadline.cancel();
            if tokio::time::timeout(HAND_OVER, inner.tracker.wait())
                .await
                .is_err()
            {
                tracing::warn!(owner = %inner.owner, "work is left to the next process");
                inner.tracker.abort();
            }
        }
        inner.finished.cancel();
        let began = tokio::time::Instant::now();
        while let Err(error) = inner.store.release_all(&inner.owner).await {
            if began.elapsed() >= HAND_OVER {
                inner.log_store_error("leases are left to run out", &error);
                break;
            }
            tokio::time::sleep(RELEASE_PAUSE).await;
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.inner.stopping.cancel();
        self.inner.deadline.cancel();
        self.inner.finished.cancel();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("owner", &self.inner.owner)
            .finish_non_exhaustive()
    }
}
