//! Cases about turns: what is appended is appended once.

use std::sync::Arc;

use proofhouse_store::model::{Append, DeliveryState, TaskState};
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{
    LONG, OVER, allow, append, at_once, claim_one, create, delivery, interest, kind, lease,
    message, refused, route, task, tool, two,
};

pub(crate) async fn an_append_is_one_step(place: Arc<Place>) {
    let store = place.open().await;
    let mut new = task("t1");
    new.interests = vec![interest("opened")];
    store.create_task(new).await.unwrap();
    route(&*store, vec![delivery("t1", "opened")]).await;
    let claimed = claim_one(&*store, "one").await;
    let next = claimed.next.expect("a delivery");
    let appended = store
        .append(Append {
            allow: vec![allow("repo", json!("ours"), false)],
            state: Some((TaskState::Waiting, Some(json!({"for": "a review"})))),
            snapshot: Some(json!({"count": 2})),
            delivered: Some(next.id),
            ..append("t1", claimed.lease.held(), 0, 2)
        })
        .await
        .unwrap();
    assert_eq!(appended.next_seq, 2);
    let turns = store.turns("t1", 0, 10).await.unwrap();
    assert_eq!(
        turns.iter().map(|turn| turn.seq).collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(turns[1].body, json!({"number": 1}));
    assert_eq!(store.turns("t1", 1, 10).await.unwrap(), turns[1..]);
    let task = store.task("t1").await.unwrap();
    assert_eq!((task.state, task.next_seq), (TaskState::Waiting, 2));
    assert_eq!(task.detail, Some(json!({"for": "a review"})));
    assert_eq!(task.last_activity, appended.at);
    assert_eq!(
        store.snapshot("t1").await.unwrap(),
        Some(json!({"count": 2}))
    );
    assert_eq!(
        store.allow_list("t1").await.unwrap(),
        [allow("repo", json!("ours"), false)]
    );
    let delivered = store.deliveries("t1", None, 10).await.unwrap().remove(0);
    assert_eq!(
        (delivered.state, delivered.turn_seq),
        (DeliveryState::Delivered, Some(0))
    );
    assert!(store.pending("t1", 10).await.unwrap().is_empty());
    // The next one goes on from there, and replaces the snapshot.
    store
        .append(Append {
            snapshot: Some(json!({"count": 3})),
            ..append("t1", claimed.lease.held(), 2, 1)
        })
        .await
        .unwrap();
    assert_eq!(
        store.snapshot("t1").await.unwrap(),
        Some(json!({"count": 3}))
    );
    assert_eq!(store.task("t1").await.unwrap().state, TaskState::Waiting);
}

pub(crate) async fn an_append_happens_once(place: Arc<Place>) {
    let store = place.open().await;
    create(&*store, "t1").await;
    let id = store.deliver("t1", message("hello")).await.unwrap().id();
    let claimed = claim_one(&*store, "one").await;
    let step = Append {
        delivered: Some(id),
        allow: vec![allow("repo", json!("ours"), false)],
        ..append("t1", claimed.lease.held(), 0, 1)
    };
    store.append(step.clone()).await.unwrap();
    // The answer got lost, and it is sent again.
    refused(store.append(step.clone()).await, "conflict");
    // The same delivery cannot become a second turn either.
    refused(
        store
            .append(Append {
                expected_seq: 1,
                ..step.clone()
            })
            .await,
        "conflict",
    );
    refused(
        store
            .append(Append {
                expected_seq: 7,
                delivered: None,
                ..step
            })
            .await,
        "conflict",
    );
    assert_eq!(store.turns("t1", 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.allow_list("t1").await.unwrap().len(), 1);
}

pub(crate) async fn an_old_owner_cannot_append(place: Arc<Place>) {
    let [one, other] = two(&place).await;
    create(&*one, "t1").await;
    let old = lease(&*one, "t1", "one", OVER).await;
    let new = lease(&*other, "t1", "other", LONG).await;
    assert!(new.fence > old.fence);
    refused(one.append(append("t1", old.held(), 0, 1)).await, "fenced");
    assert!(one.turns("t1", 0, 10).await.unwrap().is_empty());
    other.append(append("t1", new.held(), 0, 1)).await.unwrap();
    refused(one.append(append("t1", old.held(), 1, 1)).await, "fenced");
    // A lease that ran out and that nobody took still holds: no one else can have written.
    create(&*one, "t2").await;
    let late = lease(&*one, "t2", "one", OVER).await;
    one.append(append("t2", late.held(), 0, 1)).await.unwrap();
    // Once released it does not, and a lease on something else never did.
    one.release(late.held()).await.unwrap();
    refused(one.append(append("t2", late.held(), 1, 1)).await, "fenced");
    refused(
        other.append(append("t2", new.held(), 1, 1)).await,
        "invalid",
    );
}

pub(crate) async fn a_failed_append_leaves_nothing(place: Arc<Place>) {
    let store = place.open().await;
    create(&*store, "t1").await;
    create(&*store, "t2").await;
    let foreign = store
        .deliver("t2", message("not yours"))
        .await
        .unwrap()
        .id();
    let held = lease(&*store, "t1", "one", LONG).await.held();
    let step = Append {
        delivered: Some(foreign),
        allow: vec![allow("repo", json!("ours"), false)],
        snapshot: Some(json!(1)),
        state: Some((TaskState::Running, None)),
        ..append("t1", held.clone(), 0, 3)
    };
    refused(store.append(step.clone()).await, "conflict");
    refused(
        store
            .append(Append {
                turns: Vec::new(),
                ..step.clone()
            })
            .await,
        "invalid",
    );
    refused(
        store
            .append(Append {
                from: vec![TaskState::Waiting],
                delivered: None,
                ..step
            })
            .await,
        "conflict",
    );
    assert!(store.turns("t1", 0, 10).await.unwrap().is_empty());
    assert!(store.allow_list("t1").await.unwrap().is_empty());
    assert_eq!(store.snapshot("t1").await.unwrap(), None);
    let task = store.task("t1").await.unwrap();
    assert_eq!((task.state, task.next_seq), (TaskState::Idle, 0));
    assert_eq!(store.pending("t2", 10).await.unwrap().len(), 1);
    store.append(append("t1", held, 0, 1)).await.unwrap();
}

pub(crate) async fn a_sealed_parameter_never_grows(place: Arc<Place>) {
    let store = place.open().await;
    let mut new = task("t1");
    new.sealed = vec![allow("repo", json!("ours"), true)];
    new.interests = vec![interest("opened")];
    store.create_task(new).await.unwrap();
    let held = lease(&*store, "t1", "one", LONG).await.held();
    let values = ["a".repeat(5_000), "b".to_owned(), "b".to_owned()];
    let mut growth: Vec<_> = values
        .iter()
        .map(|value| allow("owner", json!(value), false))
        .collect();
    growth.push(allow("repo", json!("theirs"), false));
    growth.push(allow("repo", json!("ours"), false));
    for seq in 0..2 {
        let step = Append {
            allow: growth.clone(),
            ..append("t1", held.clone(), seq, 1)
        };
        store.append(step).await.unwrap();
    }
    let list = store.allow_list("t1").await.unwrap();
    let of = |name: &str| {
        list.iter()
            .filter(|entry| entry.name == name)
            .map(|entry| &entry.value)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("repo"), [&json!("ours")]);
    assert_eq!(of("owner"), [&json!(values[0]), &json!("b")]);
    assert_eq!(
        store.interested(&tool(), Some("t1")).await.unwrap()[0].allow,
        list
    );
}

pub(crate) async fn appends_at_once_have_one_winner(place: Arc<Place>) {
    let store = place.open().await;
    create(&*store, "t1").await;
    let held = lease(&*store, "t1", "one", LONG).await.held();
    let outcomes = at_once(20, |_| {
        let (store, held) = (Arc::clone(&store), held.clone());
        async move { store.append(append("t1", held, 0, 1)).await }
    })
    .await;
    let kinds: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| outcome.as_ref().err().map(kind))
        .collect();
    assert_eq!(kinds, ["conflict"; 19]);
    assert_eq!(store.turns("t1", 0, 10).await.unwrap().len(), 1);
}
