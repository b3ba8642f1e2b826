//! What the tests of serving share: an agent that is served, and small clients of its protocols.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests stand outside of them"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofhouse_agent::model::{
    ChatMessage, Model, ModelError, ModelErrorKind, ModelEvent, ModelReply, ModelRequest, ModelSink,
};
use proofhouse_agent::serve::{AgentLimits, AgentServer, ServeAddresses};
use proofhouse_wire::client::{Client, SseEvents, StreamedResponse};
use proofhouse_wire::{CancellationToken, HeaderMap, HeaderName, Method, WireLimits};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// An agent that is served.
pub(crate) struct Served {
    pub(crate) places: ServeAddresses,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    client: Client,
}

impl Served {
    /// The agent `clerk` at all places.
    pub(crate) async fn start(manifests: &str, model: Arc<dyn Model>) -> Self {
        Self::within(manifests, model, AgentLimits::default()).await
    }

    pub(crate) async fn within(
        manifests: &str,
        model: Arc<dyn Model>,
        limits: AgentLimits,
    ) -> Self {
        let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let places = ServeAddresses {
            ag_ui: any,
            a2a: any,
            mcp: any,
        };
        let host = super::tasks::host(manifests, model);
        let server = AgentServer::bind(host, "demo", "clerk", &places, limits);
        let server = server.await.unwrap();
        let places = server.places();
        let stop = CancellationToken::new();
        Self {
            places,
            serving: tokio::spawn(server.serve(stop.clone())),
            stop,
            client: Client::new(WireLimits::default()).unwrap(),
        }
    }

    /// Ends it; everything must come to its end.
    pub(crate) async fn finish(self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(PATIENCE, self.serving).await;
        ended.expect("the server ends").unwrap();
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> StreamedResponse {
        let mut map = HeaderMap::new();
        map.insert("content-type", "application/json".parse().unwrap());
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.insert(name, value.parse().unwrap());
        }
        let body: Vec<u8> = body.into();
        self.client
            .send(method, url, map, body.into())
            .await
            .unwrap()
    }

    pub(crate) fn ag_ui_url(&self) -> String {
        format!("http://{}/agent", self.places.ag_ui.unwrap())
    }

    pub(crate) fn a2a_url(&self) -> String {
        format!("http://{}/", self.places.a2a.unwrap())
    }

    pub(crate) fn mcp_url(&self) -> String {
        format!("http://{}/mcp", self.places.mcp.unwrap())
    }

    /// A run of AG-UI, begun.
    pub(crate) async fn begin_run(&self, input: &Value) -> StreamedResponse {
        let accept = [("accept", "text/event-stream")];
        self.send(Method::POST, &self.ag_ui_url(), &accept, input.to_string())
            .await
    }

    /// All events of a run of AG-UI.
    pub(crate) async fn run(&self, input: &Value) -> Vec<Value> {
        let events = all(self.begin_run(input).await).await;
        check_order(&events);
        events
    }

    /// A request of A2A.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> StreamedResponse {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.send(Method::POST, &self.a2a_url(), &[], body.to_string())
            .await
    }

    /// The response to a request of A2A.
    pub(crate) async fn a2a(&self, method: &str, params: Value) -> Value {
        let response = self.ask(method, params).await;
        assert_eq!(response.status, 200);
        let answer = json_of(response).await;
        assert_eq!(
            (&answer["jsonrpc"], &answer["id"]),
            (&json!("2.0"), &json!(7))
        );
        answer
    }
}

/// A RunAgentInput.
pub(crate) fn run_input(thread: &str, run: &str, messages: &Value) -> Value {
    json!({
        "threadId": thread, "runId": run, "messages": messages,
        "tools": [], "context": [], "state": {}, "forwardedProps": {},
    })
}

pub(crate) async fn json_of(response: StreamedResponse) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

pub(crate) async fn next(events: &mut SseEvents) -> Option<Value> {
    let event = tokio::time::timeout(PATIENCE, events.next()).await;
    let event = event.expect("an event in time").unwrap()?;
    Some(serde_json::from_str(&event.data).unwrap())
}

/// All messages of a stream until its end.
pub(crate) async fn all(response: StreamedResponse) -> Vec<Value> {
    assert_eq!(response.status, 200);
    assert!(response.is_event_stream());
    let (mut events, mut read) = (response.events(), Vec::new());
    while let Some(message) = next(&mut events).await {
        read.push(message);
    }
    read
}

pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

/// Everything that a run said, joined.
pub(crate) fn text(events: &[Value]) -> String {
    let deltas = events
        .iter()
        .filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    deltas
        .map(|event| event["delta"].as_str().unwrap())
        .collect()
}

/// The rules of AG-UI about the order of events.
fn check_order(events: &[Value]) {
    let mut texts: Vec<String> = Vec::new();
    let mut calls: Vec<String> = Vec::new();
    let mut over = false;
    for (at, event) in events.iter().enumerate() {
        assert!(!over, "after the end: {event}");
        let of = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            "RUN_STARTED" => assert_eq!(at, 0),
            "TEXT_MESSAGE_START" => texts.push(of("messageId")),
            "TEXT_MESSAGE_CONTENT" => {
                assert!(texts.contains(&of("messageId")), "{event}");
                assert!(!of("delta").is_empty());
            }
            "TEXT_MESSAGE_END" => {
                assert!(texts.contains(&of("messageId")), "{event}");
                texts.retain(|open| *open != of("messageId"));
            }
            "TOOL_CALL_START" => calls.push(of("toolCallId")),
            "TOOL_CALL_ARGS" => assert!(calls.contains(&of("toolCallId")), "{event}"),
            "TOOL_CALL_END" => {
                assert!(calls.contains(&of("toolCallId")), "{event}");
                calls.retain(|open| *open != of("toolCallId"));
            }
            "TOOL_CALL_RESULT" => {}
            "RUN_FINISHED" | "RUN_ERROR" => {
                assert!(texts.is_empty() && calls.is_empty(), "{events:?}");
                over = true;
            }
            other => panic!("{other}"),
        }
    }
    assert!(over, "{events:?}");
}

/// What comes back for bytes that are sent as they are, until the connection is closed.
pub(crate) async fn raw(address: SocketAddr, sent: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let read = tokio::time::timeout(PATIENCE, reading).await;
    read.expect("the connection is closed").unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// A model that answers `hello`, and where it is told to wait does so until it is cancelled.
#[derive(Default)]
pub(crate) struct Patient {
    pub(crate) waiting: AtomicUsize,
    pub(crate) cancelled: AtomicUsize,
}

impl Model for Patient {
    fn name(&self) -> &'static str {
        "patient"
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let waits = matches!(request.messages.last(), Some(ChatMessage::User { text }) if text == "wait");
            if waits {
                events.event(ModelEvent::Text("let me see".to_owned()));
                self.waiting.fetch_add(1, Ordering::SeqCst);
                cancel.cancelled().await;
                self.cancelled.fetch_add(1, Ordering::SeqCst);
                return Err(ModelError::new(ModelErrorKind::Cancelled, "cancelled"));
            }
            events.event(ModelEvent::Text("hello".to_owned()));
            Ok(super::tasks::say("hello"))
        })
    }
}

/// A model that has very much to say, unless it is to be short.
pub(crate) struct Chatty;

impl Model for Chatty {
    fn name(&self) -> &'static str {
        "chatty"
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let is_short = matches!(request.messages.last(), Some(ChatMessage::User { text }) if text == "short");
            for _ in 0..if is_short { 0 } else { 10_000 } {
                if cancel.is_cancelled() {
                    return Err(ModelError::new(ModelErrorKind::Cancelled, "cancelled"));
                }
                events.event(ModelEvent::Text("x".repeat(4096)));
                tokio::task::yield_now().await;
            }
            events.event(ModelEvent::Text("hello".to_owned()));
            Ok(super::tasks::say("hello"))
        })
    }
}
