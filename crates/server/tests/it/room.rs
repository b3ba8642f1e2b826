//! Room: whatever connections are held by clients that send or read slowly, those who watch the server and those who sign in get
//! an answer.

use std::net::SocketAddr;
use std::sync::Arc;

use proofhouse_server::api::{ApiConfig, StreamLimits};
use proofhouse_server::key_change::{self, KeyOrder};
use proofhouse_server::keys::{KeyScope, KeySecret};
use proofhouse_server::listen::ConnectionLimits;
use proofhouse_server::metrics::Metrics;
use proofhouse_server::rate::RateQuota;
use proofhouse_wire::allow_open_files;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::bounds::{ask, serve_as, status};
use crate::engine_support::{MANIFESTS, PATIENCE, World, begin};

/// Both ends of all connections are in this process.
const FILES: u64 = 4_096;

/// What somebody holds a connection with.
#[derive(Debug, Clone, Copy)]
enum Hold {
    /// Half of the headers.
    HalfHead,
    /// Half of a body that everybody may send.
    HalfBody,
    /// A stream.
    Stream,
}

/// Opens a connection and holds it, once the server is busy with it.
async fn hold(address: SocketAddr, hold: Hold, stream: &str) -> TcpStream {
    let (head, up_to) = match hold {
        Hold::HalfHead => (
            format!("GET /v1/health HTTP/1.1\r\nhost: {address}\r\nx-"),
            "",
        ),
        Hold::HalfBody => (
            format!(
                "POST /dashboard/sign-in HTTP/1.1\r\nhost: {address}\r\nexpect: 100-continue\r\n\
                 content-length: 100\r\n\r\nkey="
            ),
            "100 Continue\r\n\r\n",
        ),
        Hold::Stream => (
            format!("GET {stream} HTTP/1.1\r\nhost: {address}\r\n\r\n"),
            "event: state",
        ),
    };
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&answer).contains(up_to) {
            let count = connection.read_buf(&mut answer).await.unwrap();
            let said = String::from_utf8_lossy(&answer);
            assert!(count > 0, "{hold:?} is not held: {said}");
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap();
    connection
}

/// Signs in by the form of this page, as a browser that reached it in this way; returns the answer.
pub(super) async fn sign_in(
    address: SocketAddr,
    page: &str,
    (scheme, key): (&str, &str),
) -> String {
    let between = |before: &str, after: char| {
        let rest = page.split_once(before).map(|(_, rest)| rest);
        let found = rest.and_then(|rest| rest.split(after).next());
        found.expect(before).to_owned()
    };
    let token = between("name=\"form_token\" value=\"", '"');
    let cookie = between("proofhouse_sign_in=", ';');
    let body = format!("form_token={token}&key={key}");
    let request = format!(
        "POST /dashboard/sign-in HTTP/1.1\r\nhost: {address}\r\norigin: {scheme}://{address}\r\n\
         cookie: proofhouse_sign_in={cookie}\r\ncontent-type: application/x-www-form-urlencoded\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let reading = stream.read_to_string(&mut answer);
    tokio::time::timeout(PATIENCE, reading)
        .await
        .unwrap()
        .unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_connections_keep_nobody_from_health_and_signing_in() {
    const MOST: usize = ConnectionLimits::MOST;
    allow_open_files(FILES);
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let task = begin(&engine, None).await.id;
    let stream = format!("/v1/tasks/{task}/stream");
    let secret = KeySecret::new().unwrap();
    let order = KeyOrder {
        name: "person",
        scopes: &[KeyScope::TasksRead],
        ..KeyOrder::default()
    };
    let kept = key_change::keep(engine.store(), &secret, order).await;
    kept.unwrap();
    let limits = ConnectionLimits {
        all: MOST,
        of_peer: MOST,
    };
    for kinds in [
        vec![(Hold::HalfHead, MOST)],
        vec![(Hold::HalfBody, MOST)],
        vec![(Hold::Stream, MOST / 4 * 3), (Hold::HalfBody, MOST / 4)],
    ] {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let config = ApiConfig {
            open: true,
            streams: StreamLimits::within(limits),
            rate: RateQuota {
                burst: 100_000,
                per_second: 100_000.0,
            },
            ..ApiConfig::at(address)
        };
        let metrics = Arc::new(Metrics::default());
        let (_, stop) = serve_as(&engine, socket, (config, limits), Arc::clone(&metrics));
        let mut held = Vec::new();
        for (kind, count) in &kinds {
            for _ in 0..*count {
                held.push(hold(address, *kind, &stream).await);
            }
        }
        for path in ["/v1/health", "/v1/ready"] {
            assert_eq!(
                status(address, path).await,
                "200",
                "{path} beside {kinds:?}"
            );
        }
        let (_, counts) = ask(address, "/v1/metrics", "# EOF").await;
        assert!(counts.starts_with("HTTP/1.1 200"), "{kinds:?}: {counts}");
        let (_, page) = ask(address, "/dashboard/sign-in", "</html>").await;
        assert!(page.starts_with("HTTP/1.1 200"), "{kinds:?}: {page}");
        let answer = sign_in(address, &page, ("http", secret.reveal())).await;
        assert!(answer.starts_with("HTTP/1.1 303"), "{kinds:?}: {answer}");
        drop(held);
        stop.cancel();
    }
    engine.shutdown(PATIENCE).await;
}
