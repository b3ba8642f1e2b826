//! Clients that would stall a server for everybody else, each beside a client that behaves.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use proofhouse_test_support::loopback::{Serving, bound};
use proofhouse_wire::server::{
    BrokenConnection, ConnectionLoss, Handler, Reply, Request, TrafficBudget,
};
use proofhouse_wire::{CancellationToken, StatusCode, WireLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than any test takes: what should happen without waiting must not happen because a timeout ended.
const NEVER: Duration = Duration::from_secs(600);
/// How long a test waits for an answer before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Echoes lengths. A request to `/work` occupies its thread until the door is opened, as parsing a large body does.
#[derive(Default)]
struct Workshop {
    broken: Mutex<Vec<BrokenConnection>>,
    /// Requests at work.
    working: AtomicUsize,
    finished: AtomicUsize,
    door: Mutex<bool>,
    opened: Condvar,
}

impl Workshop {
    fn open(&self) {
        *self.door.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn broken(&self) -> Vec<BrokenConnection> {
        self.broken.lock().unwrap().clone()
    }

    /// Waits until it has heard of a connection that broke.
    async fn breaks(&self) {
        let heard = async {
            while self.broken().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, heard).await.unwrap();
    }

    fn losses(&self) -> Vec<ConnectionLoss> {
        self.broken().iter().map(|broken| broken.loss).collect()
    }
}

/// Lets everybody go when the test ends, however it does.
struct OpensAtLast(Arc<Workshop>);

impl Drop for OpensAtLast {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Handler for Workshop {
    async fn handle(&self, request: Request) -> Reply {
        let body = match request.body {
            Ok(body) => body,
            Err(problem) => return Reply::empty(problem.status()),
        };
        if request.path == "/work" {
            self.working.fetch_add(1, Ordering::SeqCst);
            let mut open = self.door.lock().unwrap();
            while !*open {
                open = self.opened.wait(open).unwrap();
            }
            drop(open);
            self.finished.fetch_add(1, Ordering::SeqCst);
        }
        Reply::json(StatusCode::OK, body.len().to_string())
    }

    fn broken(&self, _: SocketAddr, broken: &BrokenConnection) {
        self.broken.lock().unwrap().push(broken.clone());
    }
}

fn patient() -> WireLimits {
    WireLimits {
        max_message_bytes: 1 << 20,
        header_timeout: NEVER,
        body_timeout: NEVER,
        idle_timeout: NEVER,
        ..WireLimits::default()
    }
}

async fn start(limits: WireLimits) -> (Arc<Workshop>, Serving) {
    let handler = Arc::new(Workshop::default());
    let serving = Serving::start(Arc::clone(&handler), limits).await;
    (handler, serving)
}

/// Sends bytes on a connection of its own, which stays open.
async fn send(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// What comes back first: a status line and what was sent with it.
async fn answer(stream: &mut TcpStream) -> String {
    let mut piece = [0; 4096];
    let reading = tokio::time::timeout(PATIENCE, stream.read(&mut piece));
    let count = reading.await.expect("an answer in time").unwrap_or(0);
    String::from_utf8_lossy(&piece[..count]).into_owned()
}

async fn ask(address: SocketAddr, bytes: &[u8]) -> String {
    answer(&mut send(address, bytes).await).await
}

#[tokio::test]
async fn connections_that_send_no_request_make_way() {
    let limits = WireLimits {
        max_connections: 4,
        ..patient()
    };
    let (_, serving) = start(limits).await;
    let mut held = Vec::new();
    for bytes in ["", "POST /ec", "", "POST / HTTP/1.1\r\nhost: 127", "", "G"] {
        held.push(send(serving.address(), bytes.as_bytes()).await);
    }
    for _ in 0..6 {
        let answer = ask(serving.address(), &post("/", "", b"hello")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[tokio::test]
async fn a_connection_that_is_idle_between_requests_is_not_broken() {
    let limits = WireLimits {
        header_timeout: Duration::from_millis(100),
        ..patient()
    };
    let (handler, serving) = start(limits).await;
    let mut stream = send(serving.address(), &post("/", "", b"one")).await;
    assert!(answer(&mut stream).await.ends_with('3'));
    // Longer than a head may take.
    tokio::time::sleep(Duration::from_millis(400)).await;
    stream.write_all(&post("/", "", b"two!")).await.unwrap();
    assert!(answer(&mut stream).await.ends_with('4'));
    assert_eq!(handler.broken(), []);
    // Half a head is another matter.
    stream.write_all(b"POST / HT").await.unwrap();
    assert_eq!(answer(&mut stream).await, "");
    assert_eq!(handler.broken().len(), 1);
}

#[tokio::test]
async fn two_hosts_or_origins_are_refused() {
    let (handler, serving) = start(patient()).await;
    for (headers, status) in [
        ("host: evil.example\r\n", "400"),
        ("Host: 127.0.0.1\r\n", "400"),
        ("origin: http://localhost\r\n", "200"),
        (
            "origin: http://localhost\r\nOrigin: http://evil.example\r\n",
            "400",
        ),
    ] {
        let answer = ask(serving.address(), &post("/", headers, b"x")).await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{headers}: {answer}");
    }
    assert_eq!(handler.losses(), [ConnectionLoss::CutOff; 3]);
}

#[tokio::test]
async fn a_connection_that_breaks_says_what_was_lost() {
    let (handler, serving) = start(WireLimits {
        max_header_bytes: 8 << 10,
        ..patient()
    })
    .await;
    let long = format!("x: {}\r\n", "x".repeat(200 << 10));
    let twice = "host: 127.0.0.1\r\n";
    let page = |headers: &str| {
        format!("GET /favicon.ico HTTP/1.1\r\nhost: 127.0.0.1\r\n{headers}\r\n").into_bytes()
    };
    let head = b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\n";
    for (bytes, expected) in [
        (post("/", &long, b"x"), Some(ConnectionLoss::TooLong)),
        (post("/", twice, b"x"), Some(ConnectionLoss::CutOff)),
        (
            post("/", "content-length: -1\r\n", b"x"),
            Some(ConnectionLoss::CutOff),
        ),
        (head.to_vec(), Some(ConnectionLoss::CutOff)),
        (page(&long), Some(ConnectionLoss::Nothing)),
        (page(twice), Some(ConnectionLoss::Nothing)),
        (
            b"\x16\x03\x01\x02\x00\x01\x00 ".to_vec(),
            Some(ConnectionLoss::Nothing),
        ),
        (b"SSH-2.0-x y\r\n".to_vec(), Some(ConnectionLoss::Nothing)),
        (b"GET".to_vec(), Some(ConnectionLoss::Reply)),
        (page(""), None),
        (Vec::new(), None),
    ] {
        let mut stream = TcpStream::connect(serving.address()).await.unwrap();
        // It may be refused before all of it is sent.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
        if expected.is_some() {
            handler.breaks().await;
        }
        let losses = handler.losses();
        handler.broken.lock().unwrap().clear();
        let begins = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
        assert_eq!(losses, Vec::from_iter(expected), "{begins}");
    }
    // A request that comes together with the one before.
    let bytes = [
        post("/", "", b"one"),
        post("/", "content-length: -1\r\n", b"x"),
    ]
    .concat();
    let mut stream = send(serving.address(), &bytes).await;
    let _ = stream.read_to_end(&mut Vec::new()).await;
    handler.breaks().await;
    assert_eq!(handler.losses(), [ConnectionLoss::CutOff]);
}

#[tokio::test]
async fn a_body_that_is_announced_too_large_is_refused_before_it_is_sent() {
    let (_, serving) = start(patient()).await;
    let head = |length: usize| {
        format!(
            "POST / HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let refused = ask(serving.address(), head((1 << 20) + 1).as_bytes()).await;
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
    let mut stream = send(serving.address(), head(3).as_bytes()).await;
    let welcome = answer(&mut stream).await;
    assert!(welcome.starts_with("HTTP/1.1 100"), "{welcome}");
    stream.write_all(b"abc").await.unwrap();
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_on_large_bodies_is_not_in_the_way_of_others() {
    let (handler, serving) = start(patient()).await;
    let _opens = OpensAtLast(Arc::clone(&handler));
    let large = vec![b'x'; 300 << 10];
    let mut hostile = Vec::new();
    for _ in 0..6 {
        hostile.push(send(serving.address(), &post("/work", "", &large)).await);
    }
    while handler.working.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..20 {
        let answer =
            tokio::time::timeout(PATIENCE, ask(serving.address(), &post("/", "", b"hello"))).await;
        assert!(answer.unwrap().starts_with("HTTP/1.1 200"));
    }
    assert_eq!(handler.finished.load(Ordering::SeqCst), 0);
    handler.open();
    for stream in &mut hostile {
        assert!(answer(stream).await.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(handler.finished.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn bodies_that_are_held_back_hold_no_more_than_the_budget() {
    let limits = WireLimits {
        max_bytes_in_flight: 4 << 20,
        stall_timeout: Duration::from_millis(50),
        ..patient()
    };
    let traffic = TrafficBudget::new(&limits);
    let (handler, server) = (Arc::new(Workshop::default()), bound().await);
    let (address, stop) = (server.address(), CancellationToken::new());
    let serving = server.serve_within(
        Arc::clone(&handler),
        limits,
        Arc::clone(&traffic),
        stop.clone(),
    );
    let serving = tokio::spawn(serving);
    let whole = post("/", "", &vec![b'x'; 1 << 20]);
    let mut hostile = tokio::task::JoinSet::new();
    for number in 0..30 {
        // All but the last byte, announced or in pieces.
        let bytes = if number % 3 == 0 {
            let head =
                "POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nfffff\r\n";
            [head.as_bytes(), &vec![b'x'; (1 << 20) - 9]].concat()
        } else {
            whole[..whole.len() - 1].to_vec()
        };
        hostile.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let _ = stream.write_all(&bytes).await;
            answer(&mut stream).await
        });
    }
    while traffic.bytes_in_flight() < 4 << 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for length in [10, 1_000, 300 << 10, 1 << 20] {
        let answer = ask(address, &post("/", "", &vec![b'x'; length])).await;
        assert!(answer.ends_with(&length.to_string()), "{answer}");
    }
    // Those that stood in the way were told so; none was ever answered as if it were whole.
    hostile.abort_all();
    while let Some(ended) = hostile.join_next().await {
        let told = ended.unwrap_or_default();
        assert!(
            told.is_empty() || told.starts_with("HTTP/1.1 408"),
            "{told}"
        );
    }
    assert!(traffic.peak_bytes() <= 4 << 20, "{}", traffic.peak_bytes());
    while traffic.bytes_in_flight() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.cancel();
    serving.await.unwrap();
}
