//! Cases about leases.

use std::sync::Arc;

use proofhouse_store::model::{Lease, LeaseKind, StateChange, TaskState};
use proofhouse_test_support::wait::eventually;

use crate::contract::place::Place;
use crate::contract::support::{LONG, OVER, at_once, change, create, refused, two};

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
    let owners = place.texts("SELECT owner FROM leases WHERE kind = 'duty'");
    assert_eq!(owners.await, [given[0].owner.as_str()]);
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
    create(&store, "t1").await;
    let acquire = async |owner: &str, ms| {
        store
            .acquire(LeaseKind::Task, "t1", owner, ms)
            .await
            .unwrap()
    };
    // A write that depends on the lease and on nothing else.
    let write = async |lease: &Lease| {
        let held = Some(lease.held());
        let to_idle = change("t1", TaskState::Idle);
        store.change_state(StateChange { held, ..to_idle }).await
    };
    let one = acquire("one", LONG).await.unwrap();
    store.release(one.held()).await.unwrap();
    let two = acquire("two", 50).await.unwrap();
    // Releasing and writing by an old owner do nothing.
    store.release(one.held()).await.unwrap();
    refused(write(&one).await, "fenced");
    write(&two).await.unwrap();
    let three = eventually("a lease runs out", || acquire("three", LONG)).await;
    refused(write(&two).await, "fenced");
    store.release(three.held()).await.unwrap();
    refused(write(&three).await, "fenced");
    let four = acquire("four", LONG).await.unwrap();
    let fences = [one.fence, two.fence, three.fence, four.fence];
    assert!(fences.is_sorted_by(|one, other| one < other), "{fences:?}");
    let renewed = store
        .renew("four", 2 * LONG, vec![four.held()])
        .await
        .unwrap();
    let renewed = &renewed.kept[0];
    assert_eq!(
        (renewed.fence, renewed.owner.as_str()),
        (four.fence, "four")
    );
    assert!(renewed.until > four.until);
}

pub(crate) async fn an_owner_renews_and_releases_all(place: Arc<Place>) {
    let store = place.open().await;
    let mut held = Vec::new();
    for name in ["a", "b", "c"] {
        let lease = store.acquire(LeaseKind::Task, name, "one", OVER);
        held.push(lease.await.unwrap().unwrap().held());
    }
    store
        .acquire(LeaseKind::Task, "b", "two", LONG)
        .await
        .unwrap()
        .unwrap();
    let renewal = store.renew("one", LONG, held).await.unwrap();
    let mut kept: Vec<_> = renewal.kept.into_iter().map(|lease| lease.name).collect();
    kept.sort();
    assert_eq!(
        (kept, renewal.orphans),
        (vec!["a".to_owned(), "c".to_owned()], 0)
    );
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
}

/// What an owner holds without working on it is released; what it took just now is left alone.
pub(crate) async fn only_what_is_worked_on_is_renewed(place: Arc<Place>) {
    let store = place.open().await;
    let acquire = async |name: &str, owner: &str, ms| {
        let lease = store.acquire(LeaseKind::Task, name, owner, ms).await;
        lease.unwrap().unwrap()
    };
    let worked_on = acquire("worked on", "one", LONG / 2).await;
    acquire("orphan", "one", LONG / 2).await;
    acquire("fresh", "one", LONG).await;
    acquire("another's", "two", LONG / 2).await;
    let renewal = store.renew("one", LONG, vec![worked_on.held()]).await;
    let renewal = renewal.unwrap();
    assert_eq!((renewal.kept.len(), renewal.orphans), (1, 1));
    assert!(renewal.kept[0].until > worked_on.until);
    acquire("orphan", "three", LONG).await;
    for name in ["worked on", "fresh", "another's"] {
        let taken = store.acquire(LeaseKind::Task, name, "three", LONG).await;
        assert_eq!(taken.unwrap(), None, "{name}");
    }
    // Releasing several leaves alone what has moved.
    let orphan = acquire("moves", "one", OVER).await;
    let moved = acquire("moves", "two", LONG).await;
    let both = vec![orphan.held(), worked_on.held()];
    store.release_each(both).await.unwrap();
    acquire("worked on", "three", LONG).await;
    let still = store.renew("two", LONG, vec![moved.held()]).await.unwrap();
    assert_eq!(still.kept.len(), 1);
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
    let taken = at_once(10, |number| {
        let store = Arc::clone(&stores[number % 2]);
        async move {
            let (owner, mut taken) = (format!("new {number}"), Vec::new());
            for name in (0..40).map(|number| format!("s{number}")) {
                let acquired = store.acquire(LeaseKind::Schedule, &name, &owner, LONG);
                taken.extend(acquired.await.unwrap());
            }
            let live = store.acquire(LeaseKind::Schedule, "live", &owner, LONG);
            taken.extend(live.await.unwrap());
            taken
        }
    })
    .await;
    let mut names: Vec<_> = taken
        .into_iter()
        .flatten()
        .map(|lease| (lease.name, lease.fence))
        .collect();
    assert!(names.iter().all(|(_, fence)| *fence == 2));
    assert_eq!(names.len(), 40);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 40, "a lease was given twice");
}
