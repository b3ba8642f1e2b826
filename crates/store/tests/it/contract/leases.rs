//! Cases about leases.

use std::sync::Arc;

use proofhouse_store::model::LeaseKind;
use proofhouse_test_support::wait::eventually;

use crate::contract::place::Place;
use crate::contract::support::{LONG, OVER, at_once, refused, two};

pub(crate) async fn a_lease_has_one_owner(place: Arc<Place>) {
    let stores = two(&place).await;
    let outcomes = at_once(50, |number| {
        let store = Arc::clone(&stores[number % 2]);
        async move {
            store
                .acquire(
                    LeaseKind::Duty,
                    "sweeping",
                    &format!("owner {number}"),
                    LONG,
                )
                .await
                .unwrap()
        }
    })
    .await;
    let given: Vec<_> = outcomes.into_iter().flatten().collect();
    assert_eq!(given.len(), 1);
    assert_eq!(stores[0].leases(LeaseKind::Duty).await.unwrap(), given);
    // Not even its owner gets it twice; and names are of their kind.
    let owner = &given[0].owner;
    assert_eq!(
        stores[0]
            .acquire(LeaseKind::Duty, "sweeping", owner, LONG)
            .await
            .unwrap(),
        None
    );
    assert!(
        stores[0]
            .acquire(LeaseKind::Schedule, "sweeping", owner, LONG)
            .await
            .unwrap()
            .is_some()
    );
}

pub(crate) async fn a_fence_only_grows(place: Arc<Place>) {
    let store = place.open().await;
    let acquire = async |owner: &str, ms| {
        store
            .acquire(LeaseKind::Duty, "d", owner, ms)
            .await
            .unwrap()
    };
    let one = acquire("one", LONG).await.unwrap();
    store.release(one.held()).await.unwrap();
    let two = acquire("two", 50).await.unwrap();
    // Releasing, renewing and ending by an old owner do nothing.
    store.release(one.held()).await.unwrap();
    refused(store.renew(one.held(), LONG).await, "fenced");
    let three = eventually("a lease runs out", || acquire("three", LONG)).await;
    refused(store.renew(two.held(), LONG).await, "fenced");
    store.break_lease(LeaseKind::Duty, "d").await.unwrap();
    refused(store.renew(three.held(), LONG).await, "fenced");
    let four = acquire("four", LONG).await.unwrap();
    let fences = [one.fence, two.fence, three.fence, four.fence];
    assert!(fences.is_sorted_by(|one, other| one < other), "{fences:?}");
    let renewed = store.renew(four.held(), 2 * LONG).await.unwrap();
    assert_eq!(
        (renewed.fence, renewed.owner.as_str()),
        (four.fence, "four")
    );
    assert!(renewed.until > four.until);
}

pub(crate) async fn an_owner_renews_and_releases_all(place: Arc<Place>) {
    let store = place.open().await;
    for name in ["a", "b", "c"] {
        store
            .acquire(LeaseKind::Task, name, "one", OVER)
            .await
            .unwrap();
    }
    let lost = store
        .acquire(LeaseKind::Task, "b", "two", LONG)
        .await
        .unwrap()
        .unwrap();
    let mut kept: Vec<_> = store
        .renew_all("one", LONG)
        .await
        .unwrap()
        .into_iter()
        .map(|lease| lease.name)
        .collect();
    kept.sort();
    assert_eq!(kept, ["a", "c"]);
    assert_eq!(
        store
            .acquire(LeaseKind::Task, "a", "two", LONG)
            .await
            .unwrap(),
        None
    );
    assert_eq!(store.release_all("one").await.unwrap(), 2);
    assert_eq!(store.release_all("one").await.unwrap(), 0);
    assert!(
        store
            .acquire(LeaseKind::Task, "a", "two", LONG)
            .await
            .unwrap()
            .is_some()
    );
    store.renew(lost.held(), LONG).await.unwrap();
}

pub(crate) async fn expired_leases_are_taken_over(place: Arc<Place>) {
    let stores = two(&place).await;
    for number in 0..40 {
        stores[0]
            .acquire(LeaseKind::Schedule, &format!("s{number}"), "old", OVER)
            .await
            .unwrap();
    }
    stores[0]
        .acquire(LeaseKind::Schedule, "live", "old", LONG)
        .await
        .unwrap();
    stores[0]
        .acquire(LeaseKind::Duty, "other kind", "old", OVER)
        .await
        .unwrap();
    let taken = at_once(10, |number| {
        let store = Arc::clone(&stores[number % 2]);
        async move {
            store
                .acquire_expired(LeaseKind::Schedule, &format!("new {number}"), LONG, 5)
                .await
                .unwrap()
        }
    })
    .await;
    let mut names: Vec<_> = taken
        .into_iter()
        .flatten()
        .map(|lease| (lease.name, lease.fence))
        .collect();
    names.extend(
        stores[0]
            .acquire_expired(LeaseKind::Schedule, "last", LONG, 100)
            .await
            .unwrap()
            .into_iter()
            .map(|lease| (lease.name, lease.fence)),
    );
    assert!(names.iter().all(|(_, fence)| *fence == 2));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 40);
}
