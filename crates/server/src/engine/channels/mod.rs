//! The keeper of push channels: opens them when a task listens, renews them before they end, and closes them
//! on every way out.

mod close;
mod lost_notice;
mod open;
mod renew;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_manifest::{Receive, Subscription};
use proofhouse_store::StoreError;
use proofhouse_store::model::{ChannelFilter, ChannelState, ChannelUpdate, Interest, TaskRecord};
use proofhouse_tools::receive::EventListener;
use proofhouse_wire::retry::{Jitter, RetryPolicy};
use proofhouse_wire::sync::lock;
use tokio::sync::Notify;

use super::EngineShared;
use close::close;
use open::open_missing;
use renew::renew;

/// Channels that are worked on at once.
const BATCH: usize = 16;
/// Channels that are looked at together.
const MAX_CHANNELS: usize = 1_000;
/// The pauses after failures: two seconds after the first, doubling up to five minutes. When to give up depends on what
/// is being tried, so it is not said here.
const RETRY: RetryPolicy = RetryPolicy {
    attempts: u32::MAX,
    base: Duration::from_secs(1),
    cap: Duration::from_secs(5 * 60),
    max_retry_after: Duration::from_secs(5 * 60),
    jitter: Jitter::None,
};

/// Renews and sweeps until the engine stops. Tasks that lack a channel since before it began get one.
pub(super) async fn run(inner: Arc<EngineShared>) {
    let lost = ChannelFilter {
        state: Some(ChannelState::Lost),
        limit: MAX_CHANNELS,
        ..ChannelFilter::default()
    };
    for channel in inner.store.channels(lost).await.unwrap_or_default() {
        ensure(&inner, &channel.task);
    }
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

/// The tasks whose channels are being opened by this process: nobody opens them twice. Whoever comes again ends the pause
/// between two tries.
#[derive(Default)]
pub(super) struct InProgress {
    tasks: Mutex<BTreeMap<String, Arc<Notify>>>,
}

/// Opens the channels that a task wants and does not have, while the task goes on; what cannot be had now is tried again.
pub(super) fn ensure(inner: &Arc<EngineShared>, task: &str) {
    let again = match lock(&inner.opening.tasks).entry(task.to_owned()) {
        Entry::Occupied(known) => return known.get().notify_one(),
        Entry::Vacant(new) => Arc::clone(new.insert(Arc::default())),
    };
    let (inner, task) = (Arc::clone(inner), task.to_owned());
    let tracker = inner.tracker.clone();
    tracker.spawn(async move {
        let mut failures = 0;
        loop {
            match open_missing(&inner, &task, failures).await {
                Ok(true) => failures += 1,
                Ok(false) => break,
                Err(StoreError::Fenced(_) | StoreError::Conflict(_) | StoreError::NotFound(_)) => {
                    break;
                }
                Err(error) => {
                    inner.log_store_error("channels cannot be opened", &error);
                    failures += 1;
                }
            }
            tokio::select! {
                biased;
                () = inner.stopping.cancelled() => break,
                () = again.notified() => {}
                () = tokio::time::sleep(pause(failures)) => {}
            }
        }
        lock(&inner.opening.tasks).remove(&task);
    });
}

/// Whether a task listens no longer for what it was interested in.
fn is_over(inner: &EngineShared, interest: Option<&Interest>, task: &TaskRecord) -> bool {
    let now = inner.options.now().as_millisecond();
    let idle = now.saturating_sub(task.last_activity);
    interest.is_none_or(|interest| interest.timeout_ms.is_some_and(|timeout| idle > timeout))
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
