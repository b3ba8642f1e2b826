//! Runs documents with one client actor against servers that follow a script, on loopback.

pub(crate) mod mcp;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_oatf::{Direction, load};
use proofhouse_range::{
    ActorEndpoint, RunError, RunEvent, RunHandle, RunObserver, RunOptions, RunReport, run,
};
use proofhouse_test_support::loopback::Serving;
use proofhouse_wire::WireLimits;
use proofhouse_wire::server::{Handler, Reply, Request, StreamWriter};
use serde_json::Value;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub(crate) method: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
}

type Script = dyn Fn(usize, &Arrived) -> Reply + Send + Sync;

/// A server that answers by a function of the number of the request and the request.
pub(crate) struct Scripted {
    pub(crate) url: String,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    _serving: Serving,
}

struct Answering {
    arrived: Arc<Mutex<Vec<Arrived>>>,
    script: Box<Script>,
}

impl Handler for Answering {
    async fn handle(&self, request: Request) -> Reply {
        let headers = request.headers.iter();
        let arrived = Arrived {
            method: request.method.to_string(),
            headers: headers
                .map(|(name, value)| {
                    let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                    (name.as_str().to_owned(), value)
                })
                .collect(),
            body: request
                .body
                .ok()
                .and_then(|body| serde_json::from_slice(&body).ok())
                .unwrap_or_default(),
        };
        let number = {
            let mut all = self.arrived.lock().unwrap();
            all.push(arrived.clone());
            all.len() - 1
        };
        (self.script)(number, &arrived)
    }
}

impl Scripted {
    pub(crate) async fn start(
        script: impl Fn(usize, &Arrived) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let arrived = Arc::default();
        let handler = Answering {
            arrived: Arc::clone(&arrived),
            script: Box::new(script),
        };
        let limits = WireLimits {
            max_message_bytes: 64 << 20,
            ..WireLimits::default()
        };
        let serving = Serving::start(Arc::new(handler), limits).await;
        Self {
            url: format!("{}/", serving.url()),
            arrived,
            _serving: serving,
        }
    }

    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }
}

/// A reply that a task writes.
pub(crate) fn stream<F>(write: impl FnOnce(StreamWriter) -> F) -> Reply
where
    F: Future<Output = ()> + Send + 'static,
{
    let (reply, writer) = Reply::events();
    tokio::spawn(write(writer));
    reply
}

/// A stream of these events.
pub(crate) fn events(events: Vec<Value>) -> Reply {
    stream(|writer| async move {
        for event in events {
            if writer.write(format!("data: {event}\n\n")).await.is_err() {
                return;
            }
        }
    })
}

/// Small limits, so that they are reached, and times that a busy machine keeps.
pub(crate) fn options(endpoint: ActorEndpoint) -> RunOptions {
    RunOptions {
        endpoints: HashMap::from([("default".to_owned(), endpoint)]),
        grace: Duration::from_millis(10),
        settle: Duration::from_millis(300),
        max_session: Duration::from_secs(60),
        limits: WireLimits {
            connect_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(15),
            exit_timeout: Duration::from_millis(500),
            max_message_bytes: 1 << 20,
            max_stream_bytes: 4 << 20,
            max_events: 1_000,
            ..WireLimits::default()
        },
        ..RunOptions::default()
    }
}

/// Interrupts a run as soon as a message of the operation is seen.
pub(crate) fn interrupting(handle: &RunHandle, operation: &'static str) -> RunObserver {
    let handle = handle.clone();
    Arc::new(move |event| {
        if matches!(event, RunEvent::Message { operation: seen, .. } if seen == operation) {
            handle.interrupt();
        }
    })
}

/// With short times, for those who never answer; those who do may be slow.
pub(crate) fn impatient(mut options: RunOptions) -> RunOptions {
    options.limits.response_timeout = Duration::from_secs(2);
    options.limits.idle_timeout = Duration::from_secs(2);
    options
}

pub(crate) async fn try_play(document: &str, options: RunOptions) -> Result<RunReport, RunError> {
    let document = load(document)
        .map_err(|errors| format!("{errors:?}"))
        .unwrap();
    run(&document.document, options, &RunHandle::default()).await
}

pub(crate) async fn play(document: &str, url: &str) -> RunReport {
    let endpoint = ActorEndpoint::Url(url.to_owned());
    try_play(document, options(endpoint)).await.unwrap()
}

/// As [`play`], with short times.
pub(crate) async fn play_impatiently(document: &str, url: &str) -> RunReport {
    let endpoint = ActorEndpoint::Url(url.to_owned());
    try_play(document, impatient(options(endpoint)))
        .await
        .unwrap()
}

/// The operations of a trace: `>` for requests, `<` for responses.
pub(crate) fn operations(report: &RunReport) -> Vec<String> {
    let messages = report.trace.iter();
    messages
        .map(|message| {
            let mark = match message.direction {
                Some(Direction::Request) => '>',
                _ => '<',
            };
            format!("{mark} {}", message.operation)
        })
        .collect()
}

/// The contents of an operation, in order.
pub(crate) fn contents<'r>(report: &'r RunReport, operation: &str) -> Vec<&'r Value> {
    let messages = report.trace.iter().filter(|m| m.operation == operation);
    messages.map(|message| &message.content).collect()
}

pub(crate) fn warned(report: &RunReport, text: &str) -> bool {
    report.warnings.iter().any(|warning| warning.contains(text))
}

/// The result of the run: `exploited`, `not_exploited` and so on.
pub(crate) fn verdict(report: &RunReport) -> String {
    let verdict = report.verdict.as_ref().unwrap();
    format!("{:?}", verdict.attack.result)
}
