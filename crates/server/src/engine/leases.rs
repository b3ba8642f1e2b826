//! The heartbeat: renews the leases that workers of this process hold, lets go of those that have moved, and releases what
//! nobody works on until that is known.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{EngineShared, PutBackFault};

/// Heartbeats per lease: two may be missed.
const BEATS: u32 = 3;
/// The pauses between tries to release something: they double from the first up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// Beats until the engine has stopped altogether.
pub(super) async fn run(inner: Arc<EngineShared>) {
    let lease = inner.options.lease();
    let mut last = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = inner.finished.cancelled() => return,
            () = tokio::time::sleep(lease / BEATS) => {}
        }
        let begun = Instant::now();
        let worked_on = inner.leases.worked_on();
        let renewed = inner
            .store
            .renew(&inner.owner, inner.options.lease_ms(), worked_on);
        let lost = match renewed.await {
            Ok(renewal) => {
                last = Instant::now();
                if renewal.orphans > 0 {
                    let orphans = renewal.orphans;
                    tracing::warn!(owner = %inner.owner, orphans, "released leases that nobody worked on");
                    inner.counts().lease_orphans.inc_by(orphans);
                    inner.wake_deliverer.notify_one();
                }
                inner.leases.lose_others(begun, &renewal.kept)
            }
            Err(error) => {
                inner.log_store_error("leases cannot be renewed", &error);
                if last.elapsed() < lease {
                    continue;
                }
                // Others may have taken everything by now.
                inner.leases.lose_others(begun, &[])
            }
        };
        inner.counts().lease_losses.inc_by(lost);
    }
}

/// Releases what workers leave behind, until the engine has stopped altogether. Whatever cannot be released is tried again.
pub(super) async fn release(inner: Arc<EngineShared>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let waiting = tokio::select! {
            biased;
            () = inner.finished.cancelled() => return,
            waiting = inner.leases.next_to_release() => waiting,
        };
        match inner.store.release_each(waiting.clone()).await {
            Ok(()) => {
                pause = FIRST_PAUSE;
                inner.leases.released(&waiting);
                // Something may have come while the tasks were let go of.
                inner.wake_deliverer.notify_one();
            }
            Err(error) => {
                inner.log_store_error("leases cannot be released yet", &error);
                if inner.options.put_back == Some(PutBackFault::LeasesAreForgotten) {
                    inner.leases.forget(&waiting);
                }
                tokio::select! {
                    biased;
                    () = inner.finished.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                pause = LAST_PAUSE.min(pause * 2);
            }
        }
    }
}
