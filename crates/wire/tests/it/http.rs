//! Server and client against each other and against peers that misbehave, on loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_test_support::loopback::Serving;
use proofhouse_wire::client::{Client, ClientError};
use proofhouse_wire::server::{BrokenConnection, Handler, Reply, ReplyBody, Request};
use proofhouse_wire::sse::SseEvent;
use proofhouse_wire::{Bytes, HeaderMap, Method, StatusCode, WireLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Answers by path, and remembers what broke.
#[derive(Default)]
struct Echo {
    broken: Mutex<Vec<String>>,
}

impl Handler for Echo {
    async fn handle(&self, request: Request) -> Reply {
        let body = match request.body {
            Ok(body) => body,
            Err(problem) => return Reply::empty(problem.status()),
        };
        match request.path.as_str() {
            "/echo" => Reply::json(StatusCode::OK, body),
            "/cut" => Reply::cut(),
            "/events" => {
                let (reply, writer) = Reply::events();
                tokio::spawn(async move {
                    for n in 0..3 {
                        let _ = writer.write(SseEvent::data(n.to_string()).encode()).await;
                    }
                });
                reply
            }
            "/half" => {
                let (reply, writer) = Reply::events();
                tokio::spawn(async move {
                    let _ = writer.write("data: one\n\ndata: tw").await;
                    writer.cut().await;
                });
                reply
            }
            "/endless" => {
                let (reply, writer) = Reply::events();
                tokio::spawn(async move { while writer.write("data: x\n\n").await.is_ok() {} });
                reply
            }
            "/large" => Reply::json(StatusCode::OK, vec![b'x'; 100_000]),
            "/silent" => {
                let (reply, writer) = Reply::events();
                tokio::spawn(async move { writer.closed().await });
                reply
            }
            "/away" => Reply::empty(StatusCode::FOUND).with_header("location", "/echo"),
            _ => Reply::empty(StatusCode::NOT_FOUND).with_body(ReplyBody::Whole(Bytes::new())),
        }
    }

    fn broken(&self, _: SocketAddr, broken: &BrokenConnection) {
        self.broken.lock().unwrap().push(broken.reason.clone());
    }
}

fn small() -> WireLimits {
    WireLimits {
        max_message_bytes: 10_000,
        max_stream_bytes: 50_000,
        max_events: 1_000,
        header_timeout: Duration::from_millis(500),
        body_timeout: Duration::from_millis(500),
        connect_timeout: Duration::from_secs(3),
        response_timeout: Duration::from_secs(3),
        idle_timeout: Duration::from_secs(1),
        max_connections: 4,
        ..WireLimits::default()
    }
}

struct Running {
    handler: Arc<Echo>,
    serving: Serving,
}

impl Running {
    async fn start() -> Self {
        let handler = Arc::new(Echo::default());
        let serving = Serving::start(Arc::clone(&handler), small()).await;
        Self { handler, serving }
    }

    async fn send(&self, path: &str, body: Vec<u8>) -> Result<StreamedResponse, ClientError> {
        let client = Client::new(small()).unwrap();
        let url = format!("http://{}{path}", self.serving.address());
        client
            .send(Method::POST, &url, HeaderMap::new(), body.into())
            .await
    }
}

use proofhouse_wire::client::StreamedResponse;

#[tokio::test]
async fn bodies_go_there_and_back() {
    let server = Running::start().await;
    let response = server.send("/echo", b"{}".to_vec()).await.unwrap();
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.bytes().await.unwrap(), "{}");
    let address = server.serving.address();
    server.serving.finish().await;
    assert!(matches!(
        server_gone(address).await,
        Err(ClientError::Connect { .. })
    ));
}

#[tokio::test]
async fn bodies_in_pieces_arrive_whole_or_not_at_all() {
    let server = Running::start().await;
    let client = Client::new(small()).unwrap();
    let url = format!("http://{}/echo", server.serving.address());
    client.reach(&url).await.unwrap();
    let send = |pieces: Vec<std::io::Result<Bytes>>| {
        let pieces = Box::pin(futures_util::stream::iter(pieces));
        client.send_pieces(Method::POST, &url, HeaderMap::new(), pieces)
    };
    let whole = send(vec![Ok("one ".into()), Ok("two".into())]).await;
    assert_eq!(whole.unwrap().bytes().await.unwrap(), "one two");
    let cut = send(vec![Ok("one".into()), Err(std::io::Error::other("cut"))]).await;
    assert!(matches!(cut, Err(ClientError::Broken(_))), "{cut:?}");

    server.serving.finish().await;
    for (url, told) in [
        (url.as_str(), "cannot connect to http://127.0.0.1"),
        ("nowhere", "not a URL"),
        ("data:x", "it names no host"),
    ] {
        let error = client.reach(url).await.unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

async fn server_gone(address: SocketAddr) -> Result<StreamedResponse, ClientError> {
    let client = Client::new(small()).unwrap();
    let url = format!("http://{address}/echo");
    client
        .send(Method::POST, &url, HeaderMap::new(), Bytes::new())
        .await
}

#[tokio::test]
async fn events_come_one_by_one_and_a_cut_stream_is_an_error() {
    let server = Running::start().await;
    let response = server.send("/events", Vec::new()).await.unwrap();
    assert!(response.is_event_stream());
    let mut events = response.events();
    for n in 0..3 {
        assert_eq!(events.next().await.unwrap().unwrap().data, n.to_string());
    }
    assert_eq!(events.next().await.unwrap(), None);

    let mut half = server.send("/half", Vec::new()).await.unwrap().events();
    assert_eq!(half.next().await.unwrap().unwrap().data, "one");
    assert!(matches!(half.next().await, Err(ClientError::Broken(_))));
    assert!(matches!(
        server.send("/cut", Vec::new()).await,
        Err(ClientError::Broken(_)) | Ok(_)
    ));
}

#[tokio::test]
async fn what_the_server_sends_is_bounded() {
    let server = Running::start().await;
    let mut endless = server.send("/endless", Vec::new()).await.unwrap().events();
    let error = loop {
        match endless.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it ended"),
            Err(error) => break error,
        }
    };
    assert!(matches!(
        error,
        ClientError::TooManyEvents { .. } | ClientError::TooLarge { .. }
    ));
    drop(endless);
    let large = server
        .send("/large", Vec::new())
        .await
        .unwrap()
        .bytes()
        .await;
    assert!(matches!(large, Err(ClientError::TooLarge { .. })));
    let silent = server
        .send("/silent", Vec::new())
        .await
        .unwrap()
        .bytes()
        .await;
    assert!(matches!(silent, Err(ClientError::TooSlow)));
    let away = server.send("/away", Vec::new()).await.unwrap();
    assert_eq!(away.status, StatusCode::FOUND, "redirects are not followed");
}

#[tokio::test]
async fn what_the_client_sends_is_bounded() {
    let server = Running::start().await;
    let large = server.send("/echo", vec![b'x'; 20_000]).await;
    if let Ok(large) = large {
        assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    }
    let address = server.serving.address();
    let answer_to = |text: String| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).await.unwrap_or(0);
        String::from_utf8_lossy(&answer[..count]).into_owned()
    };
    let head = "POST /echo HTTP/1.1\r\nhost: x\r\n";
    let slow = answer_to(format!("{head}content-length: 10\r\n\r\nabc")).await;
    assert!(slow.starts_with("HTTP/1.1 408"), "{slow}");
    let garbage = answer_to("\u{1}\u{2} not http\r\n\r\n".to_owned()).await;
    assert!(
        garbage.is_empty() || garbage.starts_with("HTTP/1.1 400"),
        "{garbage}"
    );
    let many: String = (0..500).map(|n| format!("h{n}: x\r\n")).collect();
    let flooded = answer_to(format!("{head}{many}\r\n")).await;
    assert!(
        flooded.is_empty() || flooded.starts_with("HTTP/1.1 431"),
        "{flooded}"
    );
    let half = answer_to("POST /echo HT".to_owned()).await;
    assert!(half.is_empty() || half.starts_with("HTTP/1.1 4"), "{half}");
    assert!(!server.handler.broken.lock().unwrap().is_empty());
}

#[tokio::test]
async fn idle_connections_beyond_the_limit_do_not_shut_others_out_for_good() {
    let server = Running::start().await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(TcpStream::connect(server.serving.address()).await.unwrap());
    }
    // The idle ones are closed after the header timeout, which is shorter than clients wait.
    let response = server.send("/echo", b"1".to_vec()).await.unwrap();
    assert_eq!(response.bytes().await.unwrap(), "1");
}

#[tokio::test]
async fn a_server_that_never_answers_is_too_slow() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let result = server_gone(listener.local_addr().unwrap()).await;
    assert!(matches!(result, Err(ClientError::TooSlow)));
    let client = Client::new(small()).unwrap();
    let wrong = client
        .send(Method::GET, "no url", HeaderMap::new(), Bytes::new())
        .await;
    assert!(matches!(wrong, Err(ClientError::Url { .. })));
}
