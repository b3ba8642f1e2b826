//! Cases about the schema: upgraded, refused, and made once by many.

use std::sync::Arc;

use proofhouse_store::StoreError;
use proofhouse_store::model::{DirectDelivery, EventState, ReceiveOutcome, TaskState, WakeRules};
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{
    LONG, append, at_once, claim_one, create, event, receive_one, refused, routing,
};

/// Rows as version 1 had them.
const VERSION_1_ROWS: &str = "
    INSERT INTO tasks (id, agent_namespace, agent_name, user_id, params, origin, state, next_seq, created_at,
        last_activity) VALUES ('t1', 'acme', 'helper', 'u1', '{}', '{}', 'idle', 1, 5, 6);
    INSERT INTO turns (task_id, seq, kind, body, created_at) VALUES ('t1', 0, 'note', '{\"old\":true}', 6);
    INSERT INTO events (source, tool_namespace, tool, kind, dedupe_key, headers, payload, state, attempt, fate,
        received_at, routed_at, claim_until, claim_fence)
        VALUES ('hooks', 'acme', 'tracker', 'webhook', 'a', '{}', '', 'routed', 1, '{\"why\":1}', 7, 8, 0, 1);
    INSERT INTO events (source, tool_namespace, tool, kind, dedupe_key, headers, payload, state, attempt,
        received_at, claim_until, claim_fence)
        VALUES ('hooks', 'acme', 'tracker', 'webhook', 'b', '{}', '', 'received', 1, 9, 0, 0);
    INSERT INTO deliveries (task_id, event_id, attempt, tool_namespace, tool, name, body, state, created_at)
        VALUES ('t1', 1, 1, 'acme', 'tracker', 'opened', '{}', 'pending', 8);
    INSERT INTO deliveries (task_id, event_id, attempt, tool_namespace, tool, name, body, state, reason, created_at)
        VALUES ('t1', 1, 1, 'acme', 'tracker', 'closed', '{}', 'discarded', 'the filter does not hold', 8);
    INSERT INTO tasks (id, agent_namespace, agent_name, user_id, params, origin, state, next_seq, created_at,
        last_activity) VALUES ('t2', 'acme', 'helper', 'u1', '{}', '{}', 'waiting', 1, 5, 7);
    INSERT INTO deliveries (task_id, attempt, name, body, state, created_at)
        VALUES ('t2', 0, 'message', '{}', 'pending', 8);
    INSERT INTO deliveries (task_id, attempt, name, body, state, created_at)
        VALUES ('t2', 0, 'control.approve', '{\"review\":1}', 'pending', 9);
";

pub(crate) async fn an_older_schema_is_upgraded(place: Arc<Place>) {
    let old = place.try_open(Some(1)).await.unwrap();
    old.close().await;
    assert_eq!(place.schema_version().await, "1");
    let rows = match &*place {
        Place::Sqlite(_) => VERSION_1_ROWS.replace("'{}', ''", "'{}', x''"),
        Place::Postgres { .. } => VERSION_1_ROWS.to_owned(),
    };
    place.sql(&rows).await;
    let store = place.open().await;
    assert_eq!(place.schema_version().await, "10");
    // What was there is there, and what version 2 knows about it is true.
    let detail = store.event(1).await.unwrap();
    assert_eq!(
        (detail.event.summary.matched, detail.event.summary.state),
        (1, EventState::Routed)
    );
    assert_eq!((detail.deliveries.len(), detail.earlier.len()), (2, 0));
    assert_eq!(store.event(2).await.unwrap().event.summary.matched, 0);
    // And it goes on from there.
    assert_eq!(
        receive_one(&store, event(Some("a"))).await,
        ReceiveOutcome::Duplicate(1)
    );
    let claimed = store.claim_events("one", LONG, 10).await.unwrap();
    assert_eq!(claimed.len(), 1);
    store
        .route(routing(claimed[0].claim, Vec::new()))
        .await
        .unwrap();
    assert_eq!(store.replay(1).await.unwrap(), 2);
    let task = claim_one(&store, "one").await;
    assert_eq!((task.task.state, task.task.next_seq), (TaskState::Idle, 1));
    let mut step = append("t1", task.lease.held(), 1, 1);
    step.delivered = task.next.map(|next| next.id);
    store.append(step).await.unwrap();
    assert_eq!(store.turns("t1", 0, 10).await.unwrap().len(), 2);
    // A command that waited is in its queue, and its task is found.
    let commands = store.commands("t2", 10).await.unwrap();
    assert_eq!(
        (commands.len(), commands[0].name.as_str()),
        (1, "control.approve")
    );
    assert_eq!(store.pending("t2", 10).await.unwrap().len(), 1);
    let woken = WakeRules {
        waiting: true,
        interrupted: true,
    };
    let waiting = store.claim_tasks("one", LONG, woken, 10).await.unwrap();
    assert_eq!((waiting.len(), waiting[0].task.id.as_str()), (1, "t2"));
    // Opening it once more changes nothing.
    store.close().await;
    place.open().await.close().await;
    assert_eq!(place.schema_version().await, "10");
}

pub(crate) async fn a_newer_schema_is_refused(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    store.close().await;
    place
        .sql("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
        .await;
    let error = refused(place.try_open(None).await.map(|_| ()), "newer schema");
    assert!(
        matches!(error, StoreError::NewerSchema { found: 99, known } if known < 99),
        "{error:?}"
    );
    assert!(error.to_string().contains("newer program"), "{error}");
}

pub(crate) async fn all_may_open_at_once(place: Arc<Place>) {
    let stores = at_once(6, |_| {
        let place = Arc::clone(&place);
        async move { place.open().await }
    })
    .await;
    for (number, store) in stores.iter().enumerate() {
        create(store, &format!("t{number}")).await;
    }
    assert_eq!(stores[0].stats().await.unwrap().tasks["idle"], 6);
}

/// A database as the server of version 3 left it when it was killed: a task that is idle, one that waits for an answer, one that has
/// ended, an event, and a key. Its leases are still held.
const VERSION_3: [&str; 2] = [
    include_str!("../databases/version-3.sqlite.sql"),
    include_str!("../databases/version-3.postgres.sql"),
];

pub(crate) async fn a_database_of_version_3_goes_on(place: Arc<Place>) {
    match &*place {
        Place::Sqlite(_) => place.sql(VERSION_3[0]).await,
        Place::Postgres { schema, .. } => {
            place.sql(&format!("CREATE SCHEMA {schema}")).await;
            place.sql(VERSION_3[1]).await;
        }
    }
    assert_eq!(place.schema_version().await, "3");
    let store = place.open().await;
    assert_eq!(place.schema_version().await, "10");
    for (id, state, turns) in [
        ("task-idle", TaskState::Idle, 4),
        ("task-waits", TaskState::Waiting, 3),
        ("task-ended", TaskState::Ended, 0),
    ] {
        let task = store.task(id).await.unwrap();
        assert_eq!(task.state, state, "{id}");
        let found = store.turns(id, 0, 100).await.unwrap().len();
        assert!(found >= turns, "{id}: {found}");
        assert_eq!(i64::try_from(found).unwrap(), task.next_seq, "{id}");
    }
    // The key that was made then is for all namespaces, as it was.
    let keys = store.api_keys().await.unwrap();
    let [key] = keys.as_slice() else {
        panic!("{keys:?}");
    };
    assert_eq!((&key.namespaces, &key.family), (&None, &None));
    assert_eq!(store.audit_head().await.unwrap().seq, 0);
    // What was under way is taken up: the leases of the process that was killed have run out.
    let wake = WakeRules {
        waiting: true,
        interrupted: false,
    };
    let answer = DirectDelivery {
        key: None,
        name: "control.approve".to_owned(),
        body: json!({"review": 1}),
        same: Vec::new(),
    };
    store.command("task-waits", answer).await.unwrap();
    let claimed = store.claim_tasks("new", LONG, wake, 10).await.unwrap();
    let claimed = claimed.iter().find(|task| task.task.id == "task-waits");
    let claimed = claimed.unwrap();
    let mut step = append("task-waits", claimed.lease.held(), claimed.task.next_seq, 1);
    step.delivered = claimed.next.as_ref().map(|next| next.id);
    store.append(step).await.unwrap();
    assert_eq!(store.replay(1).await.unwrap(), 2);
}
