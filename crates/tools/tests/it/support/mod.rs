//! What the tests share: a small server on the loopback address, and tools that talk to it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_manifest::{Bundle, Tool};
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{
    ActionError, ActionResult, Environment, Runtimes, ToolLimits, ToolTask,
};
use proofhouse_wire::retry::RetryPolicy;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with a request.
pub(crate) enum Reply {
    /// Sends these bytes and closes.
    Bytes(Vec<u8>),
    /// Sends these bytes after a while and closes.
    Later(Duration, Vec<u8>),
    /// Sends these bytes and then nothing, without closing.
    Stall(Vec<u8>),
    /// Sends these bytes again and again.
    Endless(&'static [u8], Duration),
    /// Sends this event again and again.
    EndlessEvents(&'static str),
    /// Says nothing.
    Silence,
    /// Says nothing until the client leaves.
    Held,
    /// Closes at once.
    Close,
}

pub(crate) fn reply(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    Reply::Bytes(bytes)
}

pub(crate) fn json_reply(body: &Value) -> Reply {
    reply(
        "200 OK",
        "content-type: application/json\r\n",
        body.to_string(),
    )
}

impl Reply {
    /// The same after a while.
    pub(crate) fn later(self, pause: Duration) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Later(pause, bytes),
            other => other,
        }
    }
}

/// A server that remembers the requests it got.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    /// How many requests are held at the moment.
    pub(crate) held: Arc<AtomicUsize>,
}

impl Server {
    /// Answers the request of each number, from 0, with its text.
    pub(crate) async fn start(
        answer: impl Fn(usize, &str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("the test is set up");
        let port = listener.local_addr().expect("the test is set up").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let held = Arc::new(AtomicUsize::new(0));
        let (seen, answer, holding) = (Arc::clone(&requests), Arc::new(answer), Arc::clone(&held));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                let holding = Arc::clone(&holding);
                tokio::spawn(async move {
                    let request = read_request(&mut stream).await;
                    let number = {
                        let mut seen = seen.lock().expect("the test is set up");
                        seen.push(request.clone());
                        seen.len() - 1
                    };
                    match answer(number, &request) {
                        Reply::Held => {
                            holding.fetch_add(1, Ordering::SeqCst);
                            while matches!(stream.read(&mut [0; 64]).await, Ok(count) if count > 0)
                            {
                            }
                            holding.fetch_sub(1, Ordering::SeqCst);
                        }
                        other => send(&mut stream, other).await,
                    }
                });
            }
        });
        Self {
            port,
            requests,
            held,
        }
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.requests.lock().expect("the test is set up").clone()
    }
}

async fn send(stream: &mut TcpStream, reply: Reply) {
    match reply {
        Reply::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
        }
        Reply::Later(pause, bytes) => {
            tokio::time::sleep(pause).await;
            let _ = stream.write_all(&bytes).await;
        }
        Reply::Stall(bytes) => {
            let _ = stream.write_all(&bytes).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        Reply::Endless(piece, pause) => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(piece).await.is_ok() {
                tokio::time::sleep(pause).await;
            }
        }
        Reply::EndlessEvents(event) => {
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let _ = stream.write_all(head).await;
            while stream.write_all(event.as_bytes()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        Reply::Silence => tokio::time::sleep(Duration::from_secs(60)).await,
        Reply::Close | Reply::Held => {}
    }
}

/// The head and the body, as far as its length says.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return text,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Short times, and the loopback address allowed.
pub(crate) fn limits() -> ToolLimits {
    ToolLimits {
        http: Duration::from_millis(1500),
        retry: RetryPolicy {
            base: Duration::from_millis(1),
            ..ToolLimits::default().retry
        },
        outage: Duration::ZERO,
        ..ToolLimits::default()
    }
}

pub(crate) fn loopback() -> EgressPolicy {
    EgressPolicy::allowing(["127.0.0.0/8".parse().expect("the test is set up")])
}

/// A tool with one action `act` and the parameter `x`.
pub(crate) fn tool(execute: &str) -> Arc<Tool> {
    let text = format!(
        r#"kind: commonagents.info/v1beta2/tool
namespace: demo
name: t
description: d
settings:
  properties:
    api_key: {{}}
    region: {{}}
parameters:
  properties:
    x: {{default: one}}
actions:
  - name: act
    description: d
    execute:
      {execute}
"#
    );
    let (bundle, findings) = Bundle::read(&text);
    assert!(findings.is_empty(), "{findings:#?}");
    Arc::new(bundle.tools().next().expect("the test is set up").clone())
}

pub(crate) fn environment() -> Environment {
    Environment::new(json!({"api_key": "sk-secret/1", "region": "north"}), || {
        "2026-01-02T03:04:05.000Z".to_owned()
    })
}

pub(crate) fn task(tool: Arc<Tool>) -> ToolTask {
    let runtimes = Runtimes::new(&limits(), loopback()).expect("the test is set up");
    ToolTask::new(tool, environment(), runtimes, limits())
}

pub(crate) async fn act(task: &ToolTask, arguments: Value) -> Result<ActionResult, ActionError> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    task.invoke(
        "act",
        arguments,
        json!({"agent": {"name": "a"}}),
        proofhouse_wire::CancellationToken::new(),
    )
    .await
}
