//! The tasks of the runtime that an engine has started, so that none outlives it.

use std::future::Future;
use std::sync::{Arc, Mutex};

use proofhouse_wire::sync::lock;
use tokio::task::JoinSet;

/// How often it is looked whether everything is done.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

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
