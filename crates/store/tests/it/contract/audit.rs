//! Cases about the audit log.

use std::sync::Arc;

use proofhouse_store::model::{AuditCheckpoint, AuditFilter, AuditHead, NewAuditEntry};
use proofhouse_store::with_audit_entry;
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{at_once, refused, task};

fn entry(number: usize, namespace: Option<&str>) -> NewAuditEntry {
    NewAuditEntry {
        namespace: namespace.map(str::to_owned),
        entry: json!({"action": "task.begin", "number": number}),
    }
}

fn all() -> AuditFilter {
    AuditFilter {
        limit: 1000,
        ..AuditFilter::default()
    }
}

pub(crate) async fn the_audit_log_is_a_chain(place: Arc<Place>) {
    let store = place.open().await;
    let empty = AuditHead {
        seq: 0,
        hash: String::new(),
    };
    assert_eq!(store.audit_head().await.unwrap(), empty);
    // Several processes append at once, and there is still one chain without gaps.
    let other = place.open().await;
    at_once(20, |number| {
        let store = Arc::clone(if number % 2 == 0 { &store } else { &other });
        async move {
            let namespace = Some("shop").filter(|_| number % 2 == 0);
            store.append_audit(entry(number, namespace)).await.unwrap()
        }
    })
    .await;
    let entries = store.audit(all()).await.unwrap();
    assert_eq!(entries.len(), 20);
    let mut previous = String::new();
    for (at, entry) in (1..).zip(&entries) {
        assert_eq!(entry.seq, at);
        assert!(entry.follows(&previous), "{entry:?}");
        previous = entry.hash.clone();
    }
    let head = store.audit_head().await.unwrap();
    assert_eq!((head.seq, head.hash.as_str()), (20, previous.as_str()));
    // Whatever is changed shows.
    let mut changed = entries[1].clone();
    changed.namespace = Some("other".to_owned());
    assert!(!changed.follows(&entries[0].hash));
    let mut changed = entries[1].clone();
    changed.at += 1;
    assert!(!changed.follows(&entries[0].hash));
    // Pages, from either end, and those of a namespace.
    let page = |filter: AuditFilter| {
        let store = Arc::clone(&store);
        async move {
            let page = store.audit(filter).await.unwrap();
            page.iter().map(|entry| entry.seq).collect::<Vec<_>>()
        }
    };
    let after = AuditFilter { after: 18, ..all() };
    assert_eq!(page(after).await, [19, 20]);
    let before = AuditFilter {
        before: Some(19),
        limit: 2,
        ..AuditFilter::default()
    };
    assert_eq!(page(before).await, [18, 17]);
    let shop = AuditFilter {
        namespaces: Some(vec!["shop".to_owned()]),
        ..all()
    };
    assert_eq!(page(shop).await.len(), 10);
}

pub(crate) async fn a_checkpoint_takes_the_place_of_what_it_covers(place: Arc<Place>) {
    let store = place.open().await;
    for number in 0..5 {
        store.append_audit(entry(number, None)).await.unwrap();
    }
    let entries = store.audit(all()).await.unwrap();
    let checkpoint = |seq: i64, hash: &str| AuditCheckpoint {
        seq,
        hash: hash.to_owned(),
        statement: "{}".to_owned(),
        signature: "signed".to_owned(),
    };
    refused(
        store.prune_audit(checkpoint(3, &entries[3].hash)).await,
        "conflict",
    );
    assert_eq!(store.audit_checkpoint().await.unwrap(), None);
    let third = checkpoint(3, &entries[2].hash);
    assert_eq!(store.prune_audit(third.clone()).await.unwrap(), 3);
    assert_eq!(store.audit_checkpoint().await.unwrap(), Some(third.clone()));
    refused(store.prune_audit(third).await, "conflict");
    store.append_audit(entry(5, None)).await.unwrap();
    let left = store.audit(all()).await.unwrap();
    assert_eq!(left.len(), 3);
    let mut previous = entries[2].hash.clone();
    for entry in &left {
        assert!(entry.follows(&previous), "{entry:?}");
        previous = entry.hash.clone();
    }
    // When everything is removed, the chain goes on all the same.
    let last = left.last().unwrap();
    store
        .prune_audit(checkpoint(last.seq, &last.hash))
        .await
        .unwrap();
    let next = store.append_audit(entry(6, None)).await.unwrap();
    assert!(next.follows(&last.hash));
}

/// An entry and what it is about are one transaction.
pub(crate) async fn an_entry_is_written_with_its_deed_or_neither_is(place: Arc<Place>) {
    let store = place.open().await;
    // What is only read has none.
    let (_, is_written) = with_audit_entry(entry(1, None), store.now()).await;
    assert!(!is_written);
    let begun = with_audit_entry(entry(2, None), async {
        store.create_task(task("a")).await.unwrap();
        // The next write is another matter.
        store.health().await.unwrap();
    });
    assert!(begun.await.1);
    // A deed that fails has none.
    let (again, is_written) = with_audit_entry(entry(3, None), store.create_task(task("a"))).await;
    assert!(again.is_err() && !is_written);
    // An entry that cannot be written undoes the deed.
    let odd = NewAuditEntry {
        namespace: Some("x".repeat(10_000)),
        entry: json!({}),
    };
    let (refused, is_written) = with_audit_entry(odd, store.create_task(task("b"))).await;
    assert!(refused.is_err() && !is_written);
    assert!(store.task("b").await.is_err());
    let listed = store.audit(all()).await.unwrap();
    let entries: Vec<&str> = listed.iter().map(|one| one.entry.as_str()).collect();
    assert_eq!(entries, [entry(2, None).entry.to_string()]);
}
