//! Webhooks: durable events per second through the whole server, over HTTP, beside bare batched inserts of the same
//! rows, and what a thousand filters cost each event.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_agent::model::{Model, ModelError, ModelReply, ModelRequest, ModelSink};
use proofhouse_agent::task::Host;
use proofhouse_manifest::Catalog;
use proofhouse_server::api::{Api, ApiConfig};
use proofhouse_server::engine::{Engine, EngineOptions, ManifestSource, TaskRequest};
use proofhouse_server::listen::{self, Listener};
use proofhouse_server::metrics::Metrics;
use proofhouse_server::rate::RateQuota;
use proofhouse_store::{SqliteOptions, Store};
use proofhouse_tools::http::{EgressPolicy, HttpClient};
use proofhouse_tools::runtime::{Environment, Runtimes, ToolLimits};
use proofhouse_wire::CancellationToken;
use ring::hmac;
use rusqlite::Connection;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::{Options, figure};

/// Connections that stay open, each with one webhook under way.
const CONNECTIONS: usize = 512;
/// Rows in one transaction of the bare inserts.
const BATCH: usize = 100;
/// About as long as a comment on a pull request, as GitHub sends it, without the parts that nobody reads.
const PAYLOAD_BYTES: usize = 2_000;
/// Tasks that listen, each with a filter over what it has on its list, and what they may cost.
const FILTERS: usize = 1_000;
const FILTERS_LIMIT_MS: f64 = 50.0;
/// What one webhook in a hundred may take, at the most.
const LATENCY_LIMIT_MS: f64 = 100.0;
const SECRET: &str = "a secret of the bench";

const MANIFESTS: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: bench
name: hub
description: A platform.
settings: {properties: {hook_secret: {format: password}}}
parameters: {properties: {number: {type: integer}}}
actions:
  - name: open
    description: Opens a request.
    execute: {cel: {expression: "{'opened': 1}"}}
events:
  - name: comment
    message: "{event.payload.comment.user} said {event.payload.comment.body}"
    receive:
      webhook:
        secret: "{settings.hook_secret}"
        filter: >
          event.payload.action == 'created' && event.payload.repository == 'mesh'
          && event.payload.number == parameters.number
---
kind: commonagents.info/v1beta2/agent
namespace: bench
name: clerk
description: Waits.
prompt: You wait.
capabilities:
  hub:
    # No event has it, so that every filter is read to its end and nothing but filters is measured.
    bindings: {number: "-1"}
"#;

pub(crate) fn run(options: &Options, runtime: &tokio::runtime::Runtime) -> Result<(), String> {
    let (rounds, events) = if options.quick {
        (1, 2_000)
    } else {
        (5, 20_000)
    };
    let (mut ours, mut peer, mut waits) = (Vec::new(), Vec::new(), Vec::new());
    // In turn, so that what disturbs the machine disturbs both; the first round warms up.
    for round in 0..=rounds {
        let (rate, waited) = runtime.block_on(through_server(events))?;
        let bare = runtime.block_on(bare(events))?;
        if round > 0 {
            ours.push(rate);
            peer.push(bare);
            waits.extend(waited);
        }
    }
    let (ours, peer) = (median(&mut ours), median(&mut peer));
    figure::print("ingest", ours, peer, ours / peer, "events/s");
    waits.sort_unstable();
    let slow = waits.get(waits.len() * 99 / 100).copied();
    let slow = slow.unwrap_or_default().as_secs_f64() * 1e3;
    // The peer is the limit: how many times below it we are.
    let times = LATENCY_LIMIT_MS / slow;
    figure::print("ingest-p99", slow, LATENCY_LIMIT_MS, times, "ms");
    let filters = runtime.block_on(filters(if options.quick { 3 } else { 50 }))?;
    let times = FILTERS_LIMIT_MS / filters;
    figure::print(
        "ingest-filters",
        filters,
        FILTERS_LIMIT_MS,
        times,
        "ms/event",
    );
    Ok(())
}

/// Says nothing: no task is ever asked anything here.
struct Silent;

impl Model for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: &'a mut dyn ModelSink,
        _: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        Box::pin(async { Ok(ModelReply::default()) })
    }
}

/// A server on a file of its own.
struct Server {
    _directory: tempfile::TempDir,
    file: PathBuf,
    engine: Arc<Engine>,
    store: Arc<Store>,
    hooks: SocketAddr,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

async fn open_store(path: &Path) -> Result<Arc<Store>, String> {
    let store = Store::open_sqlite(SqliteOptions::file(path)).await;
    Ok(Arc::new(store.map_err(told)?))
}

impl Server {
    async fn start() -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(told)?;
        let manifests = directory.path().join("manifests");
        std::fs::create_dir(&manifests).map_err(told)?;
        std::fs::write(manifests.join("all.yaml"), MANIFESTS).map_err(told)?;
        let file = directory.path().join("store.db");
        let store = open_store(&file).await?;
        let limits = ToolLimits::default();
        let egress = EgressPolicy::default;
        let client = HttpClient::new(&limits, egress()).map_err(told)?;
        let runtimes = Runtimes::new(&limits, egress()).map_err(told)?;
        let settings = json!({"hook_secret": SECRET});
        let environment = Environment::new(settings, || "2026-01-01T00:00:00Z".to_owned());
        let known = environment.clone();
        let host = move |catalog: Catalog| {
            let (runtimes, limits) = (runtimes.clone(), limits.clone());
            Host::new(catalog, runtimes, limits, known.clone(), Arc::new(Silent))
        };
        let options = EngineOptions::new(Arc::new(host), environment, Arc::new(client));
        let source = ManifestSource::Directory(manifests);
        let engine = Engine::open(Arc::clone(&store), source, options).await;
        let engine = Arc::new(engine.map_err(told)?);
        let socket = TcpListener::bind("127.0.0.1:0").await.map_err(told)?;
        let hooks = socket.local_addr().map_err(told)?;
        let metrics = Arc::new(Metrics::default());
        let config = ApiConfig {
            // All of it comes from one address.
            webhook_rate: RateQuota {
                burst: u32::MAX,
                per_second: 1e9,
            },
            ..ApiConfig::at(hooks)
        };
        let api = Api::new(Arc::clone(&engine), Arc::clone(&metrics), config);
        let listener = Listener {
            socket,
            tls: None,
            router: api.webhook_router(),
            limits: listen::ConnectionLimits {
                of_peer: listen::ConnectionLimits::MOST,
                ..listen::ConnectionLimits::default()
            },
            essential: |_| false,
        };
        let stop = CancellationToken::new();
        let serving = listen::serve(
            vec![listener],
            metrics,
            stop.clone(),
            Duration::from_secs(5),
        );
        let serving = tokio::spawn(serving);
        Ok(Self {
            _directory: directory,
            file,
            engine,
            store,
            hooks,
            stop,
            serving,
        })
    }

    /// Ends it; what was not routed yet goes with its file.
    async fn end(self) {
        self.stop.cancel();
        let _ = self.serving.await;
        self.engine.shutdown(Duration::from_secs(5)).await;
        self.store.close().await;
    }
}

/// A body as a platform sends it, with a number of its own.
fn body(number: usize) -> String {
    let text = "x".repeat(PAYLOAD_BYTES);
    json!({
        "action": "created", "repository": "mesh", "number": number,
        "comment": {"user": "ada", "body": text},
    })
    .to_string()
}

/// All of a request, signed.
fn request(key: &hmac::Key, host: SocketAddr, number: usize) -> Vec<u8> {
    let body = body(number);
    let tag = hmac::sign(key, body.as_bytes());
    let hex: Vec<String> = tag.as_ref().iter().map(|b| format!("{b:02x}")).collect();
    format!(
        "POST /v1/webhooks/events/hub HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         user-agent: GitHub-Hookshot/0000000\r\nx-github-event: issue_comment\r\n\
         x-github-delivery: {}\r\nx-hub-signature-256: sha256={}\r\ncontent-length: {}\r\n\r\n{body}",
        key_of(number),
        hex.concat(),
        body.len()
    )
    .into_bytes()
}

/// A key as platforms make them: in no order. An odd factor visits every number once.
fn key_of(number: usize) -> String {
    let number = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{number:016x}-0000-4000-8000")
}

/// Sends webhooks over connections that stay open, and returns how many a second were stored, and how long each took.
async fn through_server(events: usize) -> Result<(f64, Vec<Duration>), String> {
    let server = Server::start().await?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let mut prepared = Vec::new();
    for connection in 0..CONNECTIONS {
        let numbers = (connection..events).step_by(CONNECTIONS);
        let requests: Vec<Vec<u8>> = numbers
            .map(|number| request(&key, server.hooks, number))
            .collect();
        let stream = TcpStream::connect(server.hooks).await.map_err(told)?;
        stream.set_nodelay(true).map_err(told)?;
        prepared.push((stream, requests));
    }
    let started = Instant::now();
    let senders: Vec<_> = prepared
        .into_iter()
        .map(|(stream, requests)| tokio::spawn(send(stream, requests)))
        .collect();
    let mut waits = Vec::with_capacity(events);
    for sender in senders {
        waits.extend(sender.await.map_err(told)??);
    }
    let took = started.elapsed();
    let kept = kept(&server.file).map_err(told)?;
    server.end().await;
    if kept != events {
        return Err(format!("{events} were answered, {kept} kept"));
    }
    Ok((rate(events, took), waits))
}

/// Events that are in the file, as another program sees it.
fn kept(file: &Path) -> rusqlite::Result<usize> {
    let connection = Connection::open(file)?;
    let count = "SELECT count(*) FROM events";
    let count: i64 = connection.query_row(count, [], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

async fn send(mut stream: TcpStream, requests: Vec<Vec<u8>>) -> Result<Vec<Duration>, String> {
    let mut waits = Vec::with_capacity(requests.len());
    let mut answer = Vec::with_capacity(4 << 10);
    for request in requests {
        let asked = Instant::now();
        stream.write_all(&request).await.map_err(told)?;
        answer.clear();
        // The answer is a small object of JSON, the last thing of which is its brace.
        while !answer.ends_with(b"}") {
            if stream.read_buf(&mut answer).await.map_err(told)? == 0 {
                return Err("the server hung up".to_owned());
            }
        }
        waits.push(asked.elapsed());
        if !answer.starts_with(b"HTTP/1.1 202") {
            return Err(String::from_utf8_lossy(&answer).into_owned());
        }
    }
    Ok(waits)
}

/// The same rows into a file of the same kind, as quickly as a program without anything around it can.
async fn bare(events: usize) -> Result<f64, String> {
    let directory = tempfile::tempdir().map_err(told)?;
    let path = directory.path().join("store.db");
    open_store(&path).await?.close().await;
    let insert = move || -> rusqlite::Result<Duration> {
        let mut connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let headers = json!({
            "headers": {
                "host": "127.0.0.1:40000", "content-type": "application/json",
                "user-agent": "GitHub-Hookshot/0000000", "x-github-event": "issue_comment",
                "x-github-delivery": key_of(0), "content-length": "2100",
            },
            "signature": {
                "whole": {"signature": "verified", "scheme": "github"},
                "tools": {"bench": {"comment": {"signature": "verified", "scheme": "github"}}},
            },
        });
        let headers = headers.to_string();
        let bodies: Vec<String> = (0..events).map(body).collect();
        let started = Instant::now();
        for (batch, bodies) in bodies.chunks(BATCH).enumerate() {
            let transaction = connection.transaction()?;
            {
                let mut statement = transaction.prepare_cached(
                    "INSERT INTO events (source, tool_namespace, tool, kind, dedupe_key, headers, payload, state, \
                     attempt, received_at, claim_until, claim_fence) \
                     VALUES ('webhook:hub', '', 'hub', 'webhook', ?1, ?2, ?3, 'received', 1, ?4, 0, 0)",
                )?;
                for (at, body) in bodies.iter().enumerate() {
                    let key = key_of(batch * BATCH + at);
                    let time = 1_800_000_000_000_i64;
                    statement.execute((key, &headers, body.as_bytes(), time))?;
                }
            }
            transaction.commit()?;
        }
        Ok(started.elapsed())
    };
    let took = tokio::task::spawn_blocking(insert).await.map_err(told)?;
    drop(directory);
    Ok(rate(events, took.map_err(told)?))
}

/// How many milliseconds it takes until it is decided what becomes of an event that a thousand tasks listen to.
async fn filters(events: usize) -> Result<f64, String> {
    let server = Server::start().await?;
    for _ in 0..FILTERS {
        let request = TaskRequest {
            namespace: "bench".to_owned(),
            agent: "clerk".to_owned(),
            ..TaskRequest::default()
        };
        server.engine.start_task(request).await.map_err(told)?;
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let requests = (0..=events).map(|number| request(&key, server.hooks, number));
    let mut requests: Vec<Vec<u8>> = requests.collect();
    let warm_up = vec![requests.remove(0)];
    for requests in [warm_up, requests] {
        let count = requests.len();
        let stream = TcpStream::connect(server.hooks).await.map_err(told)?;
        let started = Instant::now();
        send(stream, requests).await?;
        while server.store.stats().await.map_err(told)?.unrouted_events > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if count == events {
            let each = 1e3 / rate(count, started.elapsed());
            server.end().await;
            return Ok(each);
        }
    }
    Err("there was nothing to measure".to_owned())
}

#[expect(clippy::cast_precision_loss, reason = "numbers of events are small")]
fn rate(events: usize, took: Duration) -> f64 {
    events as f64 / took.as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
