//! Cases about the store itself.

use std::sync::Arc;

use proofhouse_store::model::limits::DEDUPE_MS;
use proofhouse_store::model::{
    NewApiKey, ReceiveOutcome, Retention, StoreProgress, SweepReport, TaskState,
};

use crate::contract::place::Place;
use crate::contract::support::{
    LONG, append, change, create, delivery, event, interest, lease, message, receive_one, refused,
    route, task,
};

/// Keeps nothing that is done.
const NOTHING: Retention = Retention {
    dedupe_ms: 0,
    events_ms: Some(0),
    ended_tasks_ms: Some(0),
    turns_ms: Some(0),
    traces_ms: Some(0),
    keys_ms: Some(0),
    channels_ms: Some(0),
    batch: 100,
};

pub(crate) async fn what_is_old_is_swept(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "lives").await;
    create(&store, "ended").await;
    let (kept, _) = route(&store, vec![delivery("lives", "opened")]).await;
    let (gone, _) = route(&store, Vec::new()).await;
    let open = receive_one(&store, event(Some("open"))).await.id();
    store.deliver("lives", message("m")).await.unwrap();
    store
        .change_state(change("ended", TaskState::Ended))
        .await
        .unwrap();
    let swept = store.sweep(Retention::default()).await.unwrap();
    assert_eq!((swept.events, swept.tasks, swept.dedupe_keys), (0, 0, 0));
    let swept = store.sweep(NOTHING).await.unwrap();
    assert_eq!((swept.events, swept.tasks, swept.dedupe_keys), (1, 1, 1));
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
        route(&store, Vec::new()).await;
        store.claim_events("r", LONG, 1).await.unwrap();
    }
    assert!(store.sweep(few).await.unwrap().more);
}

/// Sweeping goes on until all of it is gone: a call says whether there is more, of whatever kind.
pub(crate) async fn every_kind_ends(place: Arc<Place>) {
    let store = place.open().await;
    for id in ["old", "new"] {
        create(&store, id).await;
        let held = lease(&store, id, "one", LONG).await.held();
        store.append(append(id, held.clone(), 0, 3)).await.unwrap();
        store.release(held).await.unwrap();
    }
    let entries = vec![serde_json::json!({"a": 1}); 5];
    store.append_trace("new", entries).await.unwrap();
    for (number, expires_at) in [(0, Some(1)), (1, None)] {
        let key = NewApiKey {
            namespaces: None,
            holder: None,
            id: format!("k{number}"),
            name: "key".to_owned(),
            hash: format!("h{number}"),
            scopes: Vec::new(),
            expires_at,
        };
        store.add_api_key(key).await.unwrap();
    }
    store
        .change_state(change("old", TaskState::Ended))
        .await
        .unwrap();
    let slowly = Retention {
        batch: 2,
        ended_tasks_ms: None,
        ..NOTHING
    };
    let (mut swept, mut calls) = (SweepReport::default(), 0);
    loop {
        swept.add(&store.sweep(slowly).await.unwrap());
        calls += 1;
        if !swept.more {
            break;
        }
    }
    assert_eq!((swept.turns, swept.traces, swept.keys), (3, 5, 1));
    assert!(calls >= 3, "{calls}");
    // A task that lives keeps its turns, and one that ended is there until its own time.
    assert_eq!(store.turns("new", 0, 10).await.unwrap().len(), 3);
    assert_eq!(store.task("old").await.unwrap().state, TaskState::Ended);
    let keys = store.api_keys().await.unwrap();
    assert_eq!((keys.len(), keys[0].id.as_str()), (1, "k1"));
}

/// A task that nobody will wake any more ends; one that listens, works or has something pending does not.
pub(crate) async fn finished_tasks_end(place: Arc<Place>) {
    let store = place.open().await;
    for id in ["finished", "told", "held", "waiting"] {
        create(&store, id).await;
    }
    for (id, timeout_ms) in [
        ("over", Some(1_000)),
        ("listens", Some(DEDUPE_MS)),
        ("always", None),
    ] {
        let mut new = task(id);
        let mut wanted = interest("opened");
        wanted.timeout_ms = timeout_ms;
        new.interests = vec![wanted];
        store.create_task(new).await.unwrap();
    }
    store.deliver("told", message("m")).await.unwrap();
    lease(&store, "held", "one", LONG).await;
    store
        .change_state(change("waiting", TaskState::Waiting))
        .await
        .unwrap();
    assert_eq!(store.end_finished(60_000, 10).await.unwrap(), [""; 0]);
    let old = store.now().await.unwrap() - 60_001;
    place
        .sql(&format!("UPDATE tasks SET last_activity = {old}"))
        .await;
    let mut ended = store.end_finished(60_000, 10).await.unwrap();
    ended.sort();
    assert_eq!(ended, ["finished", "over"]);
    let task = store.task("over").await.unwrap();
    assert_eq!((task.state, task.last_activity), (TaskState::Ended, old));
    assert!(!store.interests("over").await.unwrap()[0].active);
    assert_eq!(store.end_finished(60_000, 10).await.unwrap(), [""; 0]);
}

/// What waits is seen, by how long it has waited.
pub(crate) async fn progress_is_seen(place: Arc<Place>) {
    let store = place.open().await;
    assert_eq!(
        store.progress("one", None).await.unwrap(),
        StoreProgress::default()
    );
    create(&store, "t1").await;
    create(&store, "t2").await;
    let held = lease(&store, "t1", "one", LONG).await.held();
    let seen = store.progress("one", None).await.unwrap();
    assert_eq!((seen.leases, seen.oldest_event_ms), (1, None));
    receive_one(&store, event(None)).await;
    assert!(
        store
            .progress("one", None)
            .await
            .unwrap()
            .oldest_event_ms
            .is_some()
    );
    let claim = store.claim_events("r", LONG, 1).await.unwrap().remove(0);
    let claim = claim.claim;
    let routing = crate::contract::support::routing(claim, vec![delivery("t2", "opened")]);
    store.route(routing).await.unwrap();
    let hour_ago = store.now().await.unwrap() - 3_600_000;
    place
        .sql(&format!(
            "UPDATE tasks SET ready_at = {hour_ago} WHERE id = 't2'"
        ))
        .await;
    let seen = store.progress("one", None).await.unwrap();
    assert!(seen.oldest_event_ms >= Some(3_600_000), "{seen:?}");
    // Whoever waits for a person or works makes progress as they should.
    store
        .change_state(change("t2", TaskState::Waiting))
        .await
        .unwrap();
    let mut works = append("t1", held, 0, 1);
    works.state = Some((TaskState::Running, None));
    store.append(works).await.unwrap();
    let seen = store.progress("one", None).await.unwrap();
    assert_eq!((seen.oldest_event_ms, seen.oldest_command_ms), (None, None));
    store
        .command("t2", message("control.cancel"))
        .await
        .unwrap();
    let seen = store.progress("one", None).await.unwrap();
    assert!(seen.oldest_command_ms.is_some() && seen.oldest_event_ms.is_some());
    // What waits for an agent that there is not counts for itself, and an event for everybody.
    let agents = |name: &str| [name.to_owned()].into();
    let known = store.progress("one", Some(agents("acme/helper"))).await;
    assert!(known.unwrap().oldest_command_ms >= seen.oldest_command_ms);
    let unknown = store.progress("one", Some(agents("acme/other"))).await;
    let unknown = unknown.unwrap();
    assert_eq!(
        (unknown.oldest_event_ms, unknown.oldest_command_ms),
        (None, None)
    );
    // The second has a command; the first is running.
    assert_eq!(
        store
            .tasks_without_agent(agents("acme/other"))
            .await
            .unwrap(),
        2
    );
    assert_eq!(
        store
            .tasks_without_agent(agents("acme/helper"))
            .await
            .unwrap(),
        0
    );
    receive_one(&store, event(None)).await;
    let unknown = store.progress("one", Some(agents("acme/other"))).await;
    assert!(unknown.unwrap().oldest_event_ms.is_some());
}

/// An old event that is to be routed again waits since that was asked for, not since it came.
pub(crate) async fn a_replay_waits_since_it_was_asked_for(place: Arc<Place>) {
    let store = place.open().await;
    let (routed, _) = route(&store, Vec::new()).await;
    let id = routed.summary.id;
    let day_ago = store.now().await.unwrap() - 86_400_000;
    place
        .sql(&format!("UPDATE events SET received_at = {day_ago}"))
        .await;
    store.replay(id).await.unwrap();
    let waits = async || store.progress("one", None).await.unwrap().oldest_event_ms;
    let waited = waits().await;
    assert!(waited.is_some_and(|ms| ms < 3_600_000), "{waited:?}");
    // One that came at the same time and was never routed has waited for all of it, though it has a higher number.
    let other = receive_one(&store, event(None)).await.id();
    place
        .sql(&format!(
            "UPDATE events SET received_at = {day_ago} WHERE id = {other}"
        ))
        .await;
    let waited = waits().await;
    assert!(waited >= Some(86_400_000), "{waited:?}");
}

pub(crate) async fn duplicates_are_kept_out_for_as_long_as_said(place: Arc<Place>) {
    let store = place.open().await;
    let first = receive_one(&store, event(Some("a"))).await.id();
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
        receive_one(&store, event(Some("a"))).await,
        ReceiveOutcome::Duplicate(first)
    );
    let old = store.now().await.unwrap() - DEDUPE_MS - 1_000;
    place
        .sql(&format!("UPDATE events SET received_at = {old}"))
        .await;
    assert_eq!(store.sweep(week).await.unwrap().dedupe_keys, 1);
    let second = receive_one(&store, event(Some("a"))).await;
    assert!(
        matches!(second, ReceiveOutcome::Stored(id) if id != first),
        "{second:?}"
    );
}

pub(crate) async fn there_are_counts(place: Arc<Place>) {
    let store = place.open().await;
    assert_eq!(store.stats().await.unwrap().unrouted_events, 0);
    create(&store, "t1").await;
    create(&store, "t2").await;
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
    let now = store.now().await.unwrap();
    assert!(store.now().await.unwrap() >= now && now > 1_700_000_000_000);
}

pub(crate) async fn a_closed_store_is_unavailable(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    store.close().await;
    store.close().await;
    refused(store.task("t1").await, "unavailable");
    refused(store.create_task(task("t2")).await, "unavailable");
    refused(store.health().await, "unavailable");
}

pub(crate) async fn what_was_written_is_there_after_opening_again(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    let held = lease(&store, "t1", "one", LONG).await;
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
    // The lease still holds.
    store.append(append("t1", held.held(), 2, 1)).await.unwrap();
}
