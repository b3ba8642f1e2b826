//! The feed of changes: tells those who follow a task that it has changed, wherever it runs. However many follow, the store
//! is asked once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proofhouse_store::model::{Millis, TaskState};
use proofhouse_wire::sync::lock;
use tokio::sync::{Notify, watch};

use super::{Engine, EngineShared};

/// How often the store is asked what has changed.
const LOOK: Duration = Duration::from_millis(250);
/// How far back it is asked: a transaction tells a time and is seen a little later.
const OVERLAP_MS: Millis = 5_000;
/// Changes that are told apart; if there are more, all who follow look for themselves.
const MAX_CHANGES: usize = 1_000;

/// The tasks that somebody follows. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct ChangeFeed(Arc<FollowedTasks>);

#[derive(Default)]
struct FollowedTasks {
    tasks: Mutex<HashMap<String, FollowedTask>>,
    /// Somebody follows a task.
    begun: Notify,
    /// Those who follow all tasks.
    all: Mutex<FollowedLists>,
}

struct FollowedLists {
    changes: watch::Sender<u64>,
    /// What the store said the last time.
    seen: HashMap<String, (i64, TaskState)>,
}

impl Default for FollowedLists {
    fn default() -> Self {
        Self {
            changes: watch::channel(0).0,
            seen: HashMap::new(),
        }
    }
}

struct FollowedTask {
    changes: watch::Sender<u64>,
    /// What the store said of it the last time.
    seen: Option<(i64, TaskState)>,
}

/// Tells that a task may have changed.
#[derive(Debug)]
pub(crate) struct TaskFollower(watch::Receiver<u64>);

impl TaskFollower {
    /// Waits until the task may have changed since this was asked the last time.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The engine is gone; whoever follows notices.
            std::future::pending::<()>().await;
        }
    }
}

impl ChangeFeed {
    fn follow(&self, task: &str) -> TaskFollower {
        let mut tasks = self.lock();
        let followed = tasks
            .entry(task.to_owned())
            .or_insert_with(|| FollowedTask {
                changes: watch::channel(0).0,
                seen: None,
            });
        let follower = TaskFollower(followed.changes.subscribe());
        drop(tasks);
        self.0.begun.notify_one();
        follower
    }

    fn follow_all(&self) -> TaskFollower {
        let follower = TaskFollower(lock(&self.0.all).changes.subscribe());
        self.0.begun.notify_one();
        follower
    }

    /// A task has changed in this process.
    pub(super) fn tell(&self, task: &str) {
        let all = lock(&self.0.all);
        if all.changes.receiver_count() > 0 {
            all.changes.send_modify(|count| *count += 1);
        }
        drop(all);
        if let Some(followed) = self.lock().get(task) {
            followed.changes.send_modify(|count| *count += 1);
        }
    }

    /// Forgets tasks that nobody follows any more; whether anybody follows one.
    fn prune(&self) -> bool {
        let mut tasks = self.lock();
        tasks.retain(|_, followed| followed.changes.receiver_count() > 0);
        !tasks.is_empty() || lock(&self.0.all).changes.receiver_count() > 0
    }

    /// Tells those who follow all tasks whether one of these is new or another than before.
    fn observe_all(&self, changes: &[(String, i64, TaskState)]) {
        let mut all = lock(&self.0.all);
        let now = changes.iter();
        let now: HashMap<String, (i64, TaskState)> = now
            .map(|(task, next_seq, state)| (task.clone(), (*next_seq, *state)))
            .collect();
        let has_news = now
            .iter()
            .any(|(task, state)| all.seen.get(task) != Some(state));
        all.seen = now;
        if has_news && all.changes.receiver_count() > 0 {
            all.changes.send_modify(|count| *count += 1);
        }
    }

    /// Tells what the store says.
    fn observe(&self, changes: &[(String, i64, TaskState)]) {
        self.observe_all(changes);
        let mut tasks = self.lock();
        if changes.len() >= MAX_CHANGES {
            for followed in tasks.values_mut() {
                followed.changes.send_modify(|count| *count += 1);
            }
        }
        for (task, next_seq, state) in changes {
            if let Some(followed) = tasks.get_mut(task)
                && followed.seen.replace((*next_seq, *state)) != Some((*next_seq, *state))
            {
                followed.changes.send_modify(|count| *count += 1);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, FollowedTask>> {
        lock(&self.0.tasks)
    }
}

/// Asks the store while somebody follows a task, until the engine stops.
pub(super) async fn run(inner: Arc<EngineShared>) {
    let mut since: Option<Millis> = None;
    loop {
        if !inner.feed.prune() {
            since = None;
            tokio::select! {
                biased;
                () = inner.stopping.cancelled() => return,
                () = inner.feed.0.begun.notified() => {}
            }
        }
        match inner.store.changed_tasks(since, MAX_CHANGES).await {
            Ok((now, changes)) => {
                since = Some(now.saturating_sub(OVERLAP_MS));
                inner.feed.observe(&changes);
            }
            Err(error) => inner.log_store_error("changes cannot be read", &error),
        }
        tokio::select! {
            biased;
            () = inner.stopping.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

impl Engine {
    /// Follows a task.
    pub(crate) fn follow(&self, task: &str) -> TaskFollower {
        self.inner.feed.follow(task)
    }

    /// Follows all tasks.
    pub(crate) fn follow_all(&self) -> TaskFollower {
        self.inner.feed.follow_all()
    }

    /// Waits until this process begins nothing new.
    pub(crate) async fn stopping(&self) {
        self.inner.stopping.cancelled().await;
    }
}
