//! The poller: asks endpoints that are due, one process at a time, and commits what it finds with its state.

use std::sync::Arc;

use proofhouse_manifest::Receive;
use proofhouse_store::StoreError;
use proofhouse_store::model::{ClaimedPoll, EventKind, NewEvent, PollCommit};
use proofhouse_tools::receive::poll::{self, PollState};
use serde_json::json;
use tokio::sync::Semaphore;

use super::EngineShared;
use super::listener;
use super::new_task::chance;
use crate::metrics::engine::PollOutcome;

/// Polls that are made at the same time.
const PARALLEL: usize = 8;
/// When a poll whose manifest is gone is looked at again.
const GONE_MS: i64 = 60_000;
/// How fine the random part of a wait is.
const GRAIN: i64 = 10_000;

/// Polls until the engine stops.
pub(super) async fn run(inner: Arc<EngineShared>) {
    let slots = Arc::new(Semaphore::new(PARALLEL));
    loop {
        let free = slots.available_permits();
        if free > 0 {
            let lease = inner.options.lease_ms();
            let claimed = inner.store.claim_polls(&inner.owner, lease, free).await;
            match claimed {
                Ok(claimed) => {
                    for poll in claimed {
                        let (inner, slots) = (Arc::clone(&inner), Arc::clone(&slots));
                        let tracker = inner.tracker.clone();
                        tracker.spawn(async move {
                            let _slot = slots.acquire_owned().await;
                            step(&inner, poll).await;
                        });
                    }
                }
                Err(error) => inner.log_store_error("polls cannot be claimed", &error),
            }
        }
        tokio::select! {
            () = inner.stopping.cancelled() => return,
            () = tokio::time::sleep(inner.options.look) => {}
        }
    }
}

async fn step(inner: &Arc<EngineShared>, claimed: ClaimedPoll) {
    let (row, held) = (claimed.poll, claimed.lease.held());
    let tool = row.tool.clone();
    let count = |outcome| {
        let now = inner.options.now().as_millisecond();
        inner.counts().poll(&tool, outcome, now);
    };
    let mut outcome = PollOutcome::Done;
    let commit = match found(inner, &row).await {
        Ok(Some((step, kind))) => {
            let events = step.items.into_iter().filter_map(|item| {
                Some(NewEvent {
                    source: format!("poll:{}", row.id),
                    tool: row.tool.clone(),
                    name: Some(row.event.clone()),
                    kind,
                    // The state knows what was seen; a key would also keep out what changed back.
                    dedupe_key: None,
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
        Ok(None) => {
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
            let _ = inner.store.release(held).await;
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
    match committed {
        Ok(_) if fired => inner.wake_router.notify_one(),
        Ok(_) | Err(StoreError::Fenced(_)) => {}
        Err(error) => inner.log_store_error("a poll cannot be committed", &error),
    }
}

type PollFindings = Option<(poll::PollStep, EventKind)>;

async fn found(
    inner: &Arc<EngineShared>,
    row: &proofhouse_store::model::PollRecord,
) -> proofhouse_store::Result<PollFindings> {
    let snapshot = inner.manifests.current();
    let task = inner.store.task(&row.task).await?;
    let Some(listener) = listener::of(inner, &snapshot, &task, &row.tool).await? else {
        return Ok(None);
    };
    let Some(Receive::Poll(declared)) = listener.event(&row.event).map(|event| &event.receive)
    else {
        return Ok(None);
    };
    let state: PollState = match &row.cursor {
        // A state that cannot be read would make old items fire as new ones, or lose them.
        Some(kept) => serde_json::from_value(kept.clone()).map_err(|error| {
            StoreError::Corrupt(format!("the state of poll {}: {error}", row.id))
        })?,
        None => PollState::default(),
    };
    #[expect(clippy::cast_precision_loss, reason = "it is small")]
    let part = chance(GRAIN) as f64 / GRAIN as f64;
    let now = inner.options.now();
    let client = &inner.options.client;
    let step = poll::step(client, declared, &listener, &state, now, part).await;
    if let Some(problem) = &step.problem {
        tracing::warn!(task = %row.task, event = %row.event, %problem, "a poll failed");
    }
    Ok(Some((step, EventKind::Poll)))
}
