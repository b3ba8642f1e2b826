//! Cases about polls.

use std::sync::Arc;

use proofhouse_store::Store;
use proofhouse_store::model::limits::MAX_SEEN_IDS;
use proofhouse_store::model::{
    EventKind, HeldLease, NewEvent, NewPoll, NewTask, PollCommit, ReceiveOutcome, TaskState,
    ToolRef,
};
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{LONG, OVER, at_once, change, event, refused, task, tool, two};

fn poll(event: &str, due_in_ms: i64) -> NewPoll {
    NewPoll {
        tool: tool(),
        event: event.to_owned(),
        due_in_ms,
    }
}

/// Creates the task `t1` with these polls.
async fn create_with_polls(store: &Store, polls: Vec<NewPoll>) {
    let new = NewTask {
        polls,
        ..task("t1")
    };
    store.create_task(new).await.expect("a task");
}

fn found(key: &str) -> NewEvent {
    NewEvent {
        kind: EventKind::Poll,
        name: Some("changed".to_owned()),
        target_task: Some("t1".to_owned()),
        ..event(Some(key))
    }
}

fn commit(held: HeldLease, events: Vec<NewEvent>, due_in_ms: i64) -> PollCommit {
    PollCommit {
        held,
        cursor: Some(json!({"etag": "abc"})),
        seen: vec!["1".to_owned(), "2".to_owned()],
        due_in_ms,
        failures: 0,
        last_error: None,
        events,
    }
}

pub(crate) async fn a_poll_is_committed_with_what_it_found(place: Arc<Place>) {
    let store = place.open().await;
    create_with_polls(&store, vec![poll("changed", 0), poll("later", LONG)]).await;
    let claimed = store.claim_polls("one", LONG, 10, 100).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(
        (claimed[0].poll.event.as_str(), &claimed[0].poll.cursor),
        ("changed", &None)
    );
    assert!(
        store
            .claim_polls("two", LONG, 10, 100)
            .await
            .unwrap()
            .is_empty(),
        "no two at once"
    );
    let held = claimed[0].lease.held();
    let received = store
        .commit_poll(commit(held.clone(), vec![found("a"), found("b")], LONG))
        .await
        .unwrap();
    assert!(
        received
            .iter()
            .all(|received| matches!(received, ReceiveOutcome::Stored(_)))
    );
    // The answer got lost, and it is sent again: the lease went with the commit.
    refused(
        store
            .commit_poll(commit(held, vec![found("c")], LONG))
            .await,
        "fenced",
    );
    assert_eq!(store.claim_events("one", LONG, 10).await.unwrap().len(), 2);
    let after = &store.polls("t1").await.unwrap()[0];
    assert_eq!(after.cursor, Some(json!({"etag": "abc"})));
    assert_eq!(after.seen, ["1", "2"]);
    assert!(after.next_due > claimed[0].poll.next_due);
    assert!(
        store
            .claim_polls("two", LONG, 10, 100)
            .await
            .unwrap()
            .is_empty(),
        "not due again yet"
    );
}

pub(crate) async fn an_old_owner_cannot_commit_a_poll(place: Arc<Place>) {
    let [one, other] = two(&place).await;
    create_with_polls(&one, vec![poll("changed", 0)]).await;
    let old = one
        .claim_polls("one", OVER, 10, 100)
        .await
        .unwrap()
        .remove(0);
    let new = other
        .claim_polls("other", LONG, 10, 100)
        .await
        .unwrap()
        .remove(0);
    refused(
        one.commit_poll(commit(old.lease.held(), vec![found("a")], 0))
            .await,
        "fenced",
    );
    assert!(one.claim_events("one", LONG, 10).await.unwrap().is_empty());
    assert_eq!(one.polls("t1").await.unwrap()[0].cursor, None);
    // What cannot be stored undoes all of it, and the lease stays.
    let bad = commit(new.lease.held(), vec![found("a"), found("")], 0);
    refused(other.commit_poll(bad).await, "invalid");
    assert!(one.claim_events("one", LONG, 10).await.unwrap().is_empty());
    let mut failed = commit(new.lease.held(), Vec::new(), 0);
    failed.failures = 3;
    failed.last_error = Some("the platform answers 500".to_owned());
    other.commit_poll(failed).await.unwrap();
    let after = other
        .claim_polls("other", LONG, 10, 100)
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (after.poll.failures, after.poll.last_error.as_deref()),
        (3, Some("the platform answers 500"))
    );
    // A poll whose task is gone is nobody's.
    other.delete_task("t1").await.unwrap();
    refused(
        other
            .commit_poll(commit(after.lease.held(), vec![found("z")], 0))
            .await,
        "fenced",
    );
}

pub(crate) async fn a_poll_rests_with_its_task(place: Arc<Place>) {
    let store = place.open().await;
    create_with_polls(&store, vec![poll("changed", 0)]).await;
    store
        .change_state(change("t1", TaskState::Interrupted))
        .await
        .unwrap();
    assert!(
        store
            .claim_polls("one", LONG, 10, 100)
            .await
            .unwrap()
            .is_empty()
    );
    store
        .change_state(change("t1", TaskState::Idle))
        .await
        .unwrap();
    assert_eq!(
        store.claim_polls("one", OVER, 10, 100).await.unwrap().len(),
        1
    );
    store
        .change_state(change("t1", TaskState::Ended))
        .await
        .unwrap();
    assert!(
        store
            .claim_polls("one", LONG, 10, 100)
            .await
            .unwrap()
            .is_empty()
    );
}

pub(crate) async fn a_poll_keeps_its_state(place: Arc<Place>) {
    let store = place.open().await;
    create_with_polls(&store, vec![poll("changed", 0), poll("new", LONG)]).await;
    let claimed = store
        .claim_polls("one", LONG, 10, 100)
        .await
        .unwrap()
        .remove(0);
    let mut many = commit(claimed.lease.held(), Vec::new(), LONG);
    many.seen = (0..MAX_SEEN_IDS + 5).map(|id| id.to_string()).collect();
    store.commit_poll(many).await.unwrap();
    let polls = store.polls("t1").await.unwrap();
    assert_eq!(polls.len(), 2);
    assert_eq!(polls[0].seen.len(), MAX_SEEN_IDS);
    assert_eq!(polls[0].seen[0], "5", "the oldest are forgotten");
    assert_eq!(polls[0].cursor, Some(json!({"etag": "abc"})));
    assert!(polls[1].seen.is_empty());
}

pub(crate) async fn polls_at_once_are_shared(place: Arc<Place>) {
    let stores = two(&place).await;
    let polls = (0..30).map(|number| poll(&format!("e{number}"), 0));
    create_with_polls(&stores[0], polls.collect()).await;
    let claims = at_once(20, |number| {
        let store = Arc::clone(&stores[number % 2]);
        async move {
            store
                .claim_polls(&format!("owner {number}"), LONG, 4, 100)
                .await
                .unwrap()
        }
    })
    .await;
    let mut ids: Vec<_> = claims
        .into_iter()
        .flatten()
        .map(|claimed| claimed.poll.id)
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "a poll was claimed twice");
    assert_eq!(
        count
            + stores[1]
                .claim_polls("last", LONG, 100, 100)
                .await
                .unwrap()
                .len(),
        30
    );
}

pub(crate) async fn tools_take_turns(place: Arc<Place>) {
    let store = place.open().await;
    let mut polls: Vec<NewPoll> = (0..6).map(|n| poll(&format!("busy{n}"), 0)).collect();
    polls.push(NewPoll {
        tool: ToolRef::new("acme", "quiet"),
        ..poll("quiet", 0)
    });
    create_with_polls(&store, polls).await;
    // Two places, and both have a turn, though six polls of the one were there before.
    let first = store.claim_polls("one", LONG, 2, 4).await.unwrap();
    let mut tools: Vec<_> = first.iter().map(|one| one.poll.tool.name.clone()).collect();
    tools.sort();
    assert_eq!(tools, ["quiet".to_owned(), tool().name]);
    // Of one tool, four are held at once, by whomever.
    let second = store.claim_polls("two", LONG, 100, 4).await.unwrap();
    assert_eq!(second.len(), 3, "{second:?}");
    assert!(
        store
            .claim_polls("one", LONG, 100, 4)
            .await
            .unwrap()
            .is_empty()
    );
    store.release(second[0].lease.held()).await.unwrap();
    assert_eq!(
        store.claim_polls("one", LONG, 100, 4).await.unwrap().len(),
        1
    );
}
