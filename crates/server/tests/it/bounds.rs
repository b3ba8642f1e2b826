//! Bounds: streams leave room for everything else, hold few bytes for those who do not read, and cost nothing while nothing
//! happens; readiness says when work does not go on, and when the server is about to stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_server::api::{Api, ApiConfig, StreamLimits, is_essential};
use proofhouse_server::engine::Engine;
use proofhouse_server::key_change::{self, KeyOrder};
use proofhouse_server::keys::{KeyScope, KeySecret};
use proofhouse_server::listen::{self, ConnectionLimits, Listener};
use proofhouse_server::metrics::Metrics;
use proofhouse_store::Store;
use proofhouse_store::model::{AppendTurns, LeaseKind, NewTurn};
use serde_json::{Map, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::engine_http::{request, text_of};
use crate::engine_support::{MANIFESTS, PATIENCE, World, begin};

const LONG_MS: i64 = 600_000;

/// Serves an engine without keys, with room for so many connections.
async fn serve(engine: &Arc<Engine>, connections: usize) -> (SocketAddr, CancellationToken) {
    let metrics = Arc::new(Metrics::default());
    serve_counted(engine, connections, metrics).await
}

/// The same, counted by these metrics.
async fn serve_counted(
    engine: &Arc<Engine>,
    connections: usize,
    metrics: Arc<Metrics>,
) -> (SocketAddr, CancellationToken) {
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
    serve_as(engine, socket, (config, limits), metrics)
}

/// The same with this configuration.
pub(super) fn serve_as(
    engine: &Arc<Engine>,
    socket: TcpListener,
    (config, limits): (ApiConfig, ConnectionLimits),
    metrics: Arc<Metrics>,
) -> (SocketAddr, CancellationToken) {
    let address = config.address;
    let api = Api::new(Arc::clone(engine), Arc::clone(&metrics), config);
    let listener = Listener {
        socket,
        tls: None,
        router: api.router(),
        limits,
        essential: is_essential,
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
pub(super) async fn ask(address: SocketAddr, path: &str, up_to: &str) -> (TcpStream, String) {
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

pub(super) async fn status(address: SocketAddr, path: &str) -> String {
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
    let (_, sign_in) = ask(address, "/dashboard/sign-in", "</html>").await;
    assert!(sign_in.starts_with("HTTP/1.1 200"), "{sign_in}");
    drop(open);
    let began = Instant::now();
    while !ask(address, &path, "}").await.1.starts_with("HTTP/1.1 200") {
        assert!(began.elapsed() < PATIENCE, "the room is never given back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}

/// What the metrics say about something that has no labels.
fn counted(metrics: &Metrics, name: &str) -> u64 {
    let text = metrics.text();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).expect(name)
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

/// Readers that do not read take little: one turn each at most, whatever else waits for them. Who reads gets everything, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_do_not_read_take_little() {
    const READERS: u64 = 60;
    const TURNS: i64 = 40;
    /// What a reader may hold, as docs/reference/server.md says: one turn, and not two.
    const SHARE: u64 = 256 << 10;
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let task = begin(&engine, None).await.id;
    write_large_turns(engine.store(), &task, TURNS).await;
    let metrics = Arc::new(Metrics::default());
    let (address, stop) = serve_counted(&engine, 200, Arc::clone(&metrics)).await;
    let path = format!("/v1/tasks/{task}/stream");
    let held = || counted(&metrics, "proofhouse_stream_bytes");
    let mut idle = Vec::new();
    for number in 1..=READERS {
        idle.push(ask(address, &path, "event: turn").await.0);
        let held = held();
        assert!(held <= number * SHARE, "{held} bytes for {number} readers");
    }
    // One who reads gets all of it meanwhile.
    let (reader, all) = ask(address, &path, "event: state").await;
    let ids: Vec<i64> = all
        .lines()
        .filter_map(|line| line.strip_prefix("id: ")?.parse().ok())
        .collect();
    let wanted: Vec<i64> = (0..TURNS).collect();
    assert_eq!(ids, wanted);
    drop(reader);
    let held = held();
    println!("{READERS} readers that do not read hold {held} bytes");
    assert!(held <= (READERS + 1) * SHARE, "{held} bytes");
    drop(idle);
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}

/// Pages of turns are as small as what a reader may have at once, and lead to all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_large_turns_is_cut() {
    const TURNS: i64 = 20;
    /// What a page may have, as docs/reference/server.md says, and what JSON adds.
    const PAGE: usize = (1 << 20) + (4 << 10);
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let task = begin(&engine, None).await.id;
    write_large_turns(engine.store(), &task, TURNS).await;
    let (address, stop) = serve(&engine, 50).await;
    let (mut from, mut seen) = (0, Vec::new());
    loop {
        let line = format!("GET /v1/tasks/{task}/turns?limit=200&from={from}");
        let (status, page) = request(address, &line, "", "").await;
        assert_eq!(status, 200, "{page}");
        assert!(page.to_string().len() <= PAGE);
        let turns = page["turns"].as_array().unwrap().iter();
        seen.extend(turns.map(|turn| turn["number"].as_i64().unwrap()));
        let Some(next) = page["next"].as_i64() else {
            break;
        };
        from = next;
    }
    assert_eq!(seen, (0..TURNS).collect::<Vec<_>>());
    // The page of the dashboard has the newest of them, and leads to the others.
    let path = format!("/dashboard/tasks/{task}");
    let (status, page) = text_of(address, &path).await;
    assert_eq!(status, 200);
    assert!(page.contains("turn-19") && !page.contains("turn-10\""));
    assert!(page.contains("Earlier turns") && !page.contains("Later turns"));
    let (_, first) = text_of(address, &format!("{path}?from=0")).await;
    assert!(first.contains("turn-0\"") && !first.contains("turn-10\""));
    assert!(first.contains("Later turns"));
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}

/// What is read for somebody who does not take it counts until they leave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_counts_until_it_is_taken() {
    const LARGE: usize = 24 << 20;
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let task = begin(&engine, None).await.id;
    let store = engine.store();
    let lease = store.acquire(LeaseKind::Task, &task, "writer", LONG_MS);
    let append = AppendTurns {
        task: task.clone(),
        held: lease.await.unwrap().unwrap().held(),
        expected_seq: 0,
        turns: vec![NewTurn {
            kind: "note".to_owned(),
            body: json!({"text": "x".repeat(LARGE)}),
        }],
        allow: Vec::new(),
        from: Vec::new(),
        state: None,
        delivered: None,
    };
    store.append(append).await.unwrap();
    let metrics = Arc::new(Metrics::default());
    let (address, stop) = serve_counted(&engine, 50, Arc::clone(&metrics)).await;
    let held = || counted(&metrics, "proofhouse_stream_bytes");
    for path in [
        format!("/v1/tasks/{task}/turns"),
        format!("/dashboard/tasks/{task}"),
    ] {
        let (stream, answer) = ask(address, &path, "\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}");
        assert!(held() >= LARGE as u64, "{path}: {}", held());
        drop(stream);
        let began = Instant::now();
        while held() > 0 {
            assert!(began.elapsed() < PATIENCE, "{path} is held for ever");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}

/// How many transactions a store has made: those that only read, and those that write.
fn transactions(engine: &Engine) -> (u64, u64) {
    let timings = engine.store().timings();
    let all = |counts: &[u64]| counts.iter().sum();
    (all(&timings.reads.counts()), all(&timings.writes.counts()))
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
    // The engine writes whenever it looks for work, and asks once for all streams what has changed. If each of them asked for
    // itself, there would be many reads for every write.
    let made_during = async |wanted: u64| {
        let (before, began) = (transactions(&engine), Instant::now());
        loop {
            let now = transactions(&engine);
            let made = (now.0 - before.0, now.1 - before.1);
            if made.1 >= wanted {
                break made;
            }
            assert!(began.elapsed() < PATIENCE, "the engine does not look");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // A stream that has just begun reads what came meanwhile.
    made_during(60).await;
    let (reads, writes) = made_during(60).await;
    assert!(reads <= writes, "{reads} reads beside {writes} writes");
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

/// Readiness fails while this process holds something that nobody works on, whatever is the matter; metrics tell how much.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_says_when_a_lease_has_no_worker() {
    let world = World::new(MANIFESTS);
    let metrics = Arc::new(Metrics::default());
    let engine = world
        .engine_with(|options| {
            options.max_lag = Duration::from_millis(1);
            options.metrics = Arc::clone(&metrics);
        })
        .await;
    let engine = Arc::new(engine);
    let (address, stop) = serve_counted(&engine, 10, Arc::clone(&metrics)).await;
    let store = engine.store();
    let lease = store.acquire(LeaseKind::Task, "orphan", engine.owner(), LONG_MS);
    let held = lease.await.unwrap().unwrap().held();
    let eventually = async |wanted: &str| {
        let began = Instant::now();
        while status(address, "/v1/ready").await != wanted {
            assert!(began.elapsed() < PATIENCE, "it is never {wanted}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    eventually("503").await;
    let (_, answer) = ask(address, "/v1/ready", "}").await;
    assert!(
        answer.contains("a lease that nobody works under"),
        "{answer}"
    );
    assert_eq!(counted(&metrics, "proofhouse_leases_without_worker"), 1);
    let (_, page) = ask(address, "/dashboard", "</html>").await;
    assert!(page.contains("a lease that nobody works under"), "{page}");
    store.release(held).await.unwrap();
    eventually("200").await;
    assert_eq!(counted(&metrics, "proofhouse_leases_without_worker"), 0);
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}

/// A new task brings what it is claimed for, and its last turn says that nothing else waits: whoever works it off reads nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_tasks_are_worked_off_without_reads() {
    const TASKS: u64 = 100;
    let world = World::new(MANIFESTS);
    let engine = world.engine_with(|_| {}).await;
    for _ in 0..TASKS {
        begin(&engine, Some("hello")).await;
    }
    // Looked at from outside, which is not counted.
    let observer = rusqlite::Connection::open(world.database()).unwrap();
    let answered = || {
        let sql = "SELECT COUNT(*) FROM turns WHERE kind = 'output'";
        observer.query_row(sql, [], |row| row.get::<_, i64>(0))
    };
    let began = Instant::now();
    while answered().unwrap().unsigned_abs() < TASKS {
        assert!(began.elapsed() < PATIENCE, "the tasks are not worked off");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let reads: u64 = engine.store().timings().reads.counts().iter().sum();
    // Others look at the store now and then. There were four reads for each task once.
    assert!(reads < 2 * TASKS, "{reads} reads for {TASKS} tasks");
}

/// Whoever asks without a key cannot make the store write with each request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_is_looked_at_once_for_many() {
    const ASKED: u64 = 300;
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let (address, stop) = serve(&engine, 64).await;
    let timings = engine.store().timings();
    let writes = || timings.writes.counts().iter().sum::<u64>();
    let before = writes();
    for _ in 0..ASKED / 30 {
        let asked = (0..30).map(|_| status(address, "/v1/ready"));
        for answer in futures_util::future::join_all(asked).await {
            assert_eq!(answer, "200");
        }
    }
    let made = writes() - before;
    // The heartbeat and the sweeps write as well.
    assert!(made < ASKED / 4, "{made} writes for {ASKED} requests");
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}

/// Prometheus asks pods by their addresses, whatever names browsers must use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_read_by_address_though_names_are_given() {
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let secret = KeySecret::new().unwrap();
    let order = KeyOrder {
        name: "prometheus",
        scopes: &[KeyScope::MetricsRead],
        ..KeyOrder::default()
    };
    key_change::keep(engine.store(), &secret, order)
        .await
        .unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = ApiConfig {
        allowed_hosts: vec!["agents.example.com".to_owned()],
        ..ApiConfig::at(socket.local_addr().unwrap())
    };
    let limits = (config, ConnectionLimits::default());
    let (address, stop) = serve_as(&engine, socket, limits, Arc::new(Metrics::default()));
    let ask = async |path: &str, headers: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: 10.1.2.3:8460\r\nconnection: close\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.chars().skip(9).take(3).collect::<String>()
    };
    let key = format!("authorization: Bearer {}\r\n", secret.reveal());
    assert_eq!(ask("/v1/metrics", &key).await, "200");
    assert_eq!(ask("/v1/metrics", "").await, "401");
    let page = format!("{key}origin: http://elsewhere.example\r\n");
    assert_eq!(ask("/v1/metrics", &page).await, "403");
    assert_eq!(ask("/v1/openapi.json", &key).await, "403");
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}
