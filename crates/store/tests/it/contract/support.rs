//! What cases share: rows to store, and short ways to get somewhere.

use std::future::Future;
use std::sync::Arc;

use proofhouse_store::model::{
    AllowEntry, AppendTurns, ClaimedTask, DeliveryDecision, DirectDelivery, EventKind, EventRecord,
    EventRouting, HeldLease, Lease, LeaseKind, NewDelivery, NewEvent, NewInterest, NewTask,
    NewTurn, ReceiveOutcome, StateChange, TaskRecord, TaskState, ToolRef, WakeRules,
};
use proofhouse_store::{Result, Store, StoreError};
use serde_json::{Value, json};

/// Longer than any test runs.
pub(crate) const LONG: i64 = 600_000;

/// Over at once.
pub(crate) const OVER: i64 = 0;

/// Wakes idle tasks only.
pub(crate) const IDLE: WakeRules = WakeRules {
    waiting: false,
    interrupted: false,
};

pub(crate) fn tool() -> ToolRef {
    ToolRef::new("acme", "tracker")
}

pub(crate) fn task(id: &str) -> NewTask {
    NewTask {
        id: id.to_owned(),
        agent_namespace: "acme".to_owned(),
        agent_name: "helper".to_owned(),
        model: None,
        user_id: "u1".to_owned(),
        user_email: Some("u1@example.org".to_owned()),
        params: json!({"b": 1, "a": [null, "x"]}),
        origin: json!({"kind": "api"}),
        interests: Vec::new(),
        sealed: Vec::new(),
        polls: Vec::new(),
        first: None,
    }
}

pub(crate) fn interest(event: &str) -> NewInterest {
    NewInterest {
        tool: tool(),
        event: event.to_owned(),
        timeout_ms: Some(5_000),
    }
}

pub(crate) fn allow(name: &str, value: Value, sealed: bool) -> AllowEntry {
    AllowEntry {
        tool: tool(),
        name: name.to_owned(),
        value,
        sealed,
    }
}

pub(crate) fn message(text: &str) -> DirectDelivery {
    DirectDelivery {
        key: None,
        name: "message".to_owned(),
        body: json!({"text": text}),
        same: Vec::new(),
    }
}

pub(crate) fn event(key: Option<&str>) -> NewEvent {
    NewEvent {
        source: "hooks".to_owned(),
        tool: tool(),
        name: None,
        kind: EventKind::Webhook,
        repeats: Default::default(),
        dedupe_key: key.map(str::to_owned),
        headers: json!({"content-type": "application/json"}).into(),
        payload: br#"{"action":"opened"}"#.to_vec(),
        target_task: None,
    }
}

pub(crate) fn delivery(task: &str, name: &str) -> NewDelivery {
    NewDelivery {
        task: task.to_owned(),
        tool: tool(),
        name: name.to_owned(),
        body: json!({"message": "hello"}),
        decision: DeliveryDecision::Deliver,
    }
}

pub(crate) fn routing(
    claim: proofhouse_store::model::EventClaim,
    deliveries: Vec<NewDelivery>,
) -> EventRouting {
    EventRouting {
        claim,
        outcome: json!({"why": "a test"}),
        deliveries,
        tasks: Vec::new(),
    }
}

pub(crate) fn append(task: &str, held: HeldLease, expected_seq: i64, turns: usize) -> AppendTurns {
    AppendTurns {
        task: task.to_owned(),
        held,
        expected_seq,
        turns: (0..turns)
            .map(|turn| NewTurn {
                kind: "note".to_owned(),
                body: json!({"number": turn}),
            })
            .collect(),
        allow: Vec::new(),
        from: Vec::new(),
        state: None,
        delivered: None,
    }
}

pub(crate) fn change(task: &str, to: TaskState) -> StateChange {
    StateChange {
        task: task.to_owned(),
        held: None,
        from: Vec::new(),
        to,
        detail: None,
    }
}

pub(crate) async fn create(store: &Store, id: &str) -> TaskRecord {
    store.create_task(task(id)).await.expect("a task")
}

pub(crate) async fn lease(store: &Store, id: &str, owner: &str, ms: i64) -> Lease {
    store
        .acquire(LeaseKind::Task, id, owner, ms)
        .await
        .expect("it can be asked for")
        .expect("a lease")
}

/// Stores an event without a key.
pub(crate) async fn receive(store: &Store) -> i64 {
    receive_one(store, event(None)).await.id()
}

pub(crate) async fn receive_one(store: &Store, event: NewEvent) -> ReceiveOutcome {
    store
        .receive(vec![event].into())
        .await
        .expect("it is stored")[0]
}

/// Stores an event and routes it to these.
pub(crate) async fn route(store: &Store, deliveries: Vec<NewDelivery>) -> (EventRecord, Vec<i64>) {
    receive(store).await;
    let claimed = store
        .claim_events("router", LONG, 1)
        .await
        .expect("a claim")
        .remove(0);
    let ids = store
        .route(routing(claimed.claim, deliveries))
        .await
        .expect("it is routed");
    (claimed.event, ids)
}

pub(crate) async fn claim_one(store: &Store, owner: &str) -> ClaimedTask {
    let mut claimed = store
        .claim_tasks(owner, LONG, IDLE, 10)
        .await
        .expect("claims");
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    claimed.remove(0)
}

/// What kind of error it is.
pub(crate) fn kind(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unavailable(_) => "unavailable",
        StoreError::Conflict(_) => "conflict",
        StoreError::Fenced(_) => "fenced",
        StoreError::KeyTaken(_) => "key taken",
        StoreError::NotFound(_) => "not found",
        StoreError::Invalid(_) => "invalid",
        StoreError::TooLarge { .. } => "too large",
        StoreError::Corrupt(_) => "corrupt",
        StoreError::NewerSchema { .. } => "newer schema",
    }
}

/// The operation must fail like this.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T>, wanted: &str) -> StoreError {
    match outcome {
        Ok(value) => panic!("expected `{wanted}`, got {value:?}"),
        Err(error) => {
            assert_eq!(kind(&error), wanted, "{error}");
            error
        }
    }
}

/// Does something many times at once and gives the outcomes.
pub(crate) async fn at_once<T, F>(count: usize, mut act: impl FnMut(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = (0..count).map(|number| tokio::spawn(act(number))).collect();
    let mut outcomes = Vec::with_capacity(count);
    for task in tasks {
        outcomes.push(task.await.expect("it ends"));
    }
    outcomes
}

/// Two processes on one database.
pub(crate) async fn two(place: &crate::contract::place::Place) -> [Arc<Store>; 2] {
    [place.open().await, place.open().await]
}
