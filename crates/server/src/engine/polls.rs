//! The poller: asks endpoints that are due, one process at a time, and commits what it finds with its state.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_manifest::interpolate::UrlTemplate;
use proofhouse_manifest::{Poll, Receive};
use proofhouse_store::StoreError;
use proofhouse_store::model::{EventKind, NewEvent, PollCommit, PollRecord, RepeatRule, ToolRef};
use proofhouse_tools::receive::poll::{self, PollState};
use proofhouse_wire::Url;
use proofhouse_wire::sync::lock;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::EngineShared;
use super::held_leases::LeaseGuard;
use super::listener;
use super::new_task::chance;
use crate::metrics::engine::PollOutcome;

/// Polls that are made at the same time, or that wait for their host.
const PARALLEL: usize = 256;
/// Polls of one tool that are made at the same time, in all processes together.
const PER_TOOL: usize = 4;
/// Polls of one host that this process makes at the same time, whatever tools they are of.
const PER_HOST: usize = 8;
/// How long a poll waits for its host before it lets others wait.
const HOST_PATIENCE: Duration = Duration::from_secs(10);
/// When a poll whose manifest is gone is looked at again.
const GONE_MS: i64 = 60_000;
/// How fine the random part of a wait is.
const GRAIN: i64 = 10_000;

/// Polls until the engine stops.
pub(super) async fn run(inner: Arc<EngineShared>) {
    let slots = Arc::new(Semaphore::new(PARALLEL));
    let hosts = Arc::new(HostQueues::default());
    loop {
        let free = slots.available_permits();
        if free > 0 {
            let lease = inner.options.lease_ms();
            let store = &inner.store;
            let claimed = store.claim_polls(&inner.owner, lease, free, PER_TOOL).await;
            match claimed {
                Ok(claimed) => {
                    for poll in claimed {
                        let (inner, slots) = (Arc::clone(&inner), Arc::clone(&slots));
                        let hosts = Arc::clone(&hosts);
                        let tracker = inner.tracker.clone();
                        let guard = inner.leases.hold(&poll.lease);
                        tracker.spawn(async move {
                            let _slot = slots.acquire_owned().await;
                            step(&inner, &hosts, poll.poll, guard).await;
                        });
                    }
                }
                Err(error) => inner.log_store_error("polls cannot be claimed", &error),
            }
        }
        tokio::select! {
            biased;
            () = inner.stopping.cancelled() => return,
            () = tokio::time::sleep(inner.options.look) => {}
        }
    }
}

/// Who waits for which host: each has places of its own, given in the order they were asked for, so that a slow one
/// keeps nobody else waiting.
#[derive(Default)]
struct HostQueues(Mutex<HashMap<String, Arc<Semaphore>>>);

impl HostQueues {
    /// A place at a host, unless that takes too long.
    async fn place(&self, host: &str) -> Option<OwnedSemaphorePermit> {
        let queue = {
            let mut queues = lock(&self.0);
            // Nobody is at a host whose queue nobody else knows.
            queues.retain(|_, queue| Arc::strong_count(queue) > 1);
            let queue = queues.entry(host.to_owned());
            let new = || Arc::new(Semaphore::new(PER_HOST));
            Arc::clone(queue.or_insert_with(new))
        };
        let place = tokio::time::timeout(HOST_PATIENCE, queue.acquire_owned()).await;
        place.ok()?.ok()
    }
}

/// The host that a poll asks, where its address says it; else the tool stands for it.
fn host_of<'p>(declared: &'p Poll, tool: &'p ToolRef) -> &'p str {
    let base = declared.call.url.as_ref().and_then(UrlTemplate::base);
    base.map_or(&tool.name, Url::as_str)
}

async fn step(inner: &Arc<EngineShared>, hosts: &HostQueues, row: PollRecord, guard: LeaseGuard) {
    let held = guard.held().clone();
    let tool = row.tool.clone();
    let count = |outcome| {
        let now = inner.options.now().as_millisecond();
        inner.counts().poll(&tool, outcome, now);
    };
    let mut outcome = PollOutcome::Done;
    let commit = match found(inner, hosts, &row).await {
        Ok(PollFindings::Found(step)) => {
            let events = step.items.into_iter().filter_map(|item| {
                Some(NewEvent {
                    source: format!("poll:{}", row.id),
                    tool: row.tool.clone(),
                    name: Some(row.event.clone()),
                    kind: EventKind::Poll,
                    // The state knows what was seen; a key would also keep out what changed back.
                    dedupe_key: None,
                    repeats: RepeatRule::Kept,
                    headers: json!({"headers": {}, "item": item.id}).into(),
                    payload: serde_json::to_vec(&item.item).ok()?,
                    target_task: Some(row.task.clone()),
                })
            });
            if step.problem.is_some() {
                outcome = PollOutcome::Failed;
            }
            PollCommit {
                held: held.clone(),
                events: events.collect(),
                failures: i64::from(step.state.failures),
                last_error: step.problem.map(|problem| problem.to_string()),
                cursor: serde_json::to_value(&step.state).ok(),
                seen: Vec::new(),
                due_in_ms: i64::try_from(step.wait.as_millis()).unwrap_or(GONE_MS),
            }
        }
        Ok(PollFindings::Busy) => {
            outcome = PollOutcome::Failed;
            PollCommit {
                held: held.clone(),
                events: Vec::new(),
                failures: row.failures,
                last_error: Some("other polls keep the host busy".to_owned()),
                cursor: row.cursor,
                seen: row.seen,
                due_in_ms: i64::try_from(HOST_PATIENCE.as_millis()).unwrap_or(GONE_MS),
            }
        }
        Ok(PollFindings::Gone) => {
            outcome = PollOutcome::Gone;
            PollCommit {
                held: held.clone(),
                events: Vec::new(),
                failures: row.failures.saturating_add(1),
                last_error: Some("the event is in no manifest any more".to_owned()),
                cursor: row.cursor,
                seen: row.seen,
                due_in_ms: GONE_MS,
            }
        }
        Err(error) => {
            inner.log_store_error("a poll cannot be made", &error);
            count(PollOutcome::Lost);
            return;
        }
    };
    let fired = !commit.events.is_empty();
    let committed = inner.store.commit_poll(commit).await;
    count(match committed {
        Ok(_) => outcome,
        // Whoever polls next finds the same again.
        Err(_) => PollOutcome::Lost,
    });
    if let Ok(_) | Err(StoreError::Fenced(_)) = &committed {
        guard.ended();
    }
    match committed {
        Ok(_) if fired => inner.wake_router.notify_one(),
        Ok(_) | Err(StoreError::Fenced(_)) => {}
        Err(error) => inner.log_store_error("a poll cannot be committed", &error),
    }
}

/// What came of a poll.
enum PollFindings {
    /// It was made.
    Found(Box<poll::PollStep>),
    /// Its host had no place for it.
    Busy,
    /// It is in no manifest any more.
    Gone,
}

async fn found(
    inner: &Arc<EngineShared>,
    hosts: &HostQueues,
    row: &PollRecord,
) -> proofhouse_store::Result<PollFindings> {
    let snapshot = inner.manifests.current();
    let task = inner.store.task(&row.task).await?;
    let Some(listener) = listener::of(inner, &snapshot, &task, &row.tool).await? else {
        return Ok(PollFindings::Gone);
    };
    let Some(Receive::Poll(declared)) = listener.event(&row.event).map(|event| &event.receive)
    else {
        return Ok(PollFindings::Gone);
    };
    let Some(_place) = hosts.place(host_of(declared, &row.tool)).await else {
        return Ok(PollFindings::Busy);
    };
    let state: PollState = match &row.cursor {
        // A state that cannot be read would make old items fire as new ones, or lose them.
        Some(kept) => serde_json::from_value(kept.clone()).map_err(|error| {
            StoreError::Corrupt(format!("the state of poll {}: {error}", row.id))
        })?,
        None => PollState::default(),
    };
    #[expect(clippy::cast_precision_loss, reason = "it is small")]
    let part = chance(&inner.options, GRAIN) as f64 / GRAIN as f64;
    let now = inner.options.now();
    let client = &inner.options.call_client();
    let step = poll::step(client, declared, &listener, &state, now, part).await;
    if let Some(problem) = &step.problem {
        tracing::warn!(task = %row.task, event = %row.event, %problem, "a poll failed");
    }
    Ok(PollFindings::Found(Box::new(step)))
}
