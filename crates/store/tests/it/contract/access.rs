//! Cases about who may see and do things: keys that follow each other, sessions, and namespaces.

use std::sync::Arc;

use proofhouse_store::model::{
    AttemptQuota, EventFilter, NewApiKey, SessionKind, TaskFilter, ToolRef,
};
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{
    LONG, delivery, event, receive_one, refused, routing, task as new_task,
};

fn key(id: &str, hash: &str, expires_at: Option<i64>) -> NewApiKey {
    NewApiKey {
        id: id.to_owned(),
        name: "ci".to_owned(),
        hash: hash.to_owned(),
        scopes: vec!["tasks:read".to_owned()],
        namespaces: Some(vec!["shop".to_owned()]),
        holder: None,
        expires_at,
    }
}

pub(crate) async fn a_rotated_key_overlaps_with_its_successor(place: Arc<Place>) {
    let store = place.open().await;
    let now = store.now().await.unwrap();
    store.add_api_key(key("k1", "h1", None)).await.unwrap();
    let second = store
        .rotate_api_key("k1", ("k2", "h2"), Some(now + LONG), LONG)
        .await
        .unwrap();
    assert_eq!(second.namespaces, Some(vec!["shop".to_owned()]));
    assert_eq!(second.family.as_deref(), Some("h1"));
    assert_eq!(second.expires_at, Some(now + LONG));
    let first = store.api_key("h1").await.unwrap().unwrap();
    assert!(first.expires_at.is_some_and(|end| end > now));
    // A longer overlap does not give a key more time than it had.
    let third = store
        .rotate_api_key("k1", ("k3", "h3"), None, LONG * 100)
        .await
        .unwrap();
    assert_eq!(third.family.as_deref(), Some("h1"));
    assert_eq!(store.api_key("h1").await.unwrap().unwrap(), first);
    // The successor of a successor is of the same family.
    let fourth = store
        .rotate_api_key("k2", ("k4", "h4"), None, 0)
        .await
        .unwrap();
    assert_eq!(fourth.family.as_deref(), Some("h1"));
    refused(
        store.rotate_api_key("k2", ("k5", "h5"), None, 0).await,
        "conflict",
    );
    store.revoke_api_key("k3").await.unwrap();
    refused(
        store.rotate_api_key("k3", ("k5", "h5"), None, 0).await,
        "conflict",
    );
    refused(
        store.rotate_api_key("k9", ("k5", "h5"), None, 0).await,
        "not found",
    );
    assert_eq!(store.api_keys().await.unwrap().len(), 4);
}

pub(crate) async fn sessions_end_and_are_taken_once(place: Arc<Place>) {
    let store = place.open().await;
    let (kind, body) = (SessionKind::Dashboard, json!({"key_hash": "h"}));
    store
        .begin_session(kind, "s1", body.clone(), LONG)
        .await
        .unwrap();
    refused(
        store.begin_session(kind, "s1", json!({}), LONG).await,
        "conflict",
    );
    // Another process knows it too; nobody takes one kind for the other.
    let other = place.open().await;
    assert_eq!(other.session(kind, "s1").await.unwrap(), Some(body.clone()));
    assert_eq!(
        other.session(SessionKind::SignIn, "s1").await.unwrap(),
        None
    );
    assert_eq!(other.end_session(kind, "s1").await.unwrap(), Some(body));
    assert_eq!(store.end_session(kind, "s1").await.unwrap(), None);
    assert_eq!(store.session(kind, "s1").await.unwrap(), None);
    store.begin_session(kind, "s2", json!({}), 0).await.unwrap();
    assert_eq!(store.session(kind, "s2").await.unwrap(), None);
}

pub(crate) async fn lists_show_the_namespaces_asked_for(place: Arc<Place>) {
    let store = place.open().await;
    for (id, namespace) in [("t1", "a_b"), ("t2", "acb"), ("t3", "a_b")] {
        let mut task = new_task(id);
        task.agent_namespace = namespace.to_owned();
        store.create_task(task).await.unwrap();
    }
    let tasks = async |namespaces: Option<&[&str]>| {
        let namespaces = namespaces.map(|all| all.iter().map(|one| (*one).to_owned()).collect());
        let filter = TaskFilter {
            namespaces,
            limit: 10,
            ..TaskFilter::default()
        };
        let tasks = store.tasks(filter).await.unwrap();
        tasks.into_iter().map(|task| task.id).collect::<Vec<_>>()
    };
    assert_eq!(tasks(None).await, ["t3", "t2", "t1"]);
    assert_eq!(tasks(Some(&["a_b"])).await, ["t3", "t1"]);
    assert_eq!(tasks(Some(&["a_b", "acb"])).await, ["t3", "t2", "t1"]);
    assert_eq!(tasks(Some(&["a%", "\"]"])).await, Vec::<String>::new());
    assert_eq!(tasks(Some(&[])).await, Vec::<String>::new());
    // One event is for a tool of `a_b`; the other names no namespace and is given to tasks of both.
    let mut own = event(None);
    own.tool = ToolRef::new("a_b", "tracker");
    let own = receive_one(&store, own).await.id();
    let mut shared = event(None);
    shared.tool = ToolRef::new("", "tracker");
    let shared = receive_one(&store, shared).await.id();
    let claimed = store.claim_events("one", LONG, 10).await.unwrap();
    for claimed in claimed {
        let to = if claimed.claim.event == own {
            vec!["t1"]
        } else {
            vec!["t1", "t2"]
        };
        let given = to.into_iter().map(|task| delivery(task, "opened"));
        let given = given.collect();
        store.route(routing(claimed.claim, given)).await.unwrap();
    }
    let events = async |namespace: &str| {
        let filter = EventFilter {
            namespaces: Some(vec![namespace.to_owned()]),
            limit: 10,
            ..EventFilter::default()
        };
        let events = store.events(filter).await.unwrap();
        events.into_iter().map(|event| event.id).collect::<Vec<_>>()
    };
    assert_eq!(events("a_b").await, [shared, own]);
    assert_eq!(events("acb").await, [shared]);
    assert_eq!(events("other").await, Vec::<i64>::new());
    let seen = store.event_for(shared, &["acb".to_owned()]).await.unwrap();
    assert_eq!(seen.deliveries.len(), 1);
    assert_eq!(seen.deliveries[0].task, "t2");
    refused(
        store.event_for(own, &["acb".to_owned()]).await.map(|_| ()),
        "not found",
    );
    assert_eq!(store.event(shared).await.unwrap().deliveries.len(), 2);
}

pub(crate) async fn attempts_are_counted_for_all(place: Arc<Place>) {
    let store = place.open().await;
    let quota = AttemptQuota {
        burst: 3,
        period_ms: LONG,
    };
    let take = |who: &'static str| store.take_attempt("sign-in", who, quota);
    for _ in 0..3 {
        assert_eq!(take("a").await.unwrap(), None);
    }
    let wait = take("a").await.unwrap().unwrap();
    assert!((1..=LONG).contains(&wait), "{wait}");
    // Who is refused does not wait longer for it.
    assert!(take("a").await.unwrap().unwrap() <= wait);
    assert_eq!(take("b").await.unwrap(), None);
    let at_once = AttemptQuota {
        burst: 1,
        period_ms: 1,
    };
    // What is over is forgotten.
    for _ in 0..5 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let taken = store.take_attempt("other", "a", at_once).await.unwrap();
        assert_eq!(taken, None);
    }
}
