//! What ends: finished tasks are ended, and what is old enough is removed, by one process at a time, until all of it is gone.

use std::sync::Arc;

use proofhouse_store::model::{LeaseKind, SweepReport};
use proofhouse_store::{Result, StoreError};

use super::EngineShared;

/// Tasks that are ended in one transaction.
const BATCH: usize = 500;

/// Sweeps until the engine stops.
pub(super) async fn run(inner: Arc<EngineShared>) {
    loop {
        match sweep(&inner).await {
            Ok(()) | Err(StoreError::Fenced(_)) => {}
            Err(error) => inner.log_store_error("what is old cannot be removed", &error),
        }
        tokio::select! {
            biased;
            () = inner.stopping.cancelled() => return,
            () = tokio::time::sleep(inner.options.sweep_every) => {}
        }
    }
}

/// Ends and removes everything that is due, unless another process is at it.
async fn sweep(inner: &EngineShared) -> Result<()> {
    let lease_ms = inner.options.lease_ms();
    let duty = inner
        .store
        .acquire(LeaseKind::Duty, "retention", &inner.owner, lease_ms)
        .await?;
    let Some(lease) = duty else {
        return Ok(());
    };
    let guard = inner.leases.hold(&lease);
    let goes_on = || !inner.stopping.is_cancelled() && !guard.lost().is_cancelled();
    let retention = inner.options.retention();
    let mut finished = 0;
    if let Some(idle_ms) = retention.idle_tasks_ms {
        while goes_on() {
            let ended = inner.store.end_finished(idle_ms, BATCH).await?.len();
            finished += ended;
            if ended < BATCH {
                break;
            }
        }
    }
    let mut removed = SweepReport::default();
    while goes_on() {
        removed.add(&inner.store.sweep(retention.rows).await?);
        if !removed.more {
            break;
        }
        // Others want to write too.
        tokio::task::yield_now().await;
    }
    removed.more = false;
    if finished > 0 || !removed.is_empty() {
        let SweepReport {
            dedupe_keys,
            events,
            tasks,
            turns,
            traces,
            keys,
            channels,
            more: _,
        } = removed;
        tracing::info!(
            finished,
            events,
            tasks,
            turns,
            traces,
            keys,
            channels,
            dedupe_keys,
            "ended finished tasks and removed what is old"
        );
    }
    Ok(())
}
