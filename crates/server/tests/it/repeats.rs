//! What counts as the same event again: by what is signed, by the operator's choice, and for polls not at all.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use http::{HeaderMap, HeaderName};
use proofhouse_server::engine::{Engine, WebhookOutcome};
use proofhouse_tools::operator::OperatorConfig;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::engine_http::wait;
use crate::engine_support::{MANIFESTS, PATIENCE, World, begin, idle_after, inputs, ping};

const SECRET: &str = "s3cret-s3cret-s3cret";

fn hmac(message: &str) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = ring::hmac::sign(&key, message.as_bytes());
    let digits = tag.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

async fn engine(world: &World, webhooks: &str) -> Engine {
    let (config, findings) = OperatorConfig::read(webhooks, &|_| None);
    assert!(findings.is_empty(), "{findings:#?}");
    let webhooks = config.webhooks;
    world
        .engine_with(|options| options.webhooks = webhooks)
        .await
}

async fn send(engine: &Engine, pairs: &[(&str, &str)], body: &str) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    for (name, value) in pairs {
        let name = HeaderName::try_from(*name).unwrap();
        headers.insert(name, value.parse().unwrap());
    }
    match engine.accept("hub", &headers, None, body.as_bytes()).await {
        WebhookOutcome::Stored(_) => true,
        WebhookOutcome::Duplicate(_) => false,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_not_signed_makes_no_new_event() {
    let world = World::new(MANIFESTS);
    let slack = format!("webhooks: {{hub: {{scheme: slack, secret: {SECRET}}}}}\n");
    let engine = engine(&world, &slack).await;
    let time = world.shift.now().as_second().to_string();
    for (n, body) in [
        ping(1).to_string(),
        json!({"event_id": "Ev1", "n": 2}).to_string(),
    ]
    .into_iter()
    .enumerate()
    {
        let signature = format!("v0={}", hmac(&format!("v0:{time}:{body}")));
        let signed = [
            ("x-slack-signature", signature.as_str()),
            ("x-slack-request-timestamp", &time),
        ];
        assert!(send(&engine, &signed, &body).await, "{n}");
        for added in [
            "webhook-id",
            "x-github-delivery",
            "svix-id",
            "x-shopify-webhook-id",
        ] {
            let replayed = [&signed[..], &[(added, "another")]].concat();
            assert!(!send(&engine, &replayed, &body).await, "{n} {added}");
        }
    }
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_body_under_another_delivery_is_the_same_until_the_window_is_over() {
    let world = World::new(MANIFESTS);
    let github = format!("webhooks: {{hub: {{scheme: github, secret: {SECRET}}}}}\n");
    let engine = engine(&world, &github).await;
    let body = ping(1).to_string();
    let signature = format!("sha256={}", hmac(&body));
    let with = |id: &'static str| {
        [
            ("x-hub-signature-256", signature.as_str()),
            ("x-github-delivery", id),
        ]
        .map(|(a, b)| (a, b.to_owned()))
    };
    let send = async |id: &'static str| {
        let pairs = with(id);
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (*a, b.as_str())).collect();
        send(&engine, &pairs, &body).await
    };
    assert!(send("one").await);
    assert!(!send("one").await);
    assert!(!send("two").await);
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_unsigned_is_suppressed() {
    let world = World::new(MANIFESTS);
    let engine = engine(&world, "webhooks: {}\n").await;
    let task = begin(&engine, None).await;
    for _ in 0..2 {
        assert!(send(&engine, &[("webhook-id", "same")], &ping(1).to_string()).await);
    }
    let turns = idle_after(&engine, &task.id, 2).await;
    assert_eq!(inputs(&turns).len(), 2);
    engine.shutdown(PATIENCE).await;
}

type Items = Arc<Mutex<(Vec<Value>, usize)>>;

async fn feed(State(items): State<Items>) -> Json<Value> {
    let mut items = items.lock().unwrap();
    items.1 += 1;
    Json(json!({"items": items.0}))
}

async fn serve(items: &Items) -> String {
    let router = Router::new()
        .route("/feed/{id}", get(feed))
        .with_state(Arc::clone(items));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

fn polling(root: &str, detect: &str) -> String {
    format!(
        r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: feed
description: News.
actions:
  - {{name: nothing, description: Does nothing., execute: {{cel: {{expression: "1"}}}}}}
events:
  - name: new_item
    message: "{{event.title}}"
    parameters: {{title: item.title}}
    receive:
      poll:
        method: GET
        url: "{root}/feed/1"
        interval: 1s
        detect: "{detect}"
---
kind: commonagents.info/v1beta2/agent
namespace: demo
name: clerk
description: Helps.
prompt: You help.
capabilities: {{feed: "*"}}
"#
    )
}

/// The example of the specification: what is newer than the last poll fires, also under an id that was seen.
#[tokio::test(flavor = "multi_thread")]
async fn each_item_that_detect_returns_is_one_activation() {
    let items: Items = Items::default();
    let root = serve(&items).await;
    let detect = "response.items.filter(i, i.published_at > poll.last_fetched_at)";
    let world = World::new(&polling(&root, detect));
    let engine = world.engine().await;
    let task = begin(&engine, Some("hello")).await;
    let polled = async |more: usize| {
        let before = items.lock().unwrap().1;
        wait("polls", || items.lock().unwrap().1 >= before + more).await;
    };
    polled(2).await;
    // It bears a time that is yet to come, so that no clock and no load makes a difference, and goes when it was seen.
    let later =
        |title: &str| json!({"id": 1, "title": title, "published_at": "2999-01-01T00:00:00.000Z"});
    let heard = async || inputs(&crate::engine_support::turns(engine.store(), &task.id).await);
    for (n, title) in ["first", "second"].into_iter().enumerate() {
        let before = heard().await.len();
        items.lock().unwrap().0 = vec![later(title), later(title)];
        let started = Instant::now();
        while heard().await.len() < before + 2 {
            assert!(started.elapsed() < PATIENCE, "{n}: {:?}", heard().await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        items.lock().unwrap().0.clear();
        polled(2).await;
    }
    let said: Vec<String> = heard().await.into_iter().map(|(said, _)| said).collect();
    assert!(
        said.iter().filter(|said| *said == "second").count() >= 2,
        "{said:?}"
    );
    engine.shutdown(PATIENCE).await;
    // What was before the restart does not fire after it.
    let before = heard().await.len();
    let old = json!({"id": 2, "title": "old", "published_at": "2020-01-01T00:00:00.000Z"});
    items.lock().unwrap().0 = vec![old];
    let engine = world.engine().await;
    polled(3).await;
    let after = inputs(&crate::engine_support::turns(engine.store(), &task.id).await);
    assert_eq!(after.len(), before, "{after:?}");
    engine.shutdown(PATIENCE).await;
}
