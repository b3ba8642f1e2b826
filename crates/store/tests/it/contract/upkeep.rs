//! Cases about the store itself.

use std::sync::Arc;

use proofhouse_store::model::limits::DEDUPE_MS;
use proofhouse_store::model::{NewRun, Received, Retention, TaskState};
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{
    LONG, append, change, create, delivery, event, lease, message, receive_one, refused, route,
    task,
};

/// Keeps nothing that is done.
const NOTHING: Retention = Retention {
    dedupe_ms: 0,
    events_ms: Some(0),
    ended_tasks_ms: Some(0),
    channels_ms: Some(0),
    runs_ms: Some(0),
    batch: 100,
};

pub(crate) async fn what_is_old_is_swept(place: Arc<Place>) {
    let store = place.open().await;
    create(&*store, "lives").await;
    create(&*store, "ended").await;
    let (kept, _) = route(&*store, vec![delivery("lives", "opened")]).await;
    let (gone, _) = route(&*store, Vec::new()).await;
    let open = receive_one(&*store, event(Some("open"))).await.id();
    store.deliver("lives", message("m")).await.unwrap();
    store
        .change_state(change("ended", TaskState::Ended))
        .await
        .unwrap();
    let run = NewRun {
        id: "r".to_owned(),
        summary: json!(1),
        body: json!(1),
    };
    store.save_run(run).await.unwrap();
    let swept = store.sweep(Retention::default()).await.unwrap();
    assert_eq!(
        (swept.events, swept.tasks, swept.dedupe_keys, swept.runs),
        (0, 0, 0, 0)
    );
    let swept = store.sweep(NOTHING).await.unwrap();
    assert_eq!(
        (swept.events, swept.tasks, swept.dedupe_keys, swept.runs),
        (1, 1, 1, 1)
    );
    assert!(!swept.more);
    // What is not done stays: an event that is not routed, one that is not delivered, a task that lives.
    refused(store.event(gone.summary.id).await, "not found");
    store.event(kept.summary.id).await.unwrap();
    store.event(open).await.unwrap();
    refused(store.task("ended").await, "not found");
    assert_eq!(store.pending("lives", 10).await.unwrap().len(), 2);
    let few = Retention {
        batch: 1,
        ..NOTHING
    };
    for _ in 0..3 {
        route(&*store, Vec::new()).await;
        store.claim_events("r", LONG, 1).await.unwrap();
    }
    assert!(store.sweep(few).await.unwrap().more);
}

pub(crate) async fn duplicates_are_kept_out_for_as_long_as_said(place: Arc<Place>) {
    let store = place.open().await;
    let first = receive_one(&*store, event(Some("a"))).await.id();
    let week = Retention {
        dedupe_ms: DEDUPE_MS,
        ..NOTHING
    };
    assert_eq!(Retention::default().dedupe_ms, 7 * 24 * 60 * 60 * 1000);
    let claim = store
        .claim_events("r", LONG, 1)
        .await
        .unwrap()
        .remove(0)
        .claim;
    store
        .route(crate::contract::support::routing(claim, Vec::new()))
        .await
        .unwrap();
    // Also an event that could go stays as long as its key is needed.
    store.sweep(week).await.unwrap();
    assert_eq!(
        receive_one(&*store, event(Some("a"))).await,
        Received::Duplicate(first)
    );
    let old = store.now().await.unwrap() - DEDUPE_MS - 1_000;
    place
        .sql(&format!("UPDATE events SET received_at = {old}"))
        .await;
    assert_eq!(store.sweep(week).await.unwrap().dedupe_keys, 1);
    let second = receive_one(&*store, event(Some("a"))).await;
    assert!(
        matches!(second, Received::Stored(id) if id != first),
        "{second:?}"
    );
}

pub(crate) async fn there_are_counts(place: Arc<Place>) {
    let store = place.open().await;
    assert_eq!(store.stats().await.unwrap().unrouted_events, 0);
    create(&*store, "t1").await;
    create(&*store, "t2").await;
    store
        .change_state(change("t2", TaskState::Waiting))
        .await
        .unwrap();
    store
        .receive(vec![event(None), event(None)].into())
        .await
        .unwrap();
    store.deliver("t1", message("m")).await.unwrap();
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.unrouted_events, stats.pending_deliveries), (2, 1));
    assert_eq!((stats.tasks["idle"], stats.tasks["waiting"]), (1, 1));
    store.health().await.unwrap();
    assert_eq!(store.schema_version().await.unwrap(), 2);
    let now = store.now().await.unwrap();
    assert!(store.now().await.unwrap() >= now && now > 1_700_000_000_000);
}

pub(crate) async fn a_closed_store_is_unavailable(place: Arc<Place>) {
    let store = place.open().await;
    create(&*store, "t1").await;
    store.close().await;
    store.close().await;
    refused(store.task("t1").await, "unavailable");
    refused(store.create_task(task("t2")).await, "unavailable");
    refused(store.health().await, "unavailable");
}

pub(crate) async fn what_was_written_is_there_after_opening_again(place: Arc<Place>) {
    let store = place.open().await;
    create(&*store, "t1").await;
    let held = lease(&*store, "t1", "one", LONG).await;
    store.append(append("t1", held.held(), 0, 2)).await.unwrap();
    let before = (
        store.task("t1").await.unwrap(),
        store.turns("t1", 0, 10).await.unwrap(),
    );
    store.close().await;
    let store = place.open().await;
    assert_eq!(
        (
            store.task("t1").await.unwrap(),
            store.turns("t1", 0, 10).await.unwrap()
        ),
        before
    );
    store.renew(held.held(), LONG).await.unwrap();
}
