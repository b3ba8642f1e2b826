//! Cases about tasks.

use std::sync::Arc;

use proofhouse_store::model::{
    DeliveryState, DirectDelivery, LeaseKind, NewPoll, StateChange, TaskFilter, TaskState,
};
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{
    LONG, allow, append, change, create, interest, lease, message, refused, task, tool,
};

pub(crate) async fn a_task_begins_with_everything(place: Arc<Place>) {
    let store = place.open().await;
    let mut new = task("t1");
    new.model = Some("small".to_owned());
    new.interests = vec![interest("opened"), interest("closed")];
    new.sealed = vec![
        allow("repo", json!("ours"), true),
        allow("repo", json!("ours too"), true),
    ];
    new.polls = vec![NewPoll {
        tool: tool(),
        event: "changed".to_owned(),
        due_in_ms: 0,
    }];
    new.first = Some(message("begin"));
    let made = store.create_task(new.clone()).await.unwrap();
    assert_eq!(made.state, TaskState::Idle);
    assert_eq!((made.next_seq, made.model.as_deref()), (0, Some("small")));
    assert_eq!(
        made.params.to_string(),
        new.params.to_string(),
        "the order of keys is kept"
    );
    assert_eq!(store.task("t1").await.unwrap(), made);
    let interests = store.interests("t1").await.unwrap();
    assert_eq!(interests.len(), 2);
    assert!(
        interests
            .iter()
            .all(|interest| interest.active && interest.timeout_ms == Some(5_000))
    );
    assert_eq!(store.allow_list("t1").await.unwrap(), new.sealed);
    assert_eq!(store.polls("t1").await.unwrap().len(), 1);
    let pending = store.pending("t1", 10).await.unwrap();
    assert_eq!(pending.len(), 1);
    assert_eq!(
        (pending[0].event, pending[0].state),
        (None, DeliveryState::Pending)
    );
    assert_eq!(pending[0].body, json!({"text": "begin"}));
    refused(store.task("t2").await, "not found");
}

pub(crate) async fn a_task_is_created_once(place: Arc<Place>) {
    let store = place.open().await;
    create(&*store, "t1").await;
    let mut again = task("t1");
    again.interests = vec![interest("opened")];
    again.first = Some(message("begin"));
    refused(store.create_task(again).await, "conflict");
    assert!(store.interests("t1").await.unwrap().is_empty());
    assert!(store.pending("t1", 10).await.unwrap().is_empty());
    // What belongs to a task and cannot be stored leaves no task behind.
    let mut twice = task("t2");
    twice.interests = vec![interest("opened"), interest("opened")];
    refused(store.create_task(twice).await, "conflict");
    refused(store.task("t2").await, "not found");
}

pub(crate) async fn tasks_are_listed_in_pages(place: Arc<Place>) {
    let store = place.open().await;
    for number in 0..7 {
        let mut new = task(&format!("t{number}"));
        if number % 2 == 0 {
            new.agent_name = "even".to_owned();
        }
        store.create_task(new).await.unwrap();
    }
    store
        .change_state(change("t4", TaskState::Ended))
        .await
        .unwrap();
    let mut after = None;
    let mut seen = Vec::new();
    loop {
        let page = store
            .tasks(TaskFilter {
                after: after.clone(),
                limit: 3,
                ..TaskFilter::default()
            })
            .await
            .unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        seen.extend(page.into_iter().map(|task| task.id));
    }
    assert_eq!(seen, ["t6", "t5", "t4", "t3", "t2", "t1", "t0"]);
    let ids = async |filter: TaskFilter| -> Vec<String> {
        store
            .tasks(filter)
            .await
            .unwrap()
            .into_iter()
            .map(|task| task.id)
            .collect()
    };
    let all = TaskFilter {
        limit: 100,
        ..TaskFilter::default()
    };
    let even = TaskFilter {
        agent_name: Some("even".to_owned()),
        agent_namespace: Some("acme".to_owned()),
        ..all.clone()
    };
    assert_eq!(ids(even.clone()).await, ["t6", "t4", "t2", "t0"]);
    let ended = TaskFilter {
        state: Some(TaskState::Ended),
        ..even
    };
    assert_eq!(ids(ended).await, ["t4"]);
    let stranger = TaskFilter {
        user_id: Some("u2".to_owned()),
        ..all
    };
    assert!(ids(stranger).await.is_empty());
}

pub(crate) async fn states_decide_about_interests(place: Arc<Place>) {
    let store = place.open().await;
    let mut new = task("t1");
    new.interests = vec![interest("opened")];
    store.create_task(new).await.unwrap();
    let active = async || store.interested(&tool(), None).await.unwrap().len();
    assert_eq!(active().await, 1);
    let changed = store
        .change_state(StateChange {
            detail: Some(json!({"by": "u1"})),
            ..change("t1", TaskState::Interrupted)
        })
        .await
        .unwrap();
    assert_eq!(changed.detail, Some(json!({"by": "u1"})));
    assert_eq!(active().await, 0);
    assert!(!store.interests("t1").await.unwrap()[0].active);
    let wrong = StateChange {
        from: vec![TaskState::Idle, TaskState::Waiting],
        ..change("t1", TaskState::Running)
    };
    refused(store.change_state(wrong).await, "conflict");
    store
        .change_state(change("t1", TaskState::Idle))
        .await
        .unwrap();
    assert_eq!(active().await, 1);
    store
        .change_state(change("t1", TaskState::Ended))
        .await
        .unwrap();
    assert_eq!(active().await, 0);
    refused(
        store.change_state(change("t9", TaskState::Idle)).await,
        "not found",
    );
}

pub(crate) async fn an_ended_task_stays_ended(place: Arc<Place>) {
    let store = place.open().await;
    create(&*store, "t1").await;
    let held = lease(&*store, "t1", "one", LONG).await.held();
    store.deliver("t1", message("late")).await.unwrap();
    let keyed = DirectDelivery {
        key: Some("k".to_owned()),
        ..message("once")
    };
    let first = store.deliver("t1", keyed.clone()).await.unwrap();
    store
        .change_state(change("t1", TaskState::Ended))
        .await
        .unwrap();
    assert!(store.pending("t1", 10).await.unwrap().is_empty());
    let settled = store.deliveries("t1", None, 10).await.unwrap();
    assert_eq!(settled.len(), 2);
    assert!(
        settled
            .iter()
            .all(|delivery| delivery.state == DeliveryState::Discarded
                && delivery.reason.is_some()
                && delivery.settled_at.is_some())
    );
    refused(
        store.change_state(change("t1", TaskState::Idle)).await,
        "conflict",
    );
    refused(store.append(append("t1", held, 0, 1)).await, "conflict");
    refused(store.deliver("t1", message("later")).await, "conflict");
    // Repeating what was accepted is fine.
    assert_eq!(store.deliver("t1", keyed).await.unwrap().id(), first.id());
}

pub(crate) async fn a_deleted_task_leaves_nothing(place: Arc<Place>) {
    let store = place.open().await;
    let mut new = task("t1");
    new.interests = vec![interest("opened")];
    new.first = Some(message("begin"));
    store.create_task(new).await.unwrap();
    create(&*store, "t2").await;
    let leased = lease(&*store, "t1", "one", LONG).await;
    store
        .append(append("t1", leased.held(), 0, 2))
        .await
        .unwrap();
    store.append_trace("t1", vec![json!(1)]).await.unwrap();
    refused(store.delete_task("t1").await, "conflict");
    store.release(leased.held()).await.unwrap();
    store.delete_task("t1").await.unwrap();
    refused(store.task("t1").await, "not found");
    refused(store.delete_task("t1").await, "not found");
    assert!(store.turns("t1", 0, 10).await.unwrap().is_empty());
    assert!(store.pending("t1", 10).await.unwrap().is_empty());
    assert!(store.trace("t1", 0, 10).await.unwrap().is_empty());
    assert!(store.interested(&tool(), None).await.unwrap().is_empty());
    assert!(store.leases(LeaseKind::Task).await.unwrap().is_empty());
    store.task("t2").await.unwrap();
}
