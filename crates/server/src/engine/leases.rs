//! The heartbeat: renews every lease of this process, and lets go of tasks whose lease has moved.

use std::collections::BTreeSet;
use std::sync::Arc;

use proofhouse_store::model::{LeaseKind, Retention};
use tokio::time::Instant;

use super::EngineShared;

/// Heartbeats per lease: two may be missed.
const BEATS: u32 = 3;
/// Heartbeats between two looks for what is old enough to be removed.
const SWEEP_EVERY: u32 = 120;

/// Beats until the engine has stopped altogether.
pub(super) async fn run(inner: Arc<EngineShared>) {
    let lease = inner.options.lease();
    let mut last = Instant::now();
    let mut beats: u32 = 0;
    loop {
        tokio::select! {
            () = inner.finished.cancelled() => return,
            () = tokio::time::sleep(lease / BEATS) => {}
        }
        let lease_ms = inner.options.lease_ms();
        let begun = Instant::now();
        match inner.store.renew_all(&inner.owner, lease_ms).await {
            Ok(leases) => {
                last = Instant::now();
                let ours: BTreeSet<&str> = leases
                    .iter()
                    .filter(|lease| lease.kind == LeaseKind::Task)
                    .map(|lease| lease.name.as_str())
                    .collect();
                let lost = inner.working.retain(begun, |task| ours.contains(task));
                inner.counts().lease_losses.inc_by(lost);
            }
            Err(error) => {
                inner.log_store_error("leases cannot be renewed", &error);
                if last.elapsed() >= lease {
                    // Others may have taken everything by now.
                    let lost = inner.working.retain(begun, |_| false);
                    inner.counts().lease_losses.inc_by(lost);
                }
            }
        }
        beats = beats.wrapping_add(1);
        if beats % SWEEP_EVERY == 1 {
            sweep(&inner).await;
        }
    }
}

/// Removes what is old, in one process at a time.
async fn sweep(inner: &EngineShared) {
    let lease_ms = inner.options.lease_ms();
    let duty = inner
        .store
        .acquire(LeaseKind::Duty, "retention", &inner.owner, lease_ms);
    let Ok(Some(lease)) = duty.await else {
        return;
    };
    if let Err(error) = inner.store.sweep(Retention::default()).await {
        inner.log_store_error("what is old cannot be removed", &error);
    }
    let _ = inner.store.release(lease.held()).await;
}
