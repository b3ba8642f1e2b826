//! The scheduler: ticks of schedules, each of which begins one task, whichever process sees it first.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use proofhouse_agent::task::User;
use proofhouse_manifest::Schedule;
use proofhouse_store::Result;
use proofhouse_store::model::{
    ScheduleTick, TickOutcome, TriggerFailure, TriggerKey, TriggerKind, TriggerStatus,
};
use serde_json::{Value, json};

use super::EngineShared;
use super::manifests::ManifestSnapshot;
use super::new_task::{self, TaskRequest};
use crate::metrics::engine::TaskStarter;

/// How often the clock is looked at; cron knows minutes.
const LOOK: Duration = Duration::from_secs(1);

/// Fires schedules until the engine stops.
pub(super) async fn run(inner: Arc<EngineShared>) {
    let look = LOOK.min(inner.options.look);
    loop {
        if let Err(error) = tick(&inner).await {
            inner.log_store_error("schedules cannot be looked at", &error);
        }
        tokio::select! {
            biased;
            () = inner.stopping.cancelled() => return,
            () = tokio::time::sleep(look) => {}
        }
    }
}

async fn tick(inner: &Arc<EngineShared>) -> Result<()> {
    let snapshot = inner.manifests.current();
    let mut schedules = snapshot.catalog().schedules().peekable();
    if schedules.peek().is_none() {
        return Ok(());
    }
    let known = inner.store.triggers().await?;
    for schedule in schedules.filter(|schedule| schedule.enabled) {
        let key = TriggerKey {
            kind: TriggerKind::Schedule,
            namespace: schedule.namespace.clone(),
            name: schedule.name.clone(),
        };
        let status = known.iter().find(|status| status.key == key);
        look(inner, &snapshot, schedule, key, status).await?;
    }
    Ok(())
}

async fn look(
    inner: &Arc<EngineShared>,
    snapshot: &ManifestSnapshot,
    schedule: &Schedule,
    key: TriggerKey,
    status: Option<&TriggerStatus>,
) -> Result<()> {
    let now = inner.options.now();
    let at = |ms: i64| Timestamp::from_millisecond(ms).ok();
    let next = status.and_then(|status| status.next_at).and_then(at);
    let coming = schedule.cadence.next_after(now);
    let millis = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    let Some(next) = next else {
        // Seen for the first time: nothing before now is due.
        return inner.store.set_next_due(&key, millis(coming)).await;
    };
    if next > now {
        // An edit of the manifest may have brought the next tick forward.
        return if coming.is_some_and(|coming| coming < next) {
            inner.store.set_next_due(&key, millis(coming)).await
        } else {
            Ok(())
        };
    }
    // Ticks before the one that was noted as next have been seen to.
    let since = next.checked_sub(Duration::from_millis(1)).unwrap_or(next);
    let due = schedule.cadence.due(since, now);
    if due.skipped > 0 {
        let (skipped, name) = (due.skipped, &schedule.name);
        tracing::warn!(schedule = %name, skipped, "missed ticks are passed over");
    }
    let Some(tick) = due.fire else {
        // Too late for all of them: only the next one is noted.
        return inner.store.set_next_due(&key, millis(due.next)).await;
    };
    let task = match new_task::build(snapshot, &inner.options, begin(schedule, tick)) {
        Ok(task) => task,
        Err(error) => {
            let failure = TriggerFailure {
                key,
                error: error.to_string(),
                tick: Some(tick.as_millisecond()),
                next_at: millis(due.next),
            };
            inner.counts().start_failures.one(TaskStarter::Schedule);
            return inner.store.trigger_failed(failure).await;
        }
    };
    let fired = inner
        .store
        .fire_schedule(ScheduleTick {
            key,
            held: None,
            tick: tick.as_millisecond(),
            next_at: millis(due.next),
            task: Some(task),
        })
        .await?;
    if fired == TickOutcome::Fired {
        inner.counts().begun.one(TaskStarter::Schedule);
        inner.wake_deliverer.notify_one();
    }
    Ok(())
}

fn begin(schedule: &Schedule, tick: Timestamp) -> TaskRequest {
    let mut parameters = schedule.inputs.clone();
    let said = parameters.shift_remove("message");
    TaskRequest {
        namespace: schedule.namespace.clone(),
        agent: schedule.agent.clone(),
        user: User {
            id: schedule.owner.clone(),
            email: None,
        },
        message: said.as_ref().and_then(Value::as_str).map(str::to_owned),
        parameters,
        origin: json!({
            "by": "schedule",
            "schedule": schedule.name,
            "tick": tick.to_string(),
        }),
        trace: None,
        unasked: true,
    }
}
