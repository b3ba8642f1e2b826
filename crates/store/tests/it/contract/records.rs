//! Cases about traces and keys.

use std::sync::Arc;

use proofhouse_store::model::NewApiKey;
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{at_once, create, refused};

pub(crate) async fn a_trace_is_kept_in_order(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    store
        .append_trace("t1", vec![json!("a"), json!("b")])
        .await
        .unwrap();
    at_once(10, |_| {
        let store = Arc::clone(&store);
        async move {
            store
                .append_trace("t1", vec![json!({"more": true}); 2])
                .await
                .unwrap();
        }
    })
    .await;
    let trace = store.newest_trace("t1", 100).await.unwrap();
    assert_eq!(
        trace.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        (0..22).collect::<Vec<_>>()
    );
    assert_eq!(trace[1].entry, json!("b"));
    assert_eq!(store.newest_trace("t1", 2).await.unwrap(), trace[20..]);
    refused(store.append_trace("t9", vec![json!(1)]).await, "not found");
}

pub(crate) async fn keys_are_found_by_their_hash(place: Arc<Place>) {
    let store = place.open().await;
    let key = NewApiKey {
        id: "k1".to_owned(),
        name: "a laptop".to_owned(),
        hash: "abc".to_owned(),
        scopes: vec!["tasks:read".to_owned(), "events".to_owned()],
        namespaces: Some(vec!["shop".to_owned(), "a_b".to_owned()]),
        holder: Some("ann@example.com".to_owned()),
        expires_at: Some(5),
    };
    let made = store.add_api_key(key.clone()).await.unwrap();
    refused(store.add_api_key(key.clone()).await, "conflict");
    refused(
        store
            .add_api_key(NewApiKey {
                id: "k2".to_owned(),
                ..key
            })
            .await,
        "conflict",
    );
    assert_eq!(store.api_key("abc").await.unwrap(), Some(made.clone()));
    assert_eq!(store.api_key("xyz").await.unwrap(), None);
    assert_eq!(store.api_keys().await.unwrap(), vec![made.clone()]);
    assert_eq!((made.revoked_at, made.expires_at), (None, Some(5)));
    store.revoke_api_key("k1").await.unwrap();
    let revoked = store.api_key("abc").await.unwrap().unwrap();
    assert!(revoked.revoked_at.is_some());
    store.revoke_api_key("k1").await.unwrap();
    assert_eq!(
        store.api_key("abc").await.unwrap().unwrap(),
        revoked,
        "revoked once"
    );
    refused(store.revoke_api_key("k9").await, "not found");
}
