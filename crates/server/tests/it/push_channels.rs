//! Push channels by their callback addresses, against a service on the loopback address that posts where it was told to.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::routing::post as post_route;
use axum::{Json, Router};
use http::StatusCode;
use proofhouse_server::engine::Engine;
use proofhouse_store::model::{ChannelFilter, ChannelRecord, ChannelState};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::engine_http::{Served, request, wait};
use crate::engine_support::{PATIENCE, World, begin, idle_after, inputs, open};

/// A platform with nothing of its own in what it sends: it knows addresses, and posts documents to them.
#[derive(Default)]
struct Documents {
    /// The channels that are open: their ids and addresses.
    open: Vec<(String, String)>,
    /// Closing waits for as long as this is so.
    holds: bool,
    lifetime: u64,
}

type Shared = Arc<Mutex<Documents>>;

async fn watch(State(platform): State<Shared>, Json(body): Json<Value>) -> Json<Value> {
    let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    let mut platform = platform.lock().unwrap();
    platform.open.push((text("id"), text("address")));
    let resource = format!("r-{}", text("id"));
    Json(json!({"resourceId": resource, "expires_in": platform.lifetime}))
}

async fn stop(State(platform): State<Shared>, Json(body): Json<Value>) -> StatusCode {
    while platform.lock().unwrap().holds {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let id = body["id"].as_str().unwrap_or_default();
    let mut platform = platform.lock().unwrap();
    platform.open.retain(|(open, _)| open != id);
    StatusCode::NO_CONTENT
}

async fn serve(platform: &Shared) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve_at(listener, platform));
    format!("http://{address}")
}

/// Serves until it is dropped. Nobody keeps a connection, so that there is none afterwards.
fn serve_at(listener: TcpListener, platform: &Shared) -> impl Future<Output = ()> + use<> {
    let close = |mut response: axum::response::Response| async {
        let headers = response.headers_mut();
        headers.insert("connection", "close".parse().unwrap());
        response
    };
    let router = Router::new()
        .route("/drive/v3/changes/watch", post_route(watch))
        .route("/drive/v3/channels/stop", post_route(stop))
        .layer(axum::middleware::map_response(close))
        .with_state(Arc::clone(platform));
    async move { axum::serve(listener, router).await.unwrap() }
}

/// The example of the specification, with another host.
fn manifests(root: &str) -> String {
    format!(
        r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: google_docs
description: Documents.
parameters: {{properties: {{document_id: {{type: string, default: none}}}}}}
actions:
  - name: nothing
    description: Does nothing.
    execute: {{cel: {{expression: "1"}}}}
events:
  - name: edit
    message: "Document '{{event.title}}' was edited by {{event.editor}}"
    receive:
      subscription:
        filter: "event.payload.document_id == parameters.document_id"
        subscribe:
          method: POST
          url: "{root}/drive/v3/changes/watch"
          json:
            id: "{{subscription.id}}"
            type: "web_hook"
            address: "{{runtime.api_root}}/v1/webhooks/events/google_docs"
            expiration: "{{subscription.expires_at_ms}}"
            resourceId: "{{parameters.document_id}}"
        unsubscribe:
          method: POST
          url: "{root}/drive/v3/channels/stop"
          json:
            id: "{{subscription.id}}"
            resourceId: "{{subscribe.resource_id}}"
    parameters:
      editor: "event.payload.editor_email"
      title: "event.payload.document_title"
      change_summary: "event.payload.change_description"
---
kind: commonagents.info/v1beta2/agent
namespace: demo
name: clerk
description: Helps.
prompt: You help.
capabilities:
  google_docs:
    bindings: {{document_id: "'doc-1'"}}
"#
    )
}

fn edit(title: &str) -> Value {
    json!({"document_id": "doc-1", "editor_email": "ann@example.com", "document_title": title,
           "change_description": "words"})
}

/// An engine that says where it is served, and the platform it registers with.
async fn world(lifetime: u64) -> (World, Arc<Engine>, Served, Shared) {
    let platform: Shared = Arc::new(Mutex::new(Documents {
        lifetime,
        ..Documents::default()
    }));
    let root = serve(&platform).await;
    let (world, engine, served) = registering_at(&root).await;
    (world, engine, served, platform)
}

/// An engine that says where it is served, and registers at an address.
async fn registering_at(root: &str) -> (World, Arc<Engine>, Served) {
    let world = World::new(&manifests(root));
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = world.options(&format!("http://{}", socket.local_addr().unwrap()));
    let engine = open(&world.database(), &world.manifests(), options).await;
    let engine = Arc::new(engine);
    let served = Served::start_at(&engine, socket).await;
    (world, engine, served)
}

/// Posts to an address that a platform was given.
async fn send(served: &Served, address: &str, body: &Value) -> (u16, Value) {
    let at = served.webhooks;
    let path = address.strip_prefix(&format!("http://{at}")).unwrap();
    request(at, &format!("POST {path}"), "", &body.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_specification_is_routed_by_its_address() {
    let (_world, engine, served, platform) = world(3600).await;
    let task = begin(&engine, Some("hello")).await;
    let other = begin(&engine, Some("hello")).await;
    idle_after(&engine, &task.id, 1).await;
    idle_after(&engine, &other.id, 1).await;
    wait("channels", || platform.lock().unwrap().open.len() == 2).await;
    let open = platform.lock().unwrap().open.clone();
    assert_ne!(open[0].1, open[1].1, "each channel has its own address");
    for (id, address) in &open {
        assert!(!address.contains(id.as_str()), "the id is shown to people");
        assert!(address.ends_with("/v1/webhooks/events/google_docs"));
    }
    let (status, answer) = send(&served, &open[0].1, &edit("Plan")).await;
    assert_eq!(status, 202, "{answer}");
    let heard =
        async |task: &str| inputs(&crate::engine_support::turns(engine.store(), task).await);
    let started = Instant::now();
    while heard(&task.id).await.len() + heard(&other.id).await.len() < 3 {
        assert!(started.elapsed() < PATIENCE, "the event reached nobody");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let said: Vec<_> = [heard(&task.id).await, heard(&other.id).await].concat();
    let expected = "Document 'Plan' was edited by ann@example.com";
    assert_eq!(said.iter().filter(|(said, _)| said == expected).count(), 1);
    // The same again is another edit: nothing says otherwise.
    assert_eq!(send(&served, &open[0].1, &edit("Plan")).await.0, 202);
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_routed_is_refused() {
    let (_world, engine, served, platform) = world(3600).await;
    let task = begin(&engine, Some("hello")).await;
    idle_after(&engine, &task.id, 1).await;
    wait("a channel", || platform.lock().unwrap().open.len() == 1).await;
    let base = format!("http://{}", served.webhooks);
    // Without the part that names a channel, and with one that names none.
    let bare = format!("{base}/v1/webhooks/events/google_docs");
    let (status, answer) = send(&served, &bare, &edit("Plan")).await;
    assert_eq!(status, 404, "{answer}");
    assert!(
        answer["detail"].as_str().unwrap().contains("channel"),
        "{answer}"
    );
    let (_, address) = platform.lock().unwrap().open[0].clone();
    let wrong = address.replacen("/channels/", "/channels/0", 1);
    assert_eq!(send(&served, &wrong, &edit("Plan")).await.0, 410);
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_overlaps_and_doubles_nothing() {
    // Renewed after ten seconds, the soonest there is.
    let (_world, engine, served, platform) = world(11).await;
    platform.lock().unwrap().holds = true;
    let task = begin(&engine, Some("hello")).await;
    wait("a renewal", || platform.lock().unwrap().open.len() == 2).await;
    let open = platform.lock().unwrap().open.clone();
    // The platform tells every channel it has of everything that happens, in whatever order.
    let both = [&open[0].1, &open[1].1];
    let mut kept = 0;
    for (title, order) in [("A", [0, 1]), ("B", [1, 0]), ("A", [0, 1]), ("A", [1, 0])] {
        for index in order {
            let (status, answer) = send(&served, both[index], &edit(title)).await;
            assert!(status == 202 || status == 200, "{status} {answer}");
            kept += usize::from(status == 202);
        }
    }
    assert_eq!(kept, 4, "four edits are four events");
    let turns = idle_after(&engine, &task.id, 5).await;
    let said: Vec<_> = inputs(&turns).into_iter().map(|(said, _)| said).collect();
    assert_eq!(said.len(), 5, "{said:?}");
    platform.lock().unwrap().holds = false;
    wait("closing", || platform.lock().unwrap().open.len() == 1).await;
    engine.shutdown(PATIENCE).await;
}

/// A platform that is away is asked again by itself: neither a channel that it never gave nor one that it would not renew is
/// given up, and no other input of the task is needed.
#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_comes_back_is_found_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let platform: Shared = Arc::new(Mutex::new(Documents {
        // Renewed after ten seconds, the soonest there is.
        lifetime: 11,
        ..Documents::default()
    }));
    let (_world, engine, _served) = registering_at(&format!("http://{address}")).await;
    let task = begin(&engine, Some("hello")).await;
    let channels = async || {
        let filter = ChannelFilter {
            task: Some(task.id.clone()),
            limit: 100,
            ..ChannelFilter::default()
        };
        engine.store().channels(filter).await.unwrap()
    };
    let until = async |what: &str, holds: &dyn Fn(&[ChannelRecord]) -> bool| {
        let started = Instant::now();
        while !holds(&channels().await) {
            assert!(started.elapsed() < PATIENCE, "{what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let is_lost = |one: &ChannelRecord| one.state == ChannelState::Lost;
    until("nothing was tried", &|all| all.iter().any(is_lost)).await;

    let listener = TcpListener::bind(address).await.unwrap();
    let serving = tokio::spawn(serve_at(listener, &platform));
    wait("a channel", || platform.lock().unwrap().open.len() == 1).await;
    serving.abort();
    assert!(serving.await.is_err());
    // The old one is kept while there is no other.
    let of_old = |all: &[ChannelRecord]| {
        let mut active = all.iter();
        active.any(|one| one.failures > 0 && one.state == ChannelState::Active)
    };
    until("no renewal was tried", &of_old).await;
    let before = platform.lock().unwrap().open.clone();
    assert_eq!(before.len(), 1, "it was closed");

    let listener = TcpListener::bind(address).await.unwrap();
    let serving = tokio::spawn(serve_at(listener, &platform));
    let is_new = || {
        let open = &platform.lock().unwrap().open;
        open.iter().any(|channel| *channel != before[0])
    };
    wait("another channel", is_new).await;
    engine.shutdown(PATIENCE).await;
    serving.abort();
}
