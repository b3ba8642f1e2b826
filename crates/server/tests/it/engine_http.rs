//! Polls and push channels against a service on the loopback address.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::routing::{get, post as post_route};
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use proofhouse_server::api::{Api, ApiConfig};
use proofhouse_server::engine::{Engine, WebhookOutcome, WebhookRefusal};
use proofhouse_server::listen::{self, ConnectionLimits, Listener};
use proofhouse_server::metrics::Metrics;
use proofhouse_store::model::{ChannelFilter, ChannelState, TaskState};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::engine_support::{PATIENCE, World, begin, idle_after, inputs, until};

/// What the service has, and what it was asked.
#[derive(Default)]
struct Platform {
    items: Vec<u64>,
    polls: usize,
    /// The channels that are open, by the id of who asked.
    open: Vec<String>,
    /// Everything that was ever asked, in order: `+id` and `-id`.
    log: Vec<String>,
    refuses: bool,
    lifetime: u64,
}

type Shared = Arc<Mutex<Platform>>;

async fn feed(State(platform): State<Shared>) -> (StatusCode, Json<Value>) {
    let mut platform = platform.lock().unwrap();
    platform.polls += 1;
    if platform.refuses {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({})));
    }
    let items = platform
        .items
        .iter()
        .map(|id| json!({"id": id, "title": format!("item {id}")}));
    let items: Vec<Value> = items.collect();
    (StatusCode::OK, Json(json!({"items": items})))
}

async fn watch(
    State(platform): State<Shared>,
    Json(body): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let mut platform = platform.lock().unwrap();
    let id = body["id"].as_str().unwrap_or_default().to_owned();
    if platform.refuses {
        return (StatusCode::FORBIDDEN, Json(json!({})));
    }
    platform.log.push(format!("+{id}"));
    platform.open.push(id.clone());
    let lifetime = platform.lifetime;
    (
        StatusCode::OK,
        Json(json!({"resourceId": format!("r-{id}"), "expires_in": lifetime})),
    )
}

async fn stop(State(platform): State<Shared>, Json(body): Json<Value>) -> StatusCode {
    let mut platform = platform.lock().unwrap();
    let id = body["id"].as_str().unwrap_or_default().to_owned();
    assert_eq!(body["resource"], format!("r-{id}"));
    platform.log.push(format!("-{id}"));
    platform.open.retain(|open| *open != id);
    StatusCode::NO_CONTENT
}

async fn serve(platform: &Shared) -> String {
    let router = Router::new()
        .route("/feed", get(feed))
        .route("/watch", post_route(watch))
        .route("/stop", post_route(stop))
        .with_state(Arc::clone(platform));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

fn manifests(root: &str) -> String {
    format!(
        r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: feed
description: News.
actions:
  - name: nothing
    description: Does nothing.
    execute: {{cel: {{expression: "1"}}}}
events:
  - name: item
    message: "new: {{event.title}}"
    parameters: {{title: item.title}}
    receive:
      poll:
        method: GET
        url: "{root}/feed"
        interval: 1s
        detect: "response.items"
        key: item.id
  - name: push
    message: "pushed {{event.payload.n}}"
    receive:
      subscription:
        subscribe:
          method: POST
          url: "{root}/watch"
          json: {{id: "{{subscription.id}}", until: "{{subscription.expires_at_ms}}"}}
        unsubscribe:
          method: POST
          url: "{root}/stop"
          json: {{id: "{{subscription.id}}", resource: "{{subscribe.resource_id}}"}}
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

pub(crate) async fn wait(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn push(engine: &Engine, channel: &str, n: u64) -> WebhookOutcome {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    headers.insert("x-goog-channel-id", channel.parse().unwrap());
    headers.insert("x-goog-message-number", n.to_string().parse().unwrap());
    let body = json!({"n": n}).to_string();
    engine.accept("feed", &headers, None, body.as_bytes()).await
}

/// The API and the webhooks of an engine, on addresses of their own, for whoever asks.
pub(crate) struct Served {
    pub(crate) api: SocketAddr,
    pub(crate) webhooks: SocketAddr,
    stop: CancellationToken,
}

impl Served {
    pub(crate) async fn start(engine: &Arc<Engine>) -> Self {
        Self::start_at(engine, TcpListener::bind("127.0.0.1:0").await.unwrap()).await
    }

    /// The same for holders of keys.
    pub(crate) async fn start_with_keys(engine: &Arc<Engine>) -> Self {
        let webhooks = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_as(engine, webhooks, false).await
    }

    /// The same with webhooks on this socket.
    pub(crate) async fn start_at(engine: &Arc<Engine>, webhooks: TcpListener) -> Self {
        Self::start_as(engine, webhooks, true).await
    }

    async fn start_as(engine: &Arc<Engine>, webhooks: TcpListener, open: bool) -> Self {
        let metrics = Arc::new(Metrics::default());
        let listeners = [TcpListener::bind("127.0.0.1:0").await.unwrap(), webhooks];
        let [api_at, webhooks_at] = listeners.each_ref().map(|one| one.local_addr().unwrap());
        let config = ApiConfig {
            open,
            ..ApiConfig::at(api_at)
        };
        let api = Api::new(Arc::clone(engine), Arc::clone(&metrics), config);
        let served = listeners
            .into_iter()
            .zip([api.router(), api.webhook_router()]);
        let served = served.map(|(socket, router)| Listener {
            socket,
            tls: None,
            router,
            limits: ConnectionLimits::default(),
            essential: |_| false,
        });
        let stop = CancellationToken::new();
        let serving = listen::serve(served.collect(), metrics, stop.clone(), PATIENCE);
        tokio::spawn(serving);
        Self {
            api: api_at,
            webhooks: webhooks_at,
            stop,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Sends a request and reads the status and the JSON of the answer.
pub(crate) async fn request(at: SocketAddr, line: &str, headers: &str, body: &str) -> (u16, Value) {
    let (status, body) = answer(at, line, headers, body).await;
    (status, serde_json::from_str(&body).unwrap())
}

/// Reads a page, or whatever else is text.
pub(crate) async fn text_of(at: SocketAddr, path: &str) -> (u16, String) {
    answer(at, &format!("GET {path}"), "", "").await
}

pub(crate) async fn answer(at: SocketAddr, line: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_through_a_closed_channel_is_gone() {
    let platform: Shared = Arc::new(Mutex::new(Platform {
        lifetime: 3600,
        ..Platform::default()
    }));
    let root = serve(&platform).await;
    let world = World::new(&manifests(&root));
    let engine = Arc::new(world.engine().await);
    let served = Served::start(&engine).await;
    let task = begin(&engine, Some("hello")).await;
    wait("a channel", || platform.lock().unwrap().open.len() == 1).await;
    let channel = platform.lock().unwrap().open[0].clone();
    let push = async |n: u64| {
        let headers = format!("x-goog-channel-id: {channel}\r\nx-goog-message-number: {n}\r\n");
        let line = "POST /v1/webhooks/events/feed";
        request(
            served.webhooks,
            line,
            &headers,
            &json!({"n": n}).to_string(),
        )
        .await
    };
    assert_eq!(push(1).await.0, 202);
    engine.cancel(&task.id).await.unwrap();
    until(&engine, &task.id, |row, _| row.state == TaskState::Ended).await;
    wait("closing", || platform.lock().unwrap().open.is_empty()).await;
    // The platform may stop sending: it is told that the channel was there and is not any more.
    let started = Instant::now();
    let (status, problem) = loop {
        let answer = push(2).await;
        if answer.0 != 202 {
            break answer;
        }
        assert!(started.elapsed() < PATIENCE, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(
        (status, &problem["code"]),
        (410, &json!("gone")),
        "{problem}"
    );
    let line = "POST /v1/webhooks/events/nobody";
    assert_eq!(request(served.webhooks, line, "", "{}").await.0, 404);
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_fire_once_for_what_is_new() {
    let platform: Shared = Arc::new(Mutex::new(Platform {
        items: vec![1, 2],
        lifetime: 3600,
        ..Platform::default()
    }));
    let root = serve(&platform).await;
    let world = World::new(&manifests(&root));
    let engine = world.engine().await;
    let second = world.engine().await;
    let task = begin(&engine, Some("hello")).await;
    // The first look is the baseline.
    wait("a poll", || platform.lock().unwrap().polls >= 1).await;
    let started = Instant::now();
    while engine.store().polls(&task.id).await.unwrap()[0]
        .cursor
        .is_none()
    {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    platform.lock().unwrap().items.push(3);
    idle_after(&engine, &task.id, 2).await;
    platform.lock().unwrap().refuses = true;
    let polls = platform.lock().unwrap().polls;
    wait("a failed poll", || platform.lock().unwrap().polls > polls).await;
    {
        let mut platform = platform.lock().unwrap();
        platform.items.push(4);
        platform.refuses = false;
    }
    let turns = idle_after(&engine, &task.id, 3).await;
    let said: Vec<String> = inputs(&turns).into_iter().map(|(said, _)| said).collect();
    assert_eq!(said, ["hello", "new: item 3", "new: item 4"]);
    second.shutdown(PATIENCE).await;
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_are_opened_renewed_and_closed() {
    let platform: Shared = Arc::new(Mutex::new(Platform {
        lifetime: 3600,
        ..Platform::default()
    }));
    let root = serve(&platform).await;
    let world = World::new(&manifests(&root));
    let engine = world.engine().await;
    let task = begin(&engine, Some("hello")).await;
    idle_after(&engine, &task.id, 1).await;
    wait("a channel", || platform.lock().unwrap().open.len() == 1).await;
    let first = platform.lock().unwrap().open[0].clone();
    assert!(matches!(
        push(&engine, "nobody", 1).await,
        WebhookOutcome::Refused(WebhookRefusal::ChannelGone)
    ));
    assert!(matches!(
        push(&engine, &first, 1).await,
        WebhookOutcome::Stored(_)
    ));
    let turns = idle_after(&engine, &task.id, 2).await;
    assert_eq!(inputs(&turns)[1].0, "pushed 1");
    // Interrupted, it has no channel; when it goes on, it has one again.
    engine.interrupt(&task.id).await.unwrap();
    until(&engine, &task.id, |row, _| {
        row.state == TaskState::Interrupted
    })
    .await;
    wait("closing", || platform.lock().unwrap().open.is_empty()).await;
    let said = engine.message(
        &task.id,
        Some("go on".to_owned()),
        serde_json::Map::new(),
        None,
    );
    said.await.unwrap();
    idle_after(&engine, &task.id, 3).await;
    wait("another channel", || {
        platform.lock().unwrap().open.len() == 1
    })
    .await;
    // Short-lived ones are renewed, the new one first.
    let second = platform.lock().unwrap().open[0].clone();
    assert_ne!(second, first);
    engine.cancel(&task.id).await.unwrap();
    until(&engine, &task.id, |row, _| row.state == TaskState::Ended).await;
    wait("closing", || platform.lock().unwrap().open.is_empty()).await;
    let log = platform.lock().unwrap().log.clone();
    assert_eq!(
        log,
        [
            format!("+{first}"),
            format!("-{first}"),
            format!("+{second}"),
            format!("-{second}")
        ]
    );
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_channel_opens_before_the_old_one_closes() {
    let platform: Shared = Arc::new(Mutex::new(Platform {
        // Renewed after ten seconds, the soonest there is.
        lifetime: 11,
        ..Platform::default()
    }));
    let root = serve(&platform).await;
    let world = World::new(&manifests(&root));
    let engine = world.engine().await;
    let task = begin(&engine, Some("hello")).await;
    wait("a renewal", || platform.lock().unwrap().log.len() >= 3).await;
    let log = platform.lock().unwrap().log.clone();
    assert!(
        log[0].starts_with('+') && log[1].starts_with('+'),
        "{log:?}"
    );
    assert_eq!(log[2][1..], log[0][1..], "{log:?}");
    engine.cancel(&task.id).await.unwrap();
    until(&engine, &task.id, |row, _| row.state == TaskState::Ended).await;
    wait("closing", || platform.lock().unwrap().open.is_empty()).await;
    engine.shutdown(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_is_refused_is_told_of() {
    let platform: Shared = Arc::new(Mutex::new(Platform {
        refuses: true,
        lifetime: 3600,
        ..Platform::default()
    }));
    let root = serve(&platform).await;
    let world = World::new(&manifests(&root));
    let engine = Arc::new(world.engine().await);
    let served = Served::start(&engine).await;
    let task = begin(&engine, Some("hello")).await;
    let started = Instant::now();
    let line = format!("GET /v1/tasks/{}/listening", task.id);
    let notices = loop {
        let (status, listening) = request(served.api, &line, "", "").await;
        assert_eq!(status, 200, "{listening}");
        if listening["notices"] != json!([]) {
            break listening["notices"].clone();
        }
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(notices[0]["notice"], "channel_lost", "{notices}");
    let about = &notices[0]["about"];
    assert_eq!(
        (&about["tool"], &about["event"]),
        (&json!("feed"), &json!("push"))
    );
    assert!(
        about["error"].as_str().unwrap().contains("403"),
        "{notices}"
    );
    assert!(notices[0]["at"].is_string(), "{notices}");
    // The task works all the same, and is told once, without the words of the platform.
    let turns = idle_after(&engine, &task.id, 2).await;
    let told: Vec<_> = inputs(&turns).into_iter().map(|(said, _)| said).collect();
    let notices = told.iter().filter(|said| said.starts_with("Notice: "));
    assert_eq!(notices.count(), 1, "{told:?}");
    let filter = ChannelFilter {
        task: Some(task.id.clone()),
        limit: 100,
        ..ChannelFilter::default()
    };
    let channels = engine.store().channels(filter).await.unwrap();
    assert!(
        channels
            .iter()
            .all(|channel| channel.state == ChannelState::Lost),
        "{channels:?}"
    );
    engine.shutdown(PATIENCE).await;
}
