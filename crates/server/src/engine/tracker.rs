//! The tasks of the runtime that an engine has started, so that none outlives it, and none ends before it.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;

use proofhouse_wire::sync::lock;
use tokio::task::JoinSet;

use super::EngineShared;
use crate::metrics::engine::EngineLoop;

/// How often it is looked whether everything is done.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// How long a loop that panicked rests before it is started again.
const RESTART_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Runs a loop of the engine until it ends by itself. A panic is a defect, and still not the end of what was promised.
pub(super) async fn kept_up<F: Future<Output = ()>>(
    inner: Arc<EngineShared>,
    name: EngineLoop,
    run: impl Fn(Arc<EngineShared>) -> F,
) {
    while AssertUnwindSafe(run(Arc::clone(&inner)))
        .catch_unwind()
        .await
        .is_err()
    {
        tracing::error!(?name, "a loop of the engine panicked, and is started again");
        inner.counts().restarts.one(name);
        tokio::time::sleep(RESTART_PAUSE).await;
    }
}

/// Spawns, and waits for all that was spawned. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct WorkerSet {
    set: Arc<Mutex<JoinSet<()>>>,
}

impl WorkerSet {
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut set = lock(&self.set);
        // Those that are done are forgotten on the way.
        while let Some(done) = set.try_join_next() {
            if let Err(error) = done
                && error.is_panic()
            {
                tracing::error!(%error, "a worker panicked");
            }
        }
        set.spawn(work);
    }

    /// Spawns a loop of the engine, which is started again when it panics.
    pub(super) fn keep_up<F: Future<Output = ()> + Send + 'static>(
        &self,
        inner: &Arc<EngineShared>,
        name: EngineLoop,
        run: impl Fn(Arc<EngineShared>) -> F + Send + 'static,
    ) {
        self.spawn(kept_up(Arc::clone(inner), name, run));
    }

    /// Waits until everything is done, also what is spawned meanwhile. Whoever stops waiting stops nothing.
    pub(super) async fn wait(&self) {
        loop {
            {
                let mut set = lock(&self.set);
                while set.try_join_next().is_some() {}
                if set.is_empty() {
                    return;
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends everything at its next pause.
    pub(super) fn abort(&self) {
        let mut set = lock(&self.set);
        set.abort_all();
    }
}
