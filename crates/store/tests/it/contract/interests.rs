//! Cases about interests: routing asks once and has all it needs.

use std::sync::Arc;

use proofhouse_store::model::{NewInterest, ToolRef};
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{allow, at_once, interest, task, tool};

pub(crate) async fn routing_finds_all_who_want_an_event(place: Arc<Place>) {
    let store = place.open().await;
    let mut one = task("t1");
    one.interests = vec![interest("opened"), interest("closed")];
    one.sealed = vec![
        allow("repo", json!("a"), true),
        allow("owner", json!(7), true),
    ];
    store.create_task(one).await.unwrap();
    let mut other = task("t2");
    other.interests = vec![
        NewInterest {
            timeout_ms: None,
            ..interest("opened")
        },
        NewInterest {
            tool: ToolRef::new("else", "tracker"),
            ..interest("opened")
        },
        NewInterest {
            tool: ToolRef::new("acme", "mail"),
            ..interest("arrived")
        },
    ];
    let created = store.create_task(other).await.unwrap();
    let found = store.interested(&tool(), None).await.unwrap();
    let names: Vec<_> = found
        .iter()
        .map(|found| {
            (
                found.interest.task.as_str(),
                found.interest.event.as_str(),
                found.allow.len(),
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            ("t1", "opened", 2),
            ("t1", "closed", 2),
            ("t2", "opened", 0)
        ]
    );
    assert_eq!(found[0].allow[1], allow("owner", json!(7), true));
    assert_eq!(found[2].interest.timeout_ms, None);
    assert_eq!(found[2].last_activity, created.last_activity);
    assert_eq!(found[2].agent_name, "helper");
    let anywhere = store
        .interested(&ToolRef::new("", "tracker"), None)
        .await
        .unwrap();
    assert_eq!(anywhere.len(), 4);
    let only = store.interested(&tool(), Some("t2")).await.unwrap();
    assert_eq!(only, found[2..]);
    assert!(
        store
            .interested(&ToolRef::new("acme", "nothing"), None)
            .await
            .unwrap()
            .is_empty()
    );
}

pub(crate) async fn a_thousand_tasks_are_found_at_once(place: Arc<Place>) {
    let store = place.open().await;
    at_once(10, |part| {
        let store = Arc::clone(&store);
        async move {
            for number in 0..100 {
                let mut new = task(&format!("t{part}-{number}"));
                new.interests = vec![interest("opened")];
                new.sealed = (0..3)
                    .map(|value| allow("repo", json!(value), true))
                    .collect();
                store.create_task(new).await.unwrap();
            }
        }
    })
    .await;
    let found = store.interested(&tool(), None).await.unwrap();
    assert_eq!(found.len(), 1_000);
    assert!(found.iter().all(|found| found.allow.len() == 3));
}
