//! Delivery modifiers of `mcp_server` over HTTP, each in both eras.

use std::time::{Duration, Instant};

use proofhouse_wire::client::StreamedResponse;
use serde_json::{Value, json};

use crate::mcp_support::*;

async fn stage(delivery: Value) -> Stage {
    let tools = json!([
        {"name": "t", "responses": [{"content": "hi"}]},
        {"name": "steps", "x-steps": [{"pause": "1ms"}], "responses": [{"content": "hi"}]},
    ]);
    // The handshake is delivered plainly.
    Stage::http(of_phases(&json!([
        {"name": "plain", "state": {"tools": tools}, "trigger": {"event": "notifications/initialized"}},
        {"name": "modified", "x-delivery": delivery, "state": {"tools": tools}},
    ])))
    .await
}

/// The same call in both eras, of a tool that answers at once and of one that answers in a stream.
async fn calls(stage: &Stage) -> Vec<(String, StreamedResponse)> {
    let http = Http::initialized(&stage.url, json!({})).await;
    let mut calls = Vec::new();
    for name in ["t", "steps"] {
        let message = request(1, "tools/call", json!({"name": name}));
        calls.push((format!("legacy {name}"), http.post(&message).await));
        let bare = Http::new(&stage.url);
        let response = bare
            .modern("tools/call", json!({"name": name}), json!({}))
            .await;
        calls.push((format!("modern {name}"), response));
    }
    calls
}

/// Everything that a response says, until it ends or breaks.
async fn messages(response: StreamedResponse) -> (Vec<Value>, bool) {
    let mut messages = Vec::new();
    if !response.is_event_stream() {
        return match response.bytes().await {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(message) => (vec![message], true),
                Err(_) => (messages, false),
            },
            Err(_) => (messages, false),
        };
    }
    let mut events = response.events();
    loop {
        match events.next().await {
            Ok(Some(event)) if event.data.is_empty() => {}
            Ok(Some(event)) => messages.push(serde_json::from_str(&event.data).expect("JSON")),
            Ok(None) => return (messages, true),
            Err(_) => return (messages, false),
        }
    }
}

#[tokio::test]
async fn nothing_is_modified_unless_asked_for() {
    let stage = stage(json!({})).await;
    for (name, response) in calls(&stage).await {
        assert_eq!(
            response.is_event_stream(),
            name.ends_with("steps"),
            "{name}"
        );
        let (messages, whole) = messages(response).await;
        assert!(whole && messages.len() == 1, "{name} {messages:?}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn replies_wait() {
    let stage = stage(json!({"delay": "100ms"})).await;
    let started = Instant::now();
    for (name, response) in calls(&stage).await {
        assert!(messages(response).await.1, "{name}");
    }
    assert!(
        started.elapsed() >= Duration::from_millis(200),
        "{:?}",
        started.elapsed()
    );
    stage.finish().await;
}

#[tokio::test]
async fn replies_trickle() {
    let stage = stage(json!({"slow_stream": "10ms"})).await;
    let http = Http::initialized(&stage.url, json!({})).await;
    for name in ["t", "steps"] {
        let started = Instant::now();
        let message = request(1, "tools/call", json!({"name": name}));
        let (messages, whole) = messages(http.post(&message).await).await;
        assert!(whole && messages.len() == 1, "{name} {messages:?}");
        assert!(started.elapsed() >= Duration::from_millis(20), "{name}");
    }
    for (name, response) in calls(&stage).await {
        let (messages, whole) = messages(response).await;
        assert!(whole && messages.len() == 1, "{name} {messages:?}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn replies_are_large_and_deep() {
    let stage = stage(json!({"oversized": 1_000_000, "deep_nesting": 100})).await;
    for (name, response) in calls(&stage).await {
        let (messages, _) = messages(response).await;
        let result = &messages[0]["result"];
        assert_eq!(
            result["x-padding"].as_str().unwrap().len(),
            1_000_000,
            "{name}"
        );
        assert!(result["x-nesting"].is_array(), "{name}");
        assert_eq!(result["content"][0]["text"], "hi", "{name}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn replies_come_twice() {
    let stage = stage(json!({"duplicate_ids": true})).await;
    for (name, response) in calls(&stage).await {
        let (messages, whole) = messages(response).await;
        assert!(whole && messages.len() == 2, "{name} {messages:?}");
        assert_eq!(messages[0], messages[1], "{name}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn replies_drown_in_notifications() {
    let stage = stage(json!({"notification_flood": 500})).await;
    for (name, response) in calls(&stage).await {
        let (messages, _) = messages(response).await;
        assert_eq!(messages.len(), 501, "{name}");
        assert!(messages[500].get("result").is_some(), "{name}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn replies_are_cut() {
    let stage = stage(json!({"abrupt_close": true})).await;
    for (name, response) in calls(&stage).await {
        let (messages, whole) = messages(response).await;
        assert!(!whole && messages.is_empty(), "{name} {messages:?}");
    }
    stage.finish().await;
}
