//! Cases about looking for tasks: by text, by time, by what waits and by what went wrong.

use std::sync::Arc;

use proofhouse_store::Store;
use proofhouse_store::model::{
    AppendTurns, FailureFilter, NewTurn, TaskFilter, TaskRecord, TaskState,
};
use serde_json::{Value, json};

use crate::contract::place::Place;
use crate::contract::support::{LONG, append, create, lease, message, task};

fn all() -> TaskFilter {
    TaskFilter {
        limit: 100,
        ..TaskFilter::default()
    }
}

fn ids(tasks: Vec<TaskRecord>) -> Vec<String> {
    tasks.into_iter().map(|task| task.id).collect()
}

/// Appends turns as the engine does.
async fn happen(store: &Store, task: &str, turns: &[(&str, Value)], detail: Option<Value>) {
    let lease = lease(store, task, "one", LONG).await;
    let seq = store.task(task).await.unwrap().next_seq;
    let turns = turns.iter().map(|(kind, body)| NewTurn {
        kind: (*kind).to_owned(),
        body: body.clone(),
    });
    let step = AppendTurns {
        turns: turns.collect(),
        state: Some((TaskState::Idle, detail)),
        ..append(task, lease.held(), seq, 0)
    };
    store.append(step).await.unwrap();
    store.release(lease.held()).await.unwrap();
}

pub(crate) async fn tasks_are_found_by_text_time_and_condition(place: Arc<Place>) {
    let store = place.open().await;
    for id in ["t1", "t2", "t3"] {
        create(&store, id).await;
    }
    let said = json!({"message": "100%_sure it RAINS in \"Köln\""});
    happen(&store, "t1", &[("input", said)], None).await;
    let failed = json!({"failed": "the model is gone"});
    happen(&store, "t2", &[("failed", json!({}))], Some(failed)).await;
    let found = async |text: &str| ids(store.search_tasks(all(), text).await.unwrap());
    assert_eq!(found("rains in \"Köln\"").await, ["t1"]);
    assert_eq!(found("100%_SURE").await, ["t1"]);
    assert_eq!(found("100%!sure").await, Vec::<String>::new());
    assert_eq!(found("model IS gone").await, ["t2"], "what is known of it");
    assert_eq!(found("T3").await, ["t3"], "its id");
    let one = TaskFilter { limit: 1, ..all() };
    let found = store.search_tasks(one, "t").await.unwrap();
    assert_eq!(ids(found), ["t3"], "the newest first, as many as wanted");
    let others = TaskFilter {
        namespaces: Some(vec!["other".to_owned()]),
        ..all()
    };
    assert!(store.search_tasks(others, "t1").await.unwrap().is_empty());
    let listed = async |filter: TaskFilter| ids(store.tasks(filter).await.unwrap());
    let failed = TaskFilter {
        failed: true,
        ..all()
    };
    assert_eq!(listed(failed).await, ["t2"]);
    let at = store.task("t2").await.unwrap().last_activity;
    let since = TaskFilter {
        active_since: Some(at),
        ..all()
    };
    assert!(listed(since.clone()).await.contains(&"t2".to_owned()));
    let before = TaskFilter {
        active_since: None,
        active_before: Some(at),
        ..since
    };
    assert!(!listed(before).await.contains(&"t2".to_owned()));
}

pub(crate) async fn work_that_nobody_does_is_seen(place: Arc<Place>) {
    let store = place.open().await;
    for id in ["t1", "t2", "t3"] {
        create(&store, id).await;
    }
    for id in ["t1", "t2"] {
        store.deliver(id, message("hello")).await.unwrap();
    }
    // Somebody works on the second one, and the third has nothing to do.
    let _held = lease(&store, "t2", "one", LONG).await;
    let every = ["t1", "t2", "t3"].map(str::to_owned);
    let waits = store.task_waits(every.to_vec()).await.unwrap();
    let waiting: Vec<&str> = waits.iter().map(|wait| wait.task.as_str()).collect();
    assert_eq!(waiting, ["t1"]);
    assert!(waits.iter().all(|wait| wait.waited_ms >= 0));
    let stuck = |ms: i64| TaskFilter {
        stuck_ms: Some(ms),
        ..all()
    };
    assert_eq!(ids(store.tasks(stuck(-1)).await.unwrap()), ["t1"]);
    let hour = store.tasks(stuck(3_600_000)).await.unwrap();
    assert!(hour.is_empty(), "not for so long");
    // Those without an agent are stuck at once, whoever holds them, as long as they have something to do.
    let without = |agent: &str| TaskFilter {
        agents: Some(vec![agent.to_owned()]),
        ..stuck(3_600_000)
    };
    assert_eq!(
        ids(store.tasks(without("acme/helper")).await.unwrap()),
        [""; 0]
    );
    let found = store.tasks(without("acme/other")).await.unwrap();
    assert_eq!(ids(found), ["t2", "t1"]);
}

pub(crate) async fn failures_are_listed_with_their_turns(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    let mut other = task("t2");
    other.agent_namespace = "other".to_owned();
    store.create_task(other).await.unwrap();
    let turns = [
        ("input", json!({"message": "errored"})),
        ("capability", json!({"status": "successful"})),
        ("capability", json!({"status": "errored", "result": "no"})),
        ("failed", json!({"message": "gone"})),
    ];
    happen(&store, "t1", &turns, None).await;
    happen(&store, "t2", &[("failed", json!({}))], None).await;
    let listed = async |filter: FailureFilter| -> Vec<(String, i64)> {
        let found = store.failures(filter).await.unwrap();
        let mut found: Vec<_> = found
            .into_iter()
            .map(|one| (one.task, one.turn.seq))
            .collect();
        found.sort();
        found
    };
    let all = FailureFilter {
        limit: 10,
        ..FailureFilter::default()
    };
    let own = ("t1".to_owned(), 2);
    let gone = ("t1".to_owned(), 3);
    let theirs = ("t2".to_owned(), 0);
    assert_eq!(
        listed(all.clone()).await,
        [own.clone(), gone.clone(), theirs]
    );
    let acme = FailureFilter {
        namespaces: Some(vec!["acme".to_owned()]),
        ..all.clone()
    };
    assert_eq!(listed(acme).await, [own, gone]);
    let later = FailureFilter {
        since: Some(i64::MAX),
        ..all
    };
    assert!(listed(later).await.is_empty());
}
