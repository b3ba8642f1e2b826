//! The keeper of push channels: opens them when a task listens, renews them before they end, and closes them
//! on every way out.

mod close;
mod lost_notice;
mod open;
mod renew;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proofhouse_manifest::{Receive, Subscription};
use proofhouse_store::StoreError;
use proofhouse_store::model::ChannelUpdate;
use proofhouse_tools::receive::EventListener;
use proofhouse_wire::retry::{Jitter, RetryPolicy};
use proofhouse_wire::sync::lock;

use super::EngineShared;
use close::close;
use open::open_missing;
use renew::renew;

/// Channels that are worked on at once.
const BATCH: usize = 16;
/// The pauses after failures: two seconds after the first, doubling up to five minutes. When to give up depends on what
/// is being tried, so it is not said here.
const RETRY: RetryPolicy = RetryPolicy {
    attempts: u32::MAX,
    base: Duration::from_secs(1),
    cap: Duration::from_secs(5 * 60),
    max_retry_after: Duration::from_secs(5 * 60),
    jitter: Jitter::None,
};

/// Renews and sweeps until the engine stops.
pub(super) async fn run(inner: Arc<EngineShared>) {
    loop {
        let lease = inner.options.lease_ms();
        match inner.store.claim_renewals(&inner.owner, lease, BATCH).await {
            Ok(claimed) => {
                for claimed in claimed {
                    let guard = inner.leases.hold(&claimed.lease);
                    let inner = Arc::clone(&inner);
                    let tracker = inner.tracker.clone();
                    tracker.spawn(async move { renew(&inner, claimed.channel, guard).await });
                }
            }
            Err(error) => inner.log_store_error("channels cannot be claimed", &error),
        }
        match inner.store.claim_sweeps(&inner.owner, lease, BATCH).await {
            Ok(claimed) => {
                for swept in claimed {
                    let guard = inner.leases.hold(&swept.lease);
                    let inner = Arc::clone(&inner);
                    let tracker = inner.tracker.clone();
                    tracker.spawn(async move { close(&inner, swept.channel, guard).await });
                }
            }
            Err(error) => inner.log_store_error("channels cannot be claimed", &error),
        }
        tokio::select! {
            biased;
            () = inner.stopping.cancelled() => return,
            () = tokio::time::sleep(inner.options.look) => {}
        }
    }
}

/// The tasks whose channels are being opened by this process: nobody opens them twice.
#[derive(Default)]
pub(super) struct InProgress {
    tasks: Mutex<BTreeSet<String>>,
}

impl InProgress {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.tasks)
    }
}

/// Opens the channels that a task wants and does not have, while the task goes on.
pub(super) fn ensure(inner: &Arc<EngineShared>, task: &str) {
    if !inner.opening.lock().insert(task.to_owned()) {
        return;
    }
    let (inner, task) = (Arc::clone(inner), task.to_owned());
    let tracker = inner.tracker.clone();
    tracker.spawn(async move {
        let opened = open_missing(&inner, &task).await;
        inner.opening.lock().remove(&task);
        match opened {
            Ok(()) | Err(StoreError::Fenced(_) | StoreError::Conflict(_)) => {}
            Err(error) => inner.log_store_error("channels cannot be opened", &error),
        }
    });
}

fn subscription_of<'l>(listener: &'l EventListener, event: &str) -> Option<&'l Subscription> {
    match &listener.event(event)?.receive {
        Receive::Subscription(subscription) => Some(subscription),
        _ => None,
    }
}

fn update(id: &str) -> ChannelUpdate {
    ChannelUpdate {
        id: id.to_owned(),
        held: None,
        from: Vec::new(),
        to: None,
        expires_at: None,
        renew_at: None,
        response: None,
        failures: None,
        last_error: None,
        release: true,
    }
}

/// The pause after so many failures.
fn pause(failures: i64) -> Duration {
    let attempt = u32::try_from(failures.max(0)).unwrap_or(u32::MAX);
    RETRY.back_off(attempt.saturating_add(1), 1.0)
}

fn pause_ms(failures: i64) -> i64 {
    i64::try_from(pause(failures).as_millis()).unwrap_or(i64::MAX)
}
