//! Cases about deliveries and the tasks that have some.

use std::collections::HashSet;
use std::sync::Arc;

use proofhouse_store::model::{DeliveryState, DirectDelivery, Received, TaskState, Wake};

use crate::contract::place::Place;
use crate::contract::support::{
    IDLE, LONG, OVER, append, at_once, change, claim_one, create, delivery, lease, message,
    refused, route, two,
};

pub(crate) async fn a_message_is_delivered_once(place: Arc<Place>) {
    let stores = two(&place).await;
    create(&*stores[0], "t1").await;
    create(&*stores[0], "t2").await;
    let keyed = DirectDelivery {
        key: Some("k".to_owned()),
        ..message("hello")
    };
    let outcomes = at_once(20, |number| {
        let (store, keyed) = (Arc::clone(&stores[number % 2]), keyed.clone());
        async move { store.deliver("t1", keyed).await.unwrap() }
    })
    .await;
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Received::Stored(_)))
            .count(),
        1
    );
    assert_eq!(
        outcomes
            .iter()
            .map(|outcome| outcome.id())
            .collect::<HashSet<_>>()
            .len(),
        1
    );
    // The key is the task's own, and without one every message counts.
    assert!(matches!(
        stores[0].deliver("t2", keyed).await.unwrap(),
        Received::Stored(_)
    ));
    stores[0].deliver("t2", message("a")).await.unwrap();
    stores[0].deliver("t2", message("a")).await.unwrap();
    assert_eq!(stores[1].pending("t2", 10).await.unwrap().len(), 3);
    refused(stores[0].deliver("t9", message("a")).await, "not found");
}

pub(crate) async fn tasks_with_work_are_claimed(place: Arc<Place>) {
    let store = place.open().await;
    for id in ["idle", "waiting", "interrupted", "nothing", "held", "ended"] {
        create(&*store, id).await;
    }
    for id in ["idle", "waiting", "interrupted", "held", "ended"] {
        store.deliver(id, message("work")).await.unwrap();
        store.deliver(id, message("more")).await.unwrap();
    }
    store
        .change_state(change("waiting", TaskState::Waiting))
        .await
        .unwrap();
    store
        .change_state(change("interrupted", TaskState::Interrupted))
        .await
        .unwrap();
    store
        .change_state(change("ended", TaskState::Ended))
        .await
        .unwrap();
    let held = lease(&*store, "held", "other", LONG).await;
    let claimed = claim_one(&*store, "one").await;
    assert_eq!(claimed.task.id, "idle");
    assert_eq!(claimed.lease.owner, "one");
    let first = &store.pending("idle", 10).await.unwrap()[0];
    assert_eq!(claimed.next.as_ref(), Some(first), "the oldest comes first");
    assert!(
        store
            .claim_tasks("two", LONG, IDLE, 10)
            .await
            .unwrap()
            .is_empty()
    );
    let all = Wake {
        waiting: true,
        interrupted: true,
    };
    let ids = store.claim_tasks("two", LONG, all, 10).await.unwrap();
    let ids: HashSet<_> = ids.into_iter().map(|claimed| claimed.task.id).collect();
    assert_eq!(
        ids,
        HashSet::from(["waiting".to_owned(), "interrupted".to_owned()])
    );
    store.release(held.held()).await.unwrap();
    assert_eq!(claim_one(&*store, "two").await.task.id, "held");
}

pub(crate) async fn a_task_without_its_process_is_claimed(place: Arc<Place>) {
    let [one, other] = two(&place).await;
    create(&*one, "t1").await;
    one.deliver("t1", message("work")).await.unwrap();
    let mut claimed = one.claim_tasks("one", OVER, IDLE, 10).await.unwrap();
    let claimed = claimed.remove(0);
    let mut step = append("t1", claimed.lease.held(), 0, 1);
    step.delivered = claimed.next.map(|next| next.id);
    step.state = Some((TaskState::Running, None));
    one.append(step).await.unwrap();
    // The process is gone: another takes the task up where it was, without a new delivery.
    let taken = claim_one(&*other, "other").await;
    assert_eq!(
        (taken.task.state, taken.task.next_seq),
        (TaskState::Running, 1)
    );
    assert_eq!(taken.next, None);
    assert!(taken.lease.fence > claimed.lease.fence);
    refused(
        one.append(append("t1", claimed.lease.held(), 1, 1)).await,
        "fenced",
    );
}

pub(crate) async fn claims_at_once_share_the_tasks(place: Arc<Place>) {
    let stores = two(&place).await;
    for number in 0..30 {
        let id = format!("t{number}");
        create(&*stores[0], &id).await;
        stores[0].deliver(&id, message("work")).await.unwrap();
    }
    let claims = at_once(20, |number| {
        let store = Arc::clone(&stores[number % 2]);
        async move {
            store
                .claim_tasks(&format!("owner {number}"), LONG, IDLE, 4)
                .await
                .unwrap()
        }
    })
    .await;
    let mut ids: Vec<_> = claims
        .into_iter()
        .flatten()
        .map(|claimed| claimed.task.id)
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "a task was claimed twice");
    let rest = stores[1]
        .claim_tasks("last", LONG, IDLE, 100)
        .await
        .unwrap()
        .len();
    assert_eq!(count + rest, 30);
}

pub(crate) async fn a_delivery_can_be_discarded(place: Arc<Place>) {
    let store = place.open().await;
    create(&*store, "t1").await;
    let (_, ids) = route(&*store, vec![delivery("t1", "opened")]).await;
    let old = lease(&*store, "t1", "one", OVER).await.held();
    let held = lease(&*store, "t1", "two", LONG).await.held();
    refused(store.discard(old, ids[0], "late").await, "fenced");
    store
        .discard(held.clone(), ids[0], &"long ".repeat(2_000))
        .await
        .unwrap();
    refused(
        store.discard(held.clone(), ids[0], "twice").await,
        "conflict",
    );
    let found = store.deliveries("t1", None, 10).await.unwrap().remove(0);
    assert_eq!(found.state, DeliveryState::Discarded);
    assert!(found.reason.unwrap().len() <= 4096);
    let mut step = append("t1", held, 0, 1);
    step.delivered = Some(ids[0]);
    refused(store.append(step).await, "conflict");
    assert!(
        store
            .deliveries("t1", Some(ids[0]), 10)
            .await
            .unwrap()
            .is_empty()
    );
}
