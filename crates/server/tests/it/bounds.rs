//! Bounds: streams leave room for everything else, hold few bytes for those who do not read, and cost nothing while nothing
//! happens; readiness says when work does not go on, and when the server is about to stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_server::api::{Api, ApiConfig, StreamLimits};
use proofhouse_server::engine::Engine;
use proofhouse_server::listen::{self, ConnectionLimits, Listener};
use proofhouse_server::metrics::Metrics;
use proofhouse_store::Store;
use proofhouse_store::model::{AppendTurns, LeaseKind, NewTurn};
use serde_json::{Map, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::engine_support::{MANIFESTS, PATIENCE, World, begin};

const LONG_MS: i64 = 600_000;

/// Serves an engine without keys, with room for so many connections.
async fn serve(engine: &Arc<Engine>, connections: usize) -> (SocketAddr, CancellationToken) {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let limits = ConnectionLimits {
        all: connections,
        of_peer: connections,
    };
    let config = ApiConfig {
        open: true,
        streams: StreamLimits::within(limits),
        ..ApiConfig::at(address)
    };
    let metrics = Arc::new(Metrics::default());
    let api = Api::new(Arc::clone(engine), Arc::clone(&metrics), config);
    let listener = Listener {
        socket,
        tls: None,
        router: api.router(),
        limits,
    };
    let stop = CancellationToken::new();
    let patience = Duration::from_secs(1);
    tokio::spawn(listen::serve(
        vec![listener],
        metrics,
        stop.clone(),
        patience,
    ));
    (address, stop)
}

/// Asks for something, and returns the connection with what came up to this text.
async fn ask(address: SocketAddr, path: &str, up_to: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let reading = async {
        let mut looked_at = 0;
        // Only what is new is looked at: there may be megabytes.
        while !String::from_utf8_lossy(&answer[looked_at..]).contains(up_to) {
            looked_at = answer.len().saturating_sub(up_to.len());
            if stream.read_buf(&mut answer).await.unwrap() == 0 {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (stream, answer)
}

async fn status(address: SocketAddr, path: &str) -> String {
    let (_, answer) = ask(address, path, "}").await;
    answer.chars().skip(9).take(3).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_leave_room_for_everything_else() {
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let task = begin(&engine, None).await.id;
    let (address, stop) = serve(&engine, 8).await;
    let path = format!("/v1/tasks/{task}/stream");
    let mut open = Vec::new();
    for number in 0..8 {
        // Whoever is refused closes at once, as clients do.
        let (stream, answer) = ask(address, &path, "}").await;
        let is_open = answer.starts_with("HTTP/1.1 200");
        assert_eq!(is_open, number < 6, "{number}: {answer}");
        if is_open {
            open.push(stream);
        }
    }
    assert_eq!(status(address, "/v1/health").await, "200");
    assert_eq!(status(address, "/v1/ready").await, "200");
    drop(open);
    let began = Instant::now();
    while !ask(address, &path, "}").await.1.starts_with("HTTP/1.1 200") {
        assert!(began.elapsed() < PATIENCE, "the room is never given back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}

/// How many bytes of memory this process has.
fn resident() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the kernel writes a page of it")]
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kilobytes.map_or(0, |kilobytes: u64| kilobytes * 1024)
}

/// Turns of a quarter of a megabyte each.
async fn write_large_turns(store: &Arc<Store>, task: &str, count: i64) {
    let lease = store.acquire(LeaseKind::Task, task, "writer", LONG_MS);
    let held = lease.await.unwrap().unwrap().held();
    for number in 0..count {
        let turn = NewTurn {
            kind: "note".to_owned(),
            body: json!({"number": number, "text": "x".repeat(250_000)}),
        };
        let append = AppendTurns {
            task: task.to_owned(),
            held: held.clone(),
            expected_seq: number,
            turns: vec![turn],
            allow: Vec::new(),
            from: Vec::new(),
            state: None,
            delivered: None,
        };
        store.append(append).await.unwrap();
    }
}

/// Readers that do not read take little; who reads gets everything, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_do_not_read_take_little() {
    const READERS: u64 = 60;
    const TURNS: i64 = 40;
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let task = begin(&engine, None).await.id;
    write_large_turns(engine.store(), &task, TURNS).await;
    let (address, stop) = serve(&engine, 200).await;
    let path = format!("/v1/tasks/{task}/stream");
    let before = resident();
    let mut idle = Vec::new();
    for _ in 0..READERS {
        idle.push(ask(address, &path, "event: turn").await.0);
    }
    // One who reads gets all of it meanwhile.
    let (_, all) = ask(address, &path, "event: state").await;
    let ids: Vec<i64> = all
        .lines()
        .filter_map(|line| line.strip_prefix("id: ")?.parse().ok())
        .collect();
    let wanted: Vec<i64> = (0..TURNS).collect();
    assert_eq!(ids, wanted);
    let grown = resident().saturating_sub(before) >> 20;
    // Each would have taken ten megabytes: all turns at once.
    println!("{READERS} readers that do not read took {grown} MB");
    assert!(grown < 250, "{grown} MB");
    drop(idle);
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}

/// A stream is told of what happens, also in another process, though it asks the store for nothing meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_costs_nothing_until_something_happens() {
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let other = world.engine().await;
    let task = begin(&engine, None).await.id;
    let (address, stop) = serve(&engine, 100).await;
    let path = format!("/v1/tasks/{task}/stream");
    let mut streams = Vec::new();
    for _ in 0..50 {
        streams.push(ask(address, &path, "event: state").await.0);
    }
    let lease = other
        .store()
        .acquire(LeaseKind::Task, &task, "far", LONG_MS);
    let held = lease.await.unwrap().unwrap().held();
    let append = AppendTurns {
        task: task.clone(),
        held,
        expected_seq: 0,
        turns: vec![NewTurn {
            kind: "note".to_owned(),
            body: json!({"from": "afar"}),
        }],
        allow: Vec::new(),
        from: Vec::new(),
        state: None,
        delivered: None,
    };
    other.store().append(append).await.unwrap();
    for mut stream in streams {
        let mut answer = Vec::new();
        let reading = async {
            while !String::from_utf8_lossy(&answer).contains("afar") {
                assert!(stream.read_buf(&mut answer).await.unwrap() > 0);
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.unwrap();
    }
    stop.cancel();
    other.shutdown(PATIENCE).await;
    engine.shutdown(PATIENCE).await;
}

/// Readiness fails while an acknowledged message waits for too long, says why, and is back when it does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_says_when_work_does_not_go_on() {
    let world = World::new(MANIFESTS);
    let engine = world
        .engine_with(|options| options.max_lag = Duration::from_millis(1))
        .await;
    let engine = Arc::new(engine);
    let task = begin(&engine, None).await.id;
    let (address, stop) = serve(&engine, 10).await;
    assert_eq!(status(address, "/v1/ready").await, "200");
    // Somebody holds the task and does nothing.
    let store = engine.store();
    let lease = store.acquire(LeaseKind::Task, &task, "stuck", LONG_MS);
    let held = lease.await.unwrap().unwrap().held();
    let said = engine.message(&task, Some("hello".to_owned()), Map::new(), None);
    said.await.unwrap();
    let eventually = async |wanted: &str, path: &str| {
        let began = Instant::now();
        while status(address, path).await != wanted {
            assert!(began.elapsed() < PATIENCE, "{path} is never {wanted}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    eventually("503", "/v1/ready").await;
    let (_, answer) = ask(address, "/v1/ready", "}").await;
    assert!(
        answer.contains("an acknowledged event has waited"),
        "{answer}"
    );
    let seen = engine.progress().await.unwrap();
    assert!(seen.oldest_event.is_some() && seen.oldest_command.is_none());
    engine.cancel(&task).await.unwrap();
    assert!(engine.progress().await.unwrap().oldest_command.is_some());
    assert_eq!(status(address, "/v1/health").await, "200");
    store.release(held).await.unwrap();
    eventually("200", "/v1/ready").await;
    // A server that is about to stop says so first, and does everything else as before.
    engine.drain();
    eventually("503", "/v1/ready").await;
    assert_eq!(status(address, "/v1/health").await, "200");
    begin(&engine, Some("still at work")).await;
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}
