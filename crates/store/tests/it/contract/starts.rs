//! Cases about schedules and triggers.

use std::sync::Arc;

use proofhouse_store::model::{Fire, Fired, LeaseKind, StartFailure, StartKey, StartKind};

use crate::contract::place::Place;
use crate::contract::support::{LONG, OVER, at_once, create, message, refused, task, two};

fn key() -> StartKey {
    StartKey {
        kind: StartKind::Schedule,
        namespace: "acme".to_owned(),
        name: "nightly".to_owned(),
    }
}

fn fire(tick: i64, id: &str) -> Fire {
    let mut new = task(id);
    new.first = Some(message("it is time"));
    Fire {
        key: key(),
        held: None,
        tick,
        next_at: Some(tick + 1_000),
        task: Some(new),
    }
}

pub(crate) async fn a_tick_fires_once(place: Arc<Place>) {
    let store = place.open().await;
    assert_eq!(store.start(&key()).await.unwrap(), None);
    store.set_next(&key(), Some(1_000)).await.unwrap();
    assert_eq!(
        store.start(&key()).await.unwrap().unwrap().next_at,
        Some(1_000)
    );
    assert_eq!(store.fire(fire(1_000, "t1")).await.unwrap(), Fired::Now);
    assert_eq!(store.fire(fire(1_000, "t2")).await.unwrap(), Fired::Before);
    assert_eq!(store.fire(fire(500, "t3")).await.unwrap(), Fired::Before);
    refused(store.task("t2").await, "not found");
    assert_eq!(store.pending("t1", 10).await.unwrap().len(), 1);
    let status = store.start(&key()).await.unwrap().unwrap();
    assert_eq!(
        (status.total, status.last_at, status.next_at),
        (1, Some(1_000), Some(2_000))
    );
    assert_eq!(status.last_task.as_deref(), Some("t1"));
    // A tick whose task cannot be made has not fired.
    create(&*store, "taken").await;
    refused(store.fire(fire(2_000, "taken")).await, "conflict");
    assert_eq!(store.fire(fire(2_000, "t4")).await.unwrap(), Fired::Now);
    // One without the lease does not fire either.
    let old = store
        .acquire(LeaseKind::Schedule, "nightly", "one", OVER)
        .await
        .unwrap()
        .unwrap();
    store
        .acquire(LeaseKind::Schedule, "nightly", "two", LONG)
        .await
        .unwrap();
    let fenced = Fire {
        held: Some(old.held()),
        ..fire(3_000, "t5")
    };
    refused(store.fire(fenced).await, "fenced");
    assert_eq!(store.starts().await.unwrap().len(), 1);
    assert_eq!(store.starts().await.unwrap()[0].total, 2);
}

pub(crate) async fn ticks_at_once_fire_once(place: Arc<Place>) {
    let stores = two(&place).await;
    let outcomes = at_once(20, |number| {
        let store = Arc::clone(&stores[number % 2]);
        async move {
            store
                .fire(fire(1_000, &format!("t{number}")))
                .await
                .unwrap()
        }
    })
    .await;
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| **outcome == Fired::Now)
            .count(),
        1
    );
    assert_eq!(stores[0].stats().await.unwrap().tasks.get("idle"), Some(&1));
}

pub(crate) async fn a_skipped_tick_does_not_fire(place: Arc<Place>) {
    let store = place.open().await;
    let skip = Fire {
        task: None,
        ..fire(1_000, "none")
    };
    assert_eq!(store.fire(skip).await.unwrap(), Fired::Now);
    assert_eq!(store.fire(fire(1_000, "t1")).await.unwrap(), Fired::Before);
    let status = store.start(&key()).await.unwrap().unwrap();
    assert_eq!(
        (status.total, status.last_at, status.next_at),
        (0, None, Some(2_000))
    );
}

pub(crate) async fn failures_are_counted(place: Arc<Place>) {
    let store = place.open().await;
    let failure = StartFailure {
        key: key(),
        error: "there is no such agent\0".to_owned(),
        tick: Some(1_000),
        next_at: Some(2_000),
    };
    store.start_failed(failure.clone()).await.unwrap();
    store.start_failed(failure.clone()).await.unwrap();
    let status = store.start(&key()).await.unwrap().unwrap();
    assert_eq!(
        (status.failures, status.next_at),
        (1, Some(2_000)),
        "a tick fails once"
    );
    assert!(
        status
            .last_error
            .unwrap()
            .starts_with("there is no such agent")
    );
    assert_eq!(store.fire(fire(1_000, "t0")).await.unwrap(), Fired::Before);
    store
        .start_failed(StartFailure {
            tick: None,
            ..failure
        })
        .await
        .unwrap();
    assert_eq!(store.start(&key()).await.unwrap().unwrap().failures, 2);
    store.fire(fire(2_000, "t1")).await.unwrap();
    let status = store.start(&key()).await.unwrap().unwrap();
    assert_eq!((status.failures, status.last_error), (0, None));
}
