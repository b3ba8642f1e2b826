//! The router: for each stored event, the tasks it concerns and the tasks it begins, decided once.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_agent::task::User;
use proofhouse_manifest::{EventTrigger, Receive};
use proofhouse_store::StoreError;
use proofhouse_store::model::{
    ClaimedEvent, DeliveryDecision, EventKind, EventRecord, EventRouting, InterestedTask,
    NewDelivery, NewTask, TaskState, ToolRef, TriggerFailure, TriggerKey, TriggerKind,
};
use proofhouse_tools::allow_list::AllowList;
use proofhouse_tools::receive::filter::AllowedValues;
use proofhouse_tools::receive::message::compose;
use proofhouse_tools::receive::timeout::{effective_timeout, is_included};
use proofhouse_tools::receive::webhook::Verification;
use proofhouse_tools::receive::{Discard, trigger};
use serde_json::{Value, json};

use super::manifests::ManifestSnapshot;
use super::new_task::{self, TaskRequest};
use super::routing_counts::RoutingCounts;
use super::signatures;
use super::{EngineError, EngineShared, kept_trace};

/// Events that are claimed at once.
const BATCH: usize = 64;
/// Webhooks that are being stored from which on routing waits a little: platforms give up on those who do not answer, and
/// what is stored can wait.
const BUSY: usize = 32;
/// How long it waits then before the next events.
const BREATH: Duration = Duration::from_millis(20);
/// Tasks, discards and problems that the record of an event names; it counts them all.
const MAX_NAMED: usize = 50;

/// Routes events until the engine stops.
pub(super) async fn run(inner: Arc<EngineShared>) {
    loop {
        if inner.arriving.count() >= BUSY {
            tokio::select! {
                biased;
                () = inner.stopping.cancelled() => return,
                () = tokio::time::sleep(BREATH) => {}
            }
        }
        let lease = inner.options.lease_ms();
        let claimed = inner.store.claim_events(&inner.owner, lease, BATCH).await;
        match claimed {
            Ok(claimed) => {
                let is_full = claimed.len() == BATCH;
                let stopped = route(&inner, claimed).await.is_break();
                if is_full && !stopped {
                    continue;
                }
            }
            Err(error) => inner.log_store_error("events cannot be claimed", &error),
        }
        tokio::select! {
            biased;
            () = inner.stopping.cancelled() => return,
            () = inner.wake_router.notified() => {}
            () = tokio::time::sleep(inner.options.look) => {}
        }
    }
}

/// `event` as filters, assertions and steps read it.
pub(super) fn event_value(event: &EventRecord) -> Value {
    let payload = serde_json::from_slice(&event.payload).unwrap_or(Value::Null);
    let headers = event.headers.get("headers").cloned();
    json!({"payload": payload, "headers": headers.unwrap_or_else(|| json!({}))})
}

/// What was decided about one event.
#[derive(Default)]
struct RoutingRecord {
    matched: Vec<Value>,
    count: usize,
    reasons: BTreeMap<&'static str, usize>,
    examples: Vec<Value>,
    triggers: Vec<Value>,
    problems: Vec<String>,
}

impl RoutingRecord {
    fn discard(&mut self, task: &str, event: &str, reason: &Discard) {
        *self.reasons.entry(reason.word()).or_default() += 1;
        if self.examples.len() < MAX_NAMED {
            let reason = json!({"task": task, "event": event, "because": reason.word(),
                                "reason": reason.to_string()});
            self.examples.push(reason);
        }
    }

    /// Whether nobody was even asked.
    fn is_empty(&self) -> bool {
        self.count == 0 && self.reasons.is_empty() && self.triggers.is_empty()
    }

    fn into_json(self) -> Value {
        let total: usize = self.reasons.values().sum();
        json!({
            "matched": {"total": self.count, "tasks": self.matched},
            "discarded": {"total": total, "because": self.reasons, "examples": self.examples},
            "triggers": self.triggers,
            "problems": self.problems,
        })
    }
}

/// Decides about events that are claimed, and records it at once where it can. Breaks when the engine stops meanwhile.
async fn route(inner: &Arc<EngineShared>, claimed: Vec<ClaimedEvent>) -> ControlFlow<()> {
    let snapshot = inner.manifests.current();
    // Read after all of them were claimed, so that whatever was allowed before an event came is in it.
    let mut known: HashMap<Concern, Vec<InterestedTask>> = HashMap::new();
    let mut decided = Vec::with_capacity(claimed.len());
    for claimed in claimed {
        if inner.stopping.is_cancelled() {
            let _ = inner.store.unclaim_event(claimed.claim).await;
            continue;
        }
        let summary = &claimed.event.summary;
        let concern = (summary.tool.clone(), summary.target_task.clone());
        let interested = match known.entry(concern) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(free) => {
                let target = summary.target_task.as_deref();
                match inner.store.interested(&summary.tool, target).await {
                    Ok(interested) => free.insert(interested),
                    Err(error) => {
                        inner.log_store_error("interests cannot be read", &error);
                        continue;
                    }
                }
            }
        };
        let (routing, failures) = decide(inner, &snapshot, &claimed, interested);
        let begins = !routing.tasks.is_empty();
        decided.push((routing, failures));
        if begins {
            // The next event may be for a task that this one begins.
            record(inner, std::mem::take(&mut decided)).await;
            known.clear();
        }
        // A thousand filters each: others want to get on too.
        tokio::task::yield_now().await;
    }
    record(inner, decided).await;
    if inner.stopping.is_cancelled() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// Whom an event can concern: those who listen to a tool, or one task alone.
type Concern = (ToolRef, Option<String>);

/// What was decided about an event, and the triggers that could not begin a task for it.
type DecidedEvent = (EventRouting, Vec<TriggerFailure>);

/// Decides about one event.
fn decide(
    inner: &EngineShared,
    snapshot: &ManifestSnapshot,
    claimed: &ClaimedEvent,
    interested: &[InterestedTask],
) -> DecidedEvent {
    let event = &claimed.event;
    let value = event_value(event);
    let mut record = RoutingRecord::default();
    let mut deliveries = Vec::new();
    for one in interested {
        match judge(inner, snapshot, event, &value, one) {
            None => {}
            Some(Ok((delivery, problems))) => {
                record.count += 1;
                if record.matched.len() < MAX_NAMED {
                    let task = json!({"task": delivery.task, "event": delivery.name});
                    record.matched.push(task);
                }
                let room = MAX_NAMED.saturating_sub(record.problems.len());
                record.problems.extend(problems.into_iter().take(room));
                deliveries.push(delivery);
            }
            Some(Err(reason)) => {
                record.discard(&one.interest.task, &one.interest.event, &reason);
            }
        }
    }
    let (tasks, failures) = match event.summary.kind {
        EventKind::Webhook => triggered(inner, snapshot, event, &value, &mut record),
        EventKind::Subscription | EventKind::Poll => Default::default(),
    };
    if record.is_empty() {
        let nobody = "no task listens to events of this tool that come this way";
        record.problems.push(nobody.to_owned());
    }
    let routing = EventRouting {
        claim: claimed.claim,
        outcome: record.into_json(),
        deliveries,
        tasks,
    };
    (routing, failures)
}

/// Records what was decided, and tells those whom it concerns.
async fn record(inner: &Arc<EngineShared>, mut decided: Vec<DecidedEvent>) {
    if decided.is_empty() {
        return;
    }
    let routings: Vec<_> = decided.iter().map(|(one, _)| one.clone()).collect();
    let told = routings.iter().flat_map(|routing| &routing.deliveries);
    let told: BTreeSet<String> = told.map(|delivery| delivery.task.clone()).collect();
    let outcomes = match inner.store.route_all(routings).await {
        Ok(outcomes) => outcomes,
        // A store that is away is away for each of them, and each would wait for it.
        Err(error @ StoreError::Unavailable(_)) => vec![Err(error)],
        Err(error) => {
            // One of them may be what hinders the others, such as a task that is gone by now.
            tracing::debug!(%error, "events cannot be routed together; each is tried alone");
            let mut outcomes = Vec::with_capacity(decided.len());
            for one in &mut decided {
                outcomes.push(record_alone(inner, one).await);
            }
            outcomes
        }
    };
    for ((routing, failures), outcome) in decided.into_iter().zip(outcomes) {
        RoutingCounts::of(&routing).count(inner.counts(), &outcome, failures.len());
        match outcome {
            Ok(_) => {
                for failure in failures {
                    if let Err(error) = inner.store.trigger_failed(failure).await {
                        inner.log_store_error("a failure cannot be counted", &error);
                    }
                }
            }
            // Another process has decided about it.
            Err(StoreError::Fenced(_) | StoreError::Conflict(_)) => {
                tracing::debug!(event = routing.claim.event, "routed elsewhere");
            }
            Err(error) => inner.log_store_error("an event cannot be routed", &error),
        }
    }
    for task in told {
        inner.working.notify(&task);
    }
    inner.wake_deliverer.notify_one();
}

/// Records one decision, without what cannot be kept however often it is tried: the event is routed all the same, and people
/// see what was left out.
async fn record_alone(
    inner: &EngineShared,
    (routing, failures): &mut DecidedEvent,
) -> Result<Vec<i64>, StoreError> {
    loop {
        let error = match inner.store.route(routing.clone()).await {
            Err(error) if error.is_permanent() => error,
            outcome => return outcome,
        };
        tracing::warn!(event = routing.claim.event, %error, "what an event brings about cannot be kept");
        if !leave_out(routing, failures, &error.to_string()) {
            return Err(error);
        }
    }
}

/// Leaves out of a decision what is the largest: a task that a trigger would begin, then what tasks would get, then what was
/// noted. Returns whether there was anything.
fn leave_out(routing: &mut EventRouting, failures: &mut Vec<TriggerFailure>, why: &str) -> bool {
    let sizes = routing.tasks.iter().map(|(_, task)| {
        let first = task.first.as_ref();
        task.params.to_string().len() + first.map_or(0, |first| first.body.to_string().len())
    });
    if let Some((place, _)) = sizes.enumerate().max_by_key(|(_, size)| *size) {
        let (key, task) = routing.tasks.remove(place);
        let told = routing.outcome.get_mut("triggers");
        for one in told.and_then(Value::as_array_mut).into_iter().flatten() {
            if one["task"] == task.id.as_str() {
                *one = json!({"trigger": one["trigger"], "failed": why});
            }
        }
        failures.push(failure(key, why));
        return true;
    }
    let is_given = |one: &NewDelivery| one.decision == DeliveryDecision::Deliver;
    if routing.deliveries.iter().any(is_given) {
        for one in &mut routing.deliveries {
            one.body = Value::Null;
            one.decision = DeliveryDecision::Discard(why.to_owned());
        }
        routing.outcome = json!({"problems": [why]});
        return true;
    }
    false
}

/// A trigger that could not begin a task.
fn failure(key: TriggerKey, error: &str) -> TriggerFailure {
    TriggerFailure {
        key,
        error: error.to_owned(),
        tick: None,
        next_at: None,
    }
}

type TaskDecision = Result<(NewDelivery, Vec<String>), Discard>;

/// Whether an event concerns a task; nothing if it is of another kind than the task waits for.
fn judge(
    inner: &EngineShared,
    snapshot: &ManifestSnapshot,
    event: &EventRecord,
    value: &Value,
    one: &InterestedTask,
) -> Option<TaskDecision> {
    let interest = &one.interest;
    let compiled = snapshot.tool(&interest.tool)?;
    let declared = compiled.event(&interest.event)?;
    let is_meant = match (&declared.receive, event.summary.kind) {
        (Receive::Webhook(_), EventKind::Webhook) => true,
        (Receive::Subscription(_), EventKind::Subscription)
        | (Receive::Poll(_), EventKind::Poll) => {
            event.summary.name.as_deref() == Some(interest.event.as_str())
        }
        _ => false,
    };
    if !is_meant {
        return None;
    }
    let admitted = admit(inner, snapshot, event, value, one);
    Some(admitted.map(|()| {
        let composed = compose(declared, value);
        let body = json!({
            "message": composed.message,
            "truncated": composed.truncated,
            "problems": composed.problems,
        });
        let delivery = NewDelivery {
            task: interest.task.clone(),
            tool: interest.tool.clone(),
            name: interest.event.clone(),
            body,
            decision: DeliveryDecision::Deliver,
        };
        (delivery, composed.problems)
    }))
}

fn admit(
    inner: &EngineShared,
    snapshot: &ManifestSnapshot,
    event: &EventRecord,
    value: &Value,
    one: &InterestedTask,
) -> Result<(), Discard> {
    let interest = &one.interest;
    let (Some(compiled), TaskState::Idle | TaskState::Running | TaskState::Waiting) =
        (snapshot.tool(&interest.tool), one.state)
    else {
        return Err(Discard::TimedOut);
    };
    if event.summary.kind == EventKind::Webhook {
        match signatures::signature_of(&event.headers, &interest.tool, &interest.event) {
            Some(verification) if verification.is_accepted(inner.options.strict) => {}
            Some(Verification::Refused { reason }) => return Err(Discard::Signature { reason }),
            // The event was not there when the webhook came, so nothing was checked for it.
            Some(Verification::Verified { .. } | Verification::Unsigned) | None => {
                return Err(Discard::Unsigned);
            }
        }
    }
    let declared = compiled.event(&interest.event);
    let agent = snapshot.agent(&one.agent_namespace, &one.agent_name);
    let rules = agent
        .as_ref()
        .and_then(|agent| snapshot.capability(agent, &interest.tool))
        .and_then(|(_, rules)| rules);
    if !is_included(rules, &interest.event) {
        return Err(Discard::NotIncluded);
    }
    let timeout = match (&agent, declared) {
        (Some(_), Some(declared)) => effective_timeout(rules, declared, inner.options.max_timeout),
        // What was true when the task began, if nobody can say it now.
        _ => interest
            .timeout_ms
            .and_then(|ms| u64::try_from(ms).ok())
            .map(Duration::from_millis),
    };
    let silent = inner
        .options
        .now()
        .as_millisecond()
        .saturating_sub(one.last_activity);
    if timeout.is_some_and(|timeout| u128::try_from(silent).unwrap_or(0) > timeout.as_millis()) {
        return Err(Discard::TimedOut);
    }
    let Some(filter) = compiled.filters.get(&interest.event) else {
        return Ok(());
    };
    let mut list = AllowList::default();
    for entry in &one.allow {
        if entry.sealed {
            list.seal(&entry.name, entry.value.clone());
        } else {
            list.add(&entry.name, &entry.value);
        }
    }
    filter.admit(value, &AllowedValues::new(&list, &compiled.types))
}

type StartedTasks = (Vec<(TriggerKey, NewTask)>, Vec<TriggerFailure>);

/// The tasks that triggers begin for an event.
fn triggered(
    inner: &EngineShared,
    snapshot: &ManifestSnapshot,
    event: &EventRecord,
    value: &Value,
    record: &mut RoutingRecord,
) -> StartedTasks {
    let mut started = StartedTasks::default();
    let source = &event.summary.tool.name;
    let now = format!("{:.3}", inner.options.now());
    for one in snapshot.catalog().triggers() {
        let namespace = &event.summary.tool.namespace;
        // An address with a namespace is heard there alone.
        let is_elsewhere = !namespace.is_empty() && *namespace != one.namespace;
        if is_elsewhere || !trigger::listens(one, source) {
            continue;
        }
        let key = TriggerKey {
            kind: TriggerKind::Trigger,
            namespace: one.namespace.clone(),
            name: one.name.clone(),
        };
        let name = format!("{}/{}", one.namespace, one.name);
        let signed = match signatures::whole_signature(&event.headers) {
            Some(verification) if verification.is_accepted(inner.options.strict) => Ok(()),
            Some(Verification::Refused { reason }) => Err(Discard::Signature { reason }),
            Some(Verification::Verified { .. } | Verification::Unsigned) | None => {
                Err(Discard::Unsigned)
            }
        };
        let fired = signed.and_then(|()| trigger::fire(one, value, &now));
        let outcome = match fired {
            Ok(start) => {
                let from = (event.summary.id, &event.headers);
                match begin(inner, snapshot, one, start, from) {
                    Ok(task) => {
                        let outcome = json!({"trigger": name, "task": task.id});
                        started.0.push((key, task));
                        outcome
                    }
                    Err(error) => {
                        let error = error.to_string();
                        started.1.push(failure(key, &error));
                        json!({"trigger": name, "failed": error})
                    }
                }
            }
            Err(reason) => {
                json!({"trigger": name, "because": reason.word(), "reason": reason.to_string()})
            }
        };
        if record.triggers.len() < MAX_NAMED {
            record.triggers.push(outcome);
        }
    }
    started
}

fn begin(
    inner: &EngineShared,
    snapshot: &ManifestSnapshot,
    one: &EventTrigger,
    start: trigger::TriggeredTask,
    (event, headers): (i64, &Value),
) -> Result<NewTask, EngineError> {
    let mut parameters = start.inputs;
    let said = parameters.shift_remove("message");
    let said = said.as_ref().and_then(Value::as_str).map(str::to_owned);
    let request = TaskRequest {
        namespace: one.namespace.clone(),
        agent: one.agent.clone(),
        user: User {
            id: one.owner.clone(),
            email: None,
        },
        message: start.message.or(said),
        parameters,
        origin: json!({"by": "trigger", "trigger": one.name, "event": event}),
        trace: kept_trace::of(headers),
        unasked: true,
    };
    new_task::build(snapshot, &inner.options, request)
}
