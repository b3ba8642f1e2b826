//! Cases about events: stored once, routed once.

use std::collections::HashSet;
use std::sync::Arc;

use proofhouse_store::model::limits::{MAX_BATCH, MAX_PAGE, MAX_PAYLOAD_BYTES};
use proofhouse_store::model::{
    DeliveryDecision, DeliveryState, EventFilter, EventKind, EventRouting, EventState, JsonText,
    NewDelivery, NewEvent, ReceiveOutcome, RepeatRule, TaskState, ToolRef, TriggerKey, TriggerKind,
};
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{
    LONG, OVER, at_once, change, create, delivery, event, message, receive, receive_one, refused,
    route, routing, task, two,
};

pub(crate) async fn a_second_copy_is_a_duplicate(place: Arc<Place>) {
    let store = place.open().await;
    let elsewhere = NewEvent {
        source: "other".to_owned(),
        ..event(Some("a"))
    };
    let batch = vec![
        event(Some("a")),
        event(Some("b")),
        event(Some("a")),
        elsewhere,
        event(None),
        event(None),
    ];
    let received = store.receive(batch.clone().into()).await.unwrap();
    let ids: Vec<_> = received.iter().map(|received| received.id()).collect();
    assert_eq!(received[2], ReceiveOutcome::Duplicate(ids[0]));
    let stored = [0, 1, 3, 4, 5].map(|index| received[index]);
    assert!(
        stored
            .iter()
            .all(|received| matches!(received, ReceiveOutcome::Stored(_))),
        "{received:?}"
    );
    assert_eq!(
        stored
            .iter()
            .map(|received| received.id())
            .collect::<HashSet<_>>()
            .len(),
        5
    );
    let again = store.receive(batch[..4].into()).await.unwrap();
    assert_eq!(
        again,
        [ids[0], ids[1], ids[0], ids[3]].map(ReceiveOutcome::Duplicate)
    );
    // Copies that arrive at the same time are stored once, whoever takes them.
    let [one, other] = two(&place).await;
    let outcomes = at_once(40, |number| {
        let store = Arc::clone(if number % 2 == 0 { &one } else { &other });
        async move { receive_one(&store, event(Some("hot"))).await }
    })
    .await;
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| matches!(outcome, ReceiveOutcome::Stored(_)))
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
    assert_eq!(store.receive([].into()).await.unwrap(), []);
}

pub(crate) async fn an_event_is_routed_once(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    create(&store, "t2").await;
    let id = receive_one(&store, event(Some("a"))).await.id();
    let claimed = store.claim_events("one", LONG, 10).await.unwrap().remove(0);
    assert_eq!((claimed.claim.event, claimed.claim.attempt), (id, 1));
    assert_eq!(claimed.event.payload, event(None).payload);
    assert_eq!(JsonText::from(claimed.event.headers), event(None).headers);
    assert!(
        store
            .claim_events("two", LONG, 10)
            .await
            .unwrap()
            .is_empty()
    );
    let discarded = NewDelivery {
        decision: DeliveryDecision::Discard("the filter does not hold".to_owned()),
        ..delivery("t2", "opened")
    };
    let decision = routing(
        claimed.claim,
        vec![delivery("t1", "opened"), discarded, delivery("t1", "any")],
    );
    let ids = store.route(decision.clone()).await.unwrap();
    assert_eq!(ids.len(), 3);
    refused(store.route(decision).await, "conflict");
    assert!(
        store
            .claim_events("one", LONG, 10)
            .await
            .unwrap()
            .is_empty()
    );
    let detail = store.event(id).await.unwrap();
    let summary = &detail.event.summary;
    assert_eq!(
        (summary.state, summary.matched, summary.attempt),
        (EventState::Routed, 2, 1)
    );
    assert_eq!(summary.outcome, Some(json!({"why": "a test"})));
    assert!(summary.routed_at.is_some());
    assert_eq!(summary.payload_bytes, 19);
    assert_eq!(
        detail
            .deliveries
            .iter()
            .map(|delivery| delivery.id)
            .collect::<Vec<_>>(),
        ids
    );
    assert_eq!(
        detail.deliveries[1].reason.as_deref(),
        Some("the filter does not hold")
    );
    assert_eq!(detail.deliveries[1].state, DeliveryState::Discarded);
    let names: Vec<_> = store
        .pending("t1", 10)
        .await
        .unwrap()
        .into_iter()
        .map(|delivery| delivery.name)
        .collect();
    assert_eq!(names, ["opened", "any"]);
    assert!(store.pending("t2", 10).await.unwrap().is_empty());
    refused(store.event(id + 1000).await, "not found");
}

pub(crate) async fn an_old_claim_cannot_route(place: Arc<Place>) {
    let [one, other] = two(&place).await;
    create(&one, "t1").await;
    receive(&one).await;
    let old = one.claim_events("one", OVER, 10).await.unwrap().remove(0);
    let new = other
        .claim_events("other", LONG, 10)
        .await
        .unwrap()
        .remove(0);
    assert!(new.claim.fence > old.claim.fence);
    refused(
        one.route(routing(old.claim, vec![delivery("t1", "opened")]))
            .await,
        "fenced",
    );
    assert!(one.pending("t1", 10).await.unwrap().is_empty());
    // Giving back an old claim gives nothing back.
    one.unclaim_event(old.claim).await.unwrap();
    assert!(one.claim_events("one", LONG, 10).await.unwrap().is_empty());
    other.unclaim_event(new.claim).await.unwrap();
    let third = one.claim_events("one", LONG, 10).await.unwrap().remove(0);
    refused(other.route(routing(new.claim, Vec::new())).await, "fenced");
    one.route(routing(third.claim, Vec::new())).await.unwrap();
    // Ending as a process gives all claims back.
    receive(&one).await;
    let left = one.claim_events("one", LONG, 10).await.unwrap().remove(0);
    assert_eq!(one.release_all("one").await.unwrap(), 1);
    assert_eq!(
        other.claim_events("other", LONG, 10).await.unwrap().len(),
        1
    );
    refused(one.route(routing(left.claim, Vec::new())).await, "fenced");
}

pub(crate) async fn a_failed_routing_leaves_nothing(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    let id = receive(&store).await;
    let claim = store
        .claim_events("one", LONG, 10)
        .await
        .unwrap()
        .remove(0)
        .claim;
    let key = TriggerKey {
        kind: TriggerKind::Trigger,
        namespace: "acme".to_owned(),
        name: "on-open".to_owned(),
    };
    let twice = EventRouting {
        tasks: vec![(key.clone(), task("t2"))],
        ..routing(
            claim,
            vec![delivery("t1", "opened"), delivery("t1", "opened")],
        )
    };
    refused(store.route(twice).await, "conflict");
    refused(
        store
            .route(routing(
                claim,
                vec![delivery("t1", "a"), delivery("t9", "a")],
            ))
            .await,
        "not found",
    );
    refused(store.task("t2").await, "not found");
    assert_eq!(store.trigger(&key).await.unwrap(), None);
    assert!(store.pending("t1", 10).await.unwrap().is_empty());
    assert_eq!(
        store.event(id).await.unwrap().event.summary.state,
        EventState::ReceiveOutcome
    );
    store
        .route(routing(claim, vec![delivery("t1", "opened")]))
        .await
        .unwrap();
}

pub(crate) async fn many_are_routed_together(place: Arc<Place>) {
    let [one, other] = two(&place).await;
    create(&one, "t1").await;
    create(&one, "t2").await;
    for _ in 0..4 {
        receive(&one).await;
    }
    let claims: Vec<_> = one
        .claim_events("one", LONG, 10)
        .await
        .unwrap()
        .into_iter()
        .map(|claimed| claimed.claim)
        .collect();
    // One is another's by now, one is routed already.
    one.unclaim_event(claims[1]).await.unwrap();
    let moved = other.claim_events("other", LONG, 10).await.unwrap();
    assert_eq!(moved[0].claim.event, claims[1].event);
    one.route(routing(claims[2], Vec::new())).await.unwrap();
    let decisions = |last: &str| {
        vec![
            routing(claims[0], vec![delivery("t2", "first")]),
            routing(claims[1], vec![delivery("t1", "lost")]),
            routing(claims[2], vec![delivery("t1", "again")]),
            routing(
                claims[3],
                vec![delivery("t1", "last"), delivery(last, "last")],
            ),
        ]
    };
    // One that cannot be recorded takes all back.
    refused(one.route_all(decisions("t9")).await, "not found");
    assert!(one.pending("t2", 10).await.unwrap().is_empty());
    let mut routed = one.route_all(decisions("t2")).await.unwrap().into_iter();
    assert_eq!(routed.next().unwrap().unwrap().len(), 1);
    refused(routed.next().unwrap(), "fenced");
    refused(routed.next().unwrap(), "conflict");
    assert_eq!(routed.next().unwrap().unwrap().len(), 2);
    let names = |pending: Vec<proofhouse_store::model::DeliveryRecord>| -> Vec<_> {
        pending.into_iter().map(|delivery| delivery.name).collect()
    };
    assert_eq!(names(one.pending("t1", 10).await.unwrap()), ["last"]);
    let pending = one.pending("t2", 10).await.unwrap();
    assert_eq!(names(pending), ["first", "last"], "in the order given");
    assert!(one.route_all(Vec::new()).await.unwrap().is_empty());
}

pub(crate) async fn an_ended_task_gets_nothing(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    store
        .change_state(change("t1", TaskState::Ended))
        .await
        .unwrap();
    let (event, _) = route(&store, vec![delivery("t1", "opened")]).await;
    let detail = store.event(event.summary.id).await.unwrap();
    assert_eq!(detail.deliveries[0].state, DeliveryState::Discarded);
    assert_eq!(detail.event.summary.matched, 0);
}

pub(crate) async fn a_trigger_begins_a_task(place: Arc<Place>) {
    let store = place.open().await;
    receive(&store).await;
    let claim = store
        .claim_events("one", LONG, 10)
        .await
        .unwrap()
        .remove(0)
        .claim;
    let key = TriggerKey {
        kind: TriggerKind::Trigger,
        namespace: "acme".to_owned(),
        name: "on-open".to_owned(),
    };
    let mut first = task("t1");
    first.first = Some(message("an issue was opened"));
    let decision = EventRouting {
        tasks: vec![(key.clone(), first), (key.clone(), task("t2"))],
        // Deliveries may be for tasks that begin with them.
        ..routing(claim, vec![delivery("t2", "opened")])
    };
    store.route(decision.clone()).await.unwrap();
    refused(store.route(decision).await, "conflict");
    assert_eq!(store.pending("t1", 10).await.unwrap().len(), 1);
    assert_eq!(store.pending("t2", 10).await.unwrap().len(), 1);
    let status = store.trigger(&key).await.unwrap().unwrap();
    assert_eq!((status.total, status.last_task.as_deref()), (2, Some("t2")));
    assert_eq!(
        store
            .event(claim.event)
            .await
            .unwrap()
            .event
            .summary
            .matched,
        2
    );
}

pub(crate) async fn a_replay_is_a_new_attempt(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    let (event, first) = route(&store, vec![delivery("t1", "opened")]).await;
    let id = event.summary.id;
    assert_eq!(store.replay(id).await.unwrap(), 2);
    refused(store.replay(id).await, "conflict");
    refused(store.replay(id + 1000).await, "not found");
    let claimed = store.claim_events("one", LONG, 10).await.unwrap().remove(0);
    assert_eq!(claimed.claim.attempt, 2);
    let second = store
        .route(routing(claimed.claim, vec![delivery("t1", "opened")]))
        .await
        .unwrap();
    assert_ne!(first, second);
    let detail = store.event(id).await.unwrap();
    let attempts: Vec<_> = detail
        .deliveries
        .iter()
        .map(|delivery| delivery.attempt)
        .collect();
    assert_eq!(attempts, [1, 2]);
    assert_eq!(detail.earlier.len(), 1);
    assert_eq!(detail.earlier[0]["attempt"], 1);
    assert_eq!(detail.earlier[0]["fate"], json!({"why": "a test"}));
    assert_eq!(store.pending("t1", 10).await.unwrap().len(), 2);
}

/// However many tasks got an event, nobody reads them all at once; those of the newest attempt come first.
pub(crate) async fn an_event_shows_a_page_of_its_deliveries(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    create(&store, "t2").await;
    let many = (0..MAX_PAGE + 10).map(|number| delivery("t1", &format!("event-{number}")));
    let many = many.collect();
    let (event, _) = route(&store, many).await;
    let id = event.summary.id;
    let shown = store.event(id).await.unwrap().deliveries;
    assert_eq!(shown.len(), MAX_PAGE);
    store.replay(id).await.unwrap();
    let claimed = store.claim_events("one", LONG, 1).await.unwrap().remove(0);
    let new = routing(claimed.claim, vec![delivery("t2", "opened")]);
    store.route(new).await.unwrap();
    let shown = store.event(id).await.unwrap().deliveries;
    assert_eq!(shown.len(), MAX_PAGE);
    assert!(shown.iter().any(|one| one.task == "t2"));
    assert!(shown.is_sorted_by_key(|one| one.id));
}

pub(crate) async fn events_are_listed_by_what_became_of_them(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    let (got, _) = route(&store, vec![delivery("t1", "opened")]).await;
    let (lost, _) = route(&store, Vec::new()).await;
    let poll = NewEvent {
        source: "polls".to_owned(),
        tool: ToolRef::new("acme", "feed"),
        kind: EventKind::Poll,
        name: Some("new".to_owned()),
        target_task: Some("t1".to_owned()),
        ..event(Some("k"))
    };
    let open = receive_one(&store, poll).await.id();
    let list = async |filter: EventFilter| -> Vec<i64> {
        let filter = EventFilter {
            limit: 10,
            ..filter
        };
        store
            .events(filter)
            .await
            .unwrap()
            .into_iter()
            .map(|event| event.id)
            .collect()
    };
    let none = EventFilter::default();
    let (got, lost) = (got.summary.id, lost.summary.id);
    assert_eq!(list(none.clone()).await, [open, lost, got]);
    assert_eq!(
        list(EventFilter {
            before: Some(lost),
            ..none.clone()
        })
        .await,
        [got]
    );
    assert_eq!(
        list(EventFilter {
            discarded: Some(true),
            ..none.clone()
        })
        .await,
        [lost]
    );
    assert_eq!(
        list(EventFilter {
            discarded: Some(false),
            ..none.clone()
        })
        .await,
        [got]
    );
    assert_eq!(
        list(EventFilter {
            state: Some(EventState::ReceiveOutcome),
            ..none.clone()
        })
        .await,
        [open]
    );
    assert_eq!(
        list(EventFilter {
            kind: Some(EventKind::Webhook),
            ..none.clone()
        })
        .await,
        [lost, got]
    );
    assert_eq!(
        list(EventFilter {
            source: Some("polls".to_owned()),
            ..none.clone()
        })
        .await,
        [open]
    );
    assert_eq!(
        list(EventFilter {
            tool: Some("tracker".to_owned()),
            ..none.clone()
        })
        .await,
        [lost, got]
    );
    assert_eq!(
        list(EventFilter {
            task: Some("t1".to_owned()),
            ..none
        })
        .await,
        [got]
    );
    let summary = store.event(open).await.unwrap().event.summary;
    assert_eq!(
        (summary.name.as_deref(), summary.target_task.as_deref()),
        (Some("new"), Some("t1"))
    );
}

pub(crate) async fn claims_at_once_share_the_events(place: Arc<Place>) {
    let stores = two(&place).await;
    stores[0]
        .receive((0..100).map(|_| event(None)).collect())
        .await
        .unwrap();
    let claims = at_once(100, |number| {
        let store = Arc::clone(&stores[number % 2]);
        async move {
            store
                .claim_events(&format!("owner {number}"), LONG, 3)
                .await
                .unwrap()
        }
    })
    .await;
    let mut ids: Vec<_> = claims
        .iter()
        .flatten()
        .map(|claimed| claimed.claim.event)
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an event was claimed twice");
    // Those whom a lock hid from the claimers are still to be had.
    let rest = stores[0]
        .claim_events("last", LONG, 1000)
        .await
        .unwrap()
        .len();
    assert_eq!(count + rest, 100);
}

pub(crate) async fn what_cannot_be_stored_is_refused(place: Arc<Place>) {
    let store = place.open().await;
    let refused_event = async |event: NewEvent, wanted: &str| {
        refused(
            store
                .receive(vec![crate::contract::support::event(Some("fine")), event].into())
                .await,
            wanted,
        );
    };
    refused_event(event(Some(&"k".repeat(513))), "too large").await;
    refused_event(event(Some("")), "invalid").await;
    refused_event(event(Some("a\0b")), "invalid").await;
    let large = NewEvent {
        payload: vec![b'x'; MAX_PAYLOAD_BYTES + 1],
        ..event(None)
    };
    refused_event(large, "too large").await;
    let nobody = NewEvent {
        source: String::new(),
        ..event(None)
    };
    refused_event(nobody, "invalid").await;
    refused(
        store.receive(vec![event(None); MAX_BATCH + 1].into()).await,
        "too large",
    );
    // The good one beside them was not stored either.
    assert!(matches!(
        receive_one(&store, event(Some("fine"))).await,
        ReceiveOutcome::Stored(_)
    ));
    refused(store.claim_events("", LONG, 1).await, "invalid");
    refused(store.create_task(task("")).await, "invalid");
    refused(store.create_task(task(&"x".repeat(600))).await, "too large");
}

pub(crate) async fn any_payload_comes_back(place: Arc<Place>) {
    let store = place.open().await;
    let odd: Vec<Vec<u8>> = vec![
        Vec::new(),
        vec![0; 3],
        (0..=255).collect(),
        vec![b'x'; 3_000_000],
    ];
    for payload in odd {
        let new = NewEvent {
            payload: payload.clone(),
            headers:
                json!({"x": "a\0b \u{1f600} '); DROP TABLE events; --", "deep": [[[{"": null}]]]})
                    .into(),
            ..event(None)
        };
        let id = receive_one(&store, new.clone()).await.id();
        let found = store.event(id).await.unwrap().event;
        assert!(found.payload == payload);
        assert_eq!(JsonText::from(found.headers), new.headers);
        assert_eq!(
            found.summary.payload_bytes,
            i64::try_from(payload.len()).unwrap()
        );
    }
}

pub(crate) async fn a_copy_after_its_window_is_new(place: Arc<Place>) {
    let store = place.open().await;
    let within = |window| NewEvent {
        repeats: RepeatRule::Within(window),
        ..event(Some("a"))
    };
    let first = receive_one(&store, within(LONG)).await;
    assert_eq!(
        receive_one(&store, within(LONG)).await,
        ReceiveOutcome::Duplicate(first.id())
    );
    // The window of the one that comes counts, and it is over.
    let second = receive_one(&store, within(0)).await;
    assert!(matches!(second, ReceiveOutcome::Stored(_)), "{second:?}");
    assert_eq!(
        receive_one(&store, within(LONG)).await,
        ReceiveOutcome::Duplicate(second.id())
    );
    assert_eq!(
        store
            .event(first.id())
            .await
            .unwrap()
            .event
            .summary
            .dedupe_key,
        None
    );
}
