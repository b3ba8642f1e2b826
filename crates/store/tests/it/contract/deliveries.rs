//! Cases about deliveries and the tasks that have some.

use std::collections::HashSet;
use std::sync::Arc;

use proofhouse_store::model::{
    DeliveryState, DirectDelivery, NewAuditEntry, ReceiveOutcome, TaskQueues, TaskState, WakeRules,
};
use proofhouse_store::with_audit_entry;
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{
    IDLE, LONG, OVER, append, at_once, change, claim_one, create, delivery, lease, message,
    refused, route, two,
};

/// Wakes everybody.
const ALL: WakeRules = WakeRules {
    waiting: true,
    interrupted: true,
};

pub(crate) async fn a_message_is_delivered_once(place: Arc<Place>) {
    let stores = two(&place).await;
    create(&stores[0], "t1").await;
    create(&stores[0], "t2").await;
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
    // The key is the task's own, and without one every message counts.
    assert!(matches!(
        stores[0].deliver("t2", keyed).await.unwrap(),
        ReceiveOutcome::Stored(_)
    ));
    stores[0].deliver("t2", message("a")).await.unwrap();
    stores[0].deliver("t2", message("a")).await.unwrap();
    assert_eq!(stores[1].pending("t2", 10).await.unwrap().len(), 3);
    refused(stores[0].deliver("t9", message("a")).await, "not found");
}

/// A key that stands for something else is refused, so that nothing else becomes true beside it, such as an entry of the audit
/// log; what is only noted with a delivery makes no difference.
pub(crate) async fn a_key_stands_for_one_thing(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    let keyed = |text: &str, note: &str| DirectDelivery {
        key: Some("k".to_owned()),
        name: "message".to_owned(),
        body: json!({"text": text, "number": 1e-7, "note": note}),
        same: vec!["text".to_owned(), "number".to_owned()],
    };
    let stored = store.deliver("t1", keyed("hello", "a")).await.unwrap();
    let again = store.deliver("t1", keyed("hello", "b")).await.unwrap();
    assert_eq!(again, ReceiveOutcome::Duplicate(stored.id()));
    refused(store.deliver("t1", keyed("other", "a")).await, "key taken");
    let answer = |name: &str, by: &str| DirectDelivery {
        key: Some("answer".to_owned()),
        name: name.to_owned(),
        body: json!({"by": by}),
        same: Vec::new(),
    };
    let stored = store.command("t1", answer("yes", "ann")).await.unwrap();
    let again = store.command("t1", answer("yes", "bob")).await.unwrap();
    assert_eq!(again, ReceiveOutcome::Duplicate(stored.id()));
    let entry = NewAuditEntry {
        namespace: None,
        entry: json!({"done": true}),
    };
    let late = store.command("t1", answer("no", "bob"));
    let (outcome, is_written) = with_audit_entry(entry, late).await;
    refused(outcome, "key taken");
    assert!(!is_written);
    assert_eq!(store.audit_head().await.unwrap().seq, 0);
}

pub(crate) async fn tasks_with_work_are_claimed(place: Arc<Place>) {
    let store = place.open().await;
    for id in ["idle", "waiting", "interrupted", "nothing", "held", "ended"] {
        create(&store, id).await;
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
    let held = lease(&store, "held", "other", LONG).await;
    let claimed = claim_one(&store, "one").await;
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
    // Whoever waits for a person is woken by what people want, and by nothing else.
    let woken = store.claim_tasks("two", LONG, ALL, 10).await.unwrap();
    let ids: Vec<_> = woken.iter().map(|one| one.task.id.as_str()).collect();
    assert_eq!(ids, ["interrupted"]);
    store.command("waiting", message("go on")).await.unwrap();
    let woken = store.claim_tasks("two", LONG, ALL, 10).await.unwrap();
    let ids: Vec<_> = woken.iter().map(|one| one.task.id.as_str()).collect();
    assert_eq!(ids, ["waiting"]);
    assert_eq!(woken[0].next.as_ref().unwrap().body["text"], "go on");
    store.release(held.held()).await.unwrap();
    assert_eq!(claim_one(&store, "two").await.task.id, "held");
}

/// Commands have a queue of their own: however much waits, they are found, and one that ends the task is the first.
pub(crate) async fn commands_are_read_first(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    for number in 0..100 {
        store
            .deliver("t1", message(&format!("m{number}")))
            .await
            .unwrap();
    }
    let named = |name: &str| DirectDelivery {
        name: name.to_owned(),
        ..message("x")
    };
    let first = store
        .command("t1", named("control.interrupt"))
        .await
        .unwrap();
    // The same again is the same; after something else it is not.
    let again = store
        .command("t1", named("control.interrupt"))
        .await
        .unwrap();
    assert_eq!(again, ReceiveOutcome::Duplicate(first.id()));
    for name in ["control.resume", "control.interrupt", "control.cancel"] {
        let kept = store.command("t1", named(name)).await.unwrap();
        assert!(matches!(kept, ReceiveOutcome::Stored(_)), "{name}");
    }
    store.deliver("t1", message("last")).await.unwrap();
    let queues = store.queues("t1", 10).await.unwrap();
    let names: Vec<_> = queues
        .commands
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let wanted = [
        "control.cancel",
        "control.interrupt",
        "control.resume",
        "control.interrupt",
    ];
    assert_eq!(names, wanted);
    assert_eq!(queues.commands, store.commands("t1", 10).await.unwrap());
    assert_eq!(
        queues.input.as_ref(),
        store.pending("t1", 1).await.unwrap().first()
    );
    // Settled like any delivery, under the lease; ending the task settles the rest.
    let held = lease(&store, "t1", "one", LONG).await.held();
    store.discard(held, first.id(), "done").await.unwrap();
    assert_eq!(store.commands("t1", 10).await.unwrap().len(), 3);
    store
        .change_state(change("t1", TaskState::Ended))
        .await
        .unwrap();
    assert_eq!(store.queues("t1", 10).await.unwrap(), TaskQueues::default());
    refused(
        store.command("t1", named("control.resume")).await,
        "conflict",
    );
}

/// What is composed of an event is kept once, however many get it.
pub(crate) async fn a_body_is_kept_once(place: Arc<Place>) {
    let store = place.open().await;
    let tasks: Vec<String> = (0..20).map(|number| format!("t{number}")).collect();
    let mut deliveries = Vec::new();
    for task in &tasks {
        create(&store, task).await;
        let mut new = delivery(task, "opened");
        new.body = serde_json::json!({"message": "the same for all of them"});
        deliveries.push(new);
    }
    deliveries[7].body = serde_json::json!({"message": "another"});
    let (event, ids) = route(&store, deliveries.clone()).await;
    assert_eq!(ids.len(), 20);
    let bodies = place.texts("SELECT body FROM bodies").await;
    assert_eq!(bodies.len(), 2, "{bodies:?}");
    for (task, new) in tasks.iter().zip(&deliveries) {
        let pending = store.pending(task, 10).await.unwrap();
        assert_eq!((pending.len(), &pending[0].body), (1, &new.body));
    }
    let detail = store.event(event.summary.id).await.unwrap();
    assert_eq!(detail.deliveries[7].body, deliveries[7].body);
}

/// A task that cannot go on lets others go first for a while, but not what comes for it.
pub(crate) async fn a_task_that_cannot_go_on_is_left_alone(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    store.deliver("t1", message("work")).await.unwrap();
    let claimed = claim_one(&store, "one").await;
    store.postpone(claimed.lease.held(), 30_000).await.unwrap();
    let none = store.claim_tasks("two", LONG, ALL, 10).await.unwrap();
    assert_eq!(none, []);
    assert_eq!(
        store.progress("two", None).await.unwrap().oldest_event_ms,
        None
    );
    let waits = store.task_waits(vec!["t1".to_owned()]).await.unwrap();
    assert_eq!(waits.len(), 1, "it waits all the same: {waits:?}");
    store
        .command("t1", message("control.cancel"))
        .await
        .unwrap();
    claim_one(&store, "two").await;
    refused(store.postpone(claimed.lease.held(), 1).await, "fenced");
}

pub(crate) async fn a_task_without_its_process_is_claimed(place: Arc<Place>) {
    let [one, other] = two(&place).await;
    create(&one, "t1").await;
    one.deliver("t1", message("work")).await.unwrap();
    let mut claimed = one.claim_tasks("one", OVER, IDLE, 10).await.unwrap();
    let claimed = claimed.remove(0);
    let mut step = append("t1", claimed.lease.held(), 0, 1);
    step.delivered = claimed.next.map(|next| next.id);
    step.state = Some((TaskState::Running, None));
    one.append(step).await.unwrap();
    // The process is gone: another takes the task up where it was, without a new delivery.
    let taken = claim_one(&other, "other").await;
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
        create(&stores[0], &id).await;
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
    create(&store, "t1").await;
    let (_, ids) = route(&store, vec![delivery("t1", "opened")]).await;
    let old = lease(&store, "t1", "one", OVER).await.held();
    let held = lease(&store, "t1", "two", LONG).await.held();
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
