//! What the tests of the server share: tools that do what the tests need, and clients of both eras.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of them")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofhouse_mcp_serve::{
    McpAnswer, McpBackend, McpCall, McpLogLevel, McpServer, McpTool, McpTools, ServeLimits,
    ServerInfo, ToolScope, UnknownTool,
};
use proofhouse_wire::client::{Client, SseEvents, StreamedResponse};
use proofhouse_wire::server::BoundServer;
use proofhouse_wire::{CancellationToken, HeaderMap, HeaderName, Method, WireLimits};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) const MODERN: &str = "2026-07-28";

/// Counts what happens to the tools of all sessions.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) opened: AtomicUsize,
    pub(crate) closed: AtomicUsize,
    pub(crate) running: AtomicUsize,
    pub(crate) cancelled: AtomicUsize,
}

impl Counts {
    pub(crate) fn get(&self) -> (usize, usize, usize, usize) {
        let get = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        (
            get(&self.opened),
            get(&self.closed),
            get(&self.running),
            get(&self.cancelled),
        )
    }
}

/// `echo`, `steps` (tells its progress), `hang` (until it is cancelled) and `grow` (changes the list).
#[derive(Default)]
pub(crate) struct Demo {
    pub(crate) counts: Arc<Counts>,
}

struct DemoTools {
    counts: Arc<Counts>,
    changes: watch::Sender<u64>,
}

impl McpBackend for Demo {
    fn open(&self, _: ToolScope) -> Arc<dyn McpTools> {
        self.counts.opened.fetch_add(1, Ordering::SeqCst);
        Arc::new(DemoTools {
            counts: Arc::clone(&self.counts),
            changes: watch::Sender::new(0),
        })
    }
}

struct InFlight(Arc<Counts>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl DemoTools {
    fn all(&self) -> Vec<McpTool> {
        let grown = *self.changes.borrow() > 0;
        let names = ["echo", "steps", "hang", "grow"].into_iter();
        let names = names.chain(grown.then_some("grown"));
        names
            .map(|name| McpTool {
                name: name.to_owned(),
                description: format!("Does {name}."),
                input_schema: json!({"type": "object", "properties": {
                    "region": {"type": "string", "x-mcp-header": "Region"},
                }}),
            })
            .collect()
    }
}

impl McpTools for DemoTools {
    fn list(&self, _: CancellationToken) -> BoxFuture<'_, Arc<Vec<McpTool>>> {
        Box::pin(async { Arc::new(self.all()) })
    }

    fn listed(&self, name: &str) -> Option<McpTool> {
        self.all().into_iter().find(|tool| tool.name == name)
    }

    fn call(&self, call: McpCall) -> BoxFuture<'_, Result<McpAnswer, UnknownTool>> {
        Box::pin(async move {
            self.counts.running.fetch_add(1, Ordering::SeqCst);
            let _in_flight = InFlight(Arc::clone(&self.counts));
            match call.name.as_str() {
                "echo" => Ok(McpAnswer {
                    structured: Some(call.arguments.clone()),
                    ..McpAnswer::text(Value::Object(call.arguments).to_string())
                }),
                "steps" => {
                    for step in [1.0, 2.0, 2.0, 1.0, 3.0] {
                        call.sink.progress(step, Some(3.0), Some("on the way"));
                    }
                    call.sink.log(McpLogLevel::Debug, "demo", &json!("quiet"));
                    call.sink.log(McpLogLevel::Warning, "demo", &json!("loud"));
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    Ok(McpAnswer::text("done"))
                }
                "hang" => {
                    call.cancel.cancelled().await;
                    self.counts.cancelled.fetch_add(1, Ordering::SeqCst);
                    Ok(McpAnswer::error("cancelled"))
                }
                "grow" => {
                    self.changes.send_modify(|number| *number += 1);
                    Ok(McpAnswer::text("grown"))
                }
                _ => Err(UnknownTool { name: call.name }),
            }
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.counts.closed.fetch_add(1, Ordering::SeqCst);
        })
    }
}

pub(crate) fn limits() -> ServeLimits {
    ServeLimits {
        stream_after: Duration::from_millis(100),
        keep_alive: Duration::from_millis(200),
        close: Duration::from_secs(5),
        ..ServeLimits::default()
    }
}

pub(crate) fn server(backend: Arc<dyn McpBackend>, limits: ServeLimits) -> McpServer {
    let info = ServerInfo {
        name: "demo".into(),
        version: "1".into(),
        instructions: Some("Be kind.".into()),
    };
    McpServer::new(info, backend, limits)
}

/// A server over HTTP that runs.
pub(crate) struct Stage {
    pub(crate) url: String,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) counts: Arc<Counts>,
    pub(crate) client: Client,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Stage {
    pub(crate) async fn start(limits: ServeLimits) -> Self {
        let demo = Demo::default();
        let counts = Arc::clone(&demo.counts);
        Self::with(Arc::new(demo), counts, limits).await
    }

    pub(crate) async fn with(
        backend: Arc<dyn McpBackend>,
        counts: Arc<Counts>,
        limits: ServeLimits,
    ) -> Self {
        let bound = BoundServer::new("127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let address = bound.address();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server(backend, limits).serve_http(bound, stop.clone()));
        Self {
            url: format!("http://{address}/mcp"),
            address,
            counts,
            client: Client::new(WireLimits::default()).unwrap(),
            stop,
            serving,
        }
    }

    /// Ends the server, and returns when nothing of it runs any more.
    pub(crate) async fn finish(self) {
        self.stop.cancel();
        tokio::time::timeout(Duration::from_secs(20), self.serving)
            .await
            .expect("the server ends")
            .unwrap();
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> StreamedResponse {
        let mut map = HeaderMap::new();
        map.insert("content-type", "application/json".parse().unwrap());
        let accept = "application/json, text/event-stream";
        map.insert("accept", accept.parse().unwrap());
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.insert(name, value.parse().unwrap());
        }
        let sent = self.client.send(method, &self.url, map, body.into().into());
        sent.await.unwrap()
    }

    /// A session of the legacy era.
    pub(crate) async fn session(&self) -> Session<'_> {
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }});
        let response = self.send(Method::POST, &[], body.to_string()).await;
        assert_eq!(response.status, 200);
        let id = response.header("mcp-session-id").unwrap().to_owned();
        let session = Session { stage: self, id };
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.post(&note).await.status, 202);
        session
    }

    /// Sends a request of the modern era with all that belongs to it.
    pub(crate) async fn modern(&self, method: &str, params: Value) -> StreamedResponse {
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
        if !name.is_empty() {
            headers.push(("mcp-name", &name));
        }
        let body = modern_body(1, method, params);
        self.send(Method::POST, &headers, body.to_string()).await
    }
}

pub(crate) fn modern_body(id: u64, method: &str, mut params: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    match params["_meta"].as_object_mut() {
        Some(given) => given.extend(meta.as_object().unwrap().clone()),
        None => params["_meta"] = meta,
    }
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) struct Session<'s> {
    pub(crate) stage: &'s Stage,
    pub(crate) id: String,
}

impl Session<'_> {
    pub(crate) async fn post(&self, body: &Value) -> StreamedResponse {
        self.send(Method::POST, body.to_string()).await
    }

    pub(crate) async fn send(&self, method: Method, body: impl Into<Vec<u8>>) -> StreamedResponse {
        let headers = [
            ("mcp-session-id", self.id.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        self.stage.send(method, &headers, body).await
    }

    pub(crate) async fn ask(&self, id: u64, method: &str, params: Value) -> StreamedResponse {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.post(&body).await
    }

    pub(crate) async fn call(&self, id: u64, name: &str, arguments: Value) -> StreamedResponse {
        let params = json!({"name": name, "arguments": arguments});
        self.ask(id, "tools/call", params).await
    }
}

pub(crate) async fn json_of(response: StreamedResponse) -> Value {
    let bytes = response.bytes().await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

pub(crate) async fn next(events: &mut SseEvents) -> Option<Value> {
    let event = tokio::time::timeout(Duration::from_secs(10), events.next()).await;
    let event = event.expect("an event in time").unwrap()?;
    Some(serde_json::from_str(&event.data).unwrap())
}

/// All messages of a stream until its end.
pub(crate) async fn all(response: StreamedResponse) -> Vec<Value> {
    assert!(response.is_event_stream());
    let (mut events, mut read) = (response.events(), Vec::new());
    while let Some(message) = next(&mut events).await {
        read.push(message);
    }
    read
}
