//! A stage for tests of `mcp_server`: a run with a server actor, and a client that speaks to it.

#![allow(
    unreachable_pub,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests stand outside of them"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_oatf::Document;
use proofhouse_range::{
    ActorContext, ActorEndpoint, ActorError, BoxFuture, Driver, PreparedActor, RunEvent, RunHandle,
    RunOptions, RunReport, mcp_over, run,
};
use proofhouse_wire::client::{Client, SseEvents, StreamedResponse};
use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method, WireLimits};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Nothing in a test takes longer.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A document with this execution; JSON is YAML.
pub fn document(execution: &Value) -> Document {
    let text = json!({"oatf": "0.1", "attack": {"name": "Test", "execution": execution}});
    proofhouse_oatf::load(&text.to_string())
        .unwrap_or_else(|errors| panic!("{errors:#?}"))
        .document
}

/// A document of one phase.
pub fn of_state(state: &Value) -> Document {
    document(&json!({"mode": "mcp_server", "state": state}))
}

/// A document of phases.
pub fn of_phases(phases: &Value) -> Document {
    document(&json!({"mode": "mcp_server", "phases": phases}))
}

pub fn options() -> RunOptions {
    RunOptions {
        grace: Duration::ZERO,
        settle: Duration::from_secs(60),
        max_session: Duration::from_secs(120),
        ..RunOptions::default()
    }
}

/// A run that goes on while the test speaks to it.
pub struct Stage {
    pub url: String,
    handle: RunHandle,
    running: JoinHandle<RunReport>,
    phases: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    pub async fn http(document: Document) -> Self {
        Self::with(document, options()).await
    }

    pub async fn with(document: Document, mut options: RunOptions) -> Self {
        let (sender, address) = oneshot::channel();
        let sender = Mutex::new(Some(sender));
        let phases = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&phases);
        options.observer = Some(Arc::new(move |event| match event {
            RunEvent::Ready { address, .. } => {
                if let Some(sender) = sender.lock().unwrap().take() {
                    let _ = sender.send(address.clone().unwrap_or_default());
                }
            }
            RunEvent::Phase { phase, .. } => seen.lock().unwrap().push(phase.clone()),
            _ => {}
        }));
        let handle = RunHandle::default();
        let ending = handle.clone();
        let running = tokio::spawn(async move { run(&document, options, &ending).await.unwrap() });
        let url = tokio::time::timeout(PATIENCE, address).await.unwrap();
        Self {
            url: url.unwrap_or_default(),
            handle,
            running,
            phases,
        }
    }

    /// A run whose server speaks over pipes, and the ends of them.
    pub async fn stdio(document: Document, options: RunOptions) -> (Self, Pipes) {
        let (input, ours) = tokio::io::duplex(1 << 20);
        let (theirs, output) = tokio::io::duplex(1 << 20);
        let driver = PipeDriver(Mutex::new(Some((ours, theirs))));
        let options = RunOptions {
            drivers: vec![Arc::new(driver)],
            ..options
        };
        let pipes = Pipes {
            input: Some(input),
            output: BufReader::new(output).lines(),
        };
        (Self::with(document, options).await, pipes)
    }

    pub fn phases(&self) -> Vec<String> {
        self.phases.lock().unwrap().clone()
    }

    /// Waits until a phase is entered.
    pub async fn in_phase(&self, name: &str) {
        let entered = async {
            while !self.phases().iter().any(|phase| phase == name) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, entered)
            .await
            .expect("the phase is entered");
    }

    pub async fn finish(self) -> RunReport {
        self.handle.interrupt();
        tokio::time::timeout(PATIENCE, self.running)
            .await
            .expect("the run ends")
            .unwrap()
    }

    /// Waits for the run to end on its own.
    pub async fn ended(self) -> RunReport {
        let ended = tokio::time::timeout(PATIENCE, self.running).await;
        ended.expect("the run ends").unwrap()
    }
}

/// The operations of a trace, with their directions.
pub fn operations(report: &RunReport) -> Vec<(String, String)> {
    let trace = report.trace.iter();
    trace
        .map(|message| {
            let direction = message.direction.map(|direction| format!("{direction:?}"));
            (message.operation.to_string(), direction.unwrap_or_default())
        })
        .collect()
}

/// How often an operation stands in the trace, in a direction.
pub fn count(report: &RunReport, operation: &str, direction: &str) -> usize {
    operations(report)
        .iter()
        .filter(|(name, role)| name == operation && role == direction)
        .count()
}

/// Plays `mcp_server` over pipes.
struct PipeDriver(Mutex<Option<(DuplexStream, DuplexStream)>>);

impl Driver for PipeDriver {
    fn mode(&self) -> proofhouse_oatf::Mode {
        proofhouse_oatf::Mode::McpServer
    }

    fn default_endpoint(&self) -> Option<ActorEndpoint> {
        Some(ActorEndpoint::Stdio)
    }

    fn prepare(
        &self,
        context: ActorContext,
        _: ActorEndpoint,
    ) -> BoxFuture<'static, Result<PreparedActor, ActorError>> {
        let pipes = self.0.lock().unwrap().take();
        Box::pin(async move {
            let (input, output) = pipes.expect("one run per driver");
            Ok(mcp_over(context, input, output))
        })
    }
}

/// The client's ends of the pipes.
pub struct Pipes {
    pub input: Option<DuplexStream>,
    pub output: Lines<BufReader<DuplexStream>>,
}

impl Pipes {
    pub async fn write(&mut self, text: &str) {
        let input = self.input.as_mut().expect("open");
        input.write_all(text.as_bytes()).await.unwrap();
    }

    pub async fn send(&mut self, message: &Value) {
        self.write(&format!("{message}\n")).await;
    }

    pub async fn line(&mut self) -> Option<String> {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await;
        line.expect("a line in time").unwrap()
    }

    pub async fn read(&mut self) -> Value {
        let line = self.line().await.expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    pub async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&request(id, method, params)).await;
        self.read().await
    }
}

pub fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The envelope of the modern era.
pub fn envelope(mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

/// An HTTP client.
#[derive(Clone)]
pub struct Http {
    client: Client,
    url: String,
    pub session: Option<String>,
    pub headers: Vec<(String, String)>,
    next: u64,
}

impl Http {
    pub fn new(url: &str) -> Self {
        Self {
            client: Client::new(WireLimits::default()).unwrap(),
            url: url.to_owned(),
            session: None,
            headers: Vec::new(),
            next: 1,
        }
    }

    /// A client that went through the handshake.
    pub async fn initialized(url: &str, capabilities: Value) -> Self {
        let mut http = Self::new(url);
        http.initialize(capabilities).await;
        let sent = notification("notifications/initialized", json!({}));
        assert_eq!(http.post(&sent).await.status, 202);
        http
    }

    pub async fn initialize(&mut self, capabilities: Value) -> Value {
        let message = request(
            0,
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        let response = self.post(&message).await;
        assert_eq!(response.status, 200);
        self.session = response.header("mcp-session-id").map(str::to_owned);
        body(response).await
    }

    pub async fn send(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        text: &str,
    ) -> StreamedResponse {
        let mut map = HeaderMap::new();
        let own = self.headers.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let session = self
            .session
            .iter()
            .map(|id| ("mcp-session-id", id.as_str()));
        let standard = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        for (name, value) in standard
            .into_iter()
            .chain(session)
            .chain(own)
            .chain(headers.iter().copied())
        {
            map.insert(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        let body = Bytes::from(text.to_owned());
        self.client
            .send(method, &self.url, map, body)
            .await
            .unwrap()
    }

    pub async fn post(&self, message: &Value) -> StreamedResponse {
        self.send(Method::POST, &[], &message.to_string()).await
    }

    /// Sends a request and returns the response, whether it comes as JSON or at the end of a stream.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let message = request(self.next, method, params);
        let id = message["id"].clone();
        let response = self.post(&message).await;
        if !response.is_event_stream() {
            return body(response).await;
        }
        let mut events = response.events();
        loop {
            let message = next(&mut events).await.expect("a response");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// A request of the modern era, with the headers it needs.
    pub async fn modern(
        &self,
        method: &str,
        params: Value,
        capabilities: Value,
    ) -> StreamedResponse {
        let message = request(7, method, envelope(params, capabilities));
        let name = message["params"]["name"]
            .as_str()
            .or(message["params"]["uri"].as_str())
            .unwrap_or_default()
            .to_owned();
        let mut headers = vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        if !name.is_empty() {
            headers.push(("mcp-name", &name));
        }
        self.send(Method::POST, &headers, &message.to_string())
            .await
    }

    /// The stream for what belongs to no call.
    pub async fn listen(&self) -> SseEvents {
        let response = self.send(Method::GET, &[], "").await;
        assert_eq!(response.status, 200);
        response.events()
    }
}

pub async fn body(response: StreamedResponse) -> Value {
    let bytes = response.bytes().await.unwrap();
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"))
}

/// The next message of a stream, priming events passed over; `None` when it ended.
pub async fn next(events: &mut SseEvents) -> Option<Value> {
    loop {
        let event = tokio::time::timeout(PATIENCE, events.next()).await;
        let event = event.expect("an event in time").unwrap()?;
        if !event.data.is_empty() {
            return Some(serde_json::from_str(&event.data).unwrap());
        }
    }
}

/// Options with other endpoints left as they are and no origin check.
pub fn without_origin_check() -> RunOptions {
    RunOptions {
        check_origin: false,
        endpoints: HashMap::new(),
        ..options()
    }
}
