//! Whole exchanges with peers on loopback, those that misbehave among them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

use std::time::Duration;

use proofhouse_wire::client::{Client, ClientError};
use proofhouse_wire::{Bytes, HeaderMap, HttpResponse, Method, StatusCode, Url, WireLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const LIMIT: usize = 1000;

/// Long enough for a machine with much else to do.
const PATIENT: Duration = Duration::from_secs(60);

/// Answers each connection with these pieces, and then closes it or falls silent.
async fn peer(pieces: Vec<String>, silent: bool) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut kept: Vec<TcpStream> = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            for piece in &pieces {
                let _ = stream.write_all(piece.as_bytes()).await;
                let _ = stream.flush().await;
                // So that it arrives as a piece of its own; it is right either way.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            if silent {
                kept.push(stream);
            }
        }
    });
    format!("http://{address}/").parse().unwrap()
}

async fn exchange(url: &Url, time: Duration) -> Result<HttpResponse, ClientError> {
    let limits = WireLimits {
        max_message_bytes: LIMIT,
        // These are not asked: the one time is all there is.
        response_timeout: Duration::ZERO,
        idle_timeout: Duration::ZERO,
        ..WireLimits::default()
    };
    let client = Client::new(limits).unwrap();
    let exchanged = client.exchange(Method::POST, url, HeaderMap::new(), Bytes::new(), time);
    exchanged.await
}

fn head(rest: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nx-told: yes\r\n{rest}\r\n\r\n")
}

fn chunk(length: usize) -> String {
    format!("{length:x}\r\n{}\r\n", "x".repeat(length))
}

#[tokio::test]
async fn bodies_arrive_whole_in_one_piece_or_in_many() {
    let end = || "0\r\n\r\n".to_owned();
    let chunked = head("transfer-encoding: chunked");
    for (pieces, expected) in [
        (vec![head("content-length: 0")], 0),
        (vec![head("content-length: 5") + "xxxxx"], 5),
        (
            vec![head("content-length: 5"), "xx".into(), "xxx".into()],
            5,
        ),
        (
            vec![chunked.clone(), chunk(7), chunk(1), chunk(9), end()],
            17,
        ),
        (
            vec![chunked.clone(), chunk(LIMIT - 1), chunk(1), end()],
            LIMIT,
        ),
        (vec![head("connection: close"), "xx".into(), "x".into()], 3),
    ] {
        let whole = exchange(&peer(pieces, false).await, PATIENT).await.unwrap();
        assert_eq!(whole.status, StatusCode::OK);
        assert_eq!(whole.headers["x-told"], "yes");
        assert_eq!(whole.body, "x".repeat(expected));
    }
}

#[tokio::test]
async fn bodies_that_are_too_large_are_refused() {
    let chunked = head("transfer-encoding: chunked");
    for pieces in [
        // Nothing of it is sent; what it says is enough.
        vec![head("content-length: 1001")],
        vec![chunked.clone(), chunk(LIMIT + 1)],
        vec![chunked, chunk(LIMIT), chunk(1)],
        vec![head("connection: close"), "x".repeat(LIMIT + 1)],
    ] {
        let error = exchange(&peer(pieces, true).await, PATIENT).await;
        let error = error.unwrap_err();
        assert!(
            matches!(error, ClientError::TooLarge { limit: 1000 }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_breaks_or_takes_too_long_is_told_apart() {
    let cut = peer(vec![head("content-length: 5") + "xx"], false).await;
    let cut = exchange(&cut, PATIENT).await.unwrap_err();
    assert!(matches!(cut, ClientError::Broken(_)), "{cut}");
    for pieces in [vec![], vec![head("content-length: 5") + "xx"]] {
        let slow = peer(pieces, true).await;
        let slow = exchange(&slow, Duration::from_millis(300)).await;
        assert!(matches!(slow, Err(ClientError::TooSlow)), "{slow:?}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let gone = exchange(&url.parse().unwrap(), PATIENT).await.unwrap_err();
    assert!(matches!(gone, ClientError::Connect { .. }), "{gone}");
}

#[tokio::test]
async fn a_user_in_the_url_is_told_in_a_header() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://me:pass@{}/", listener.local_addr().unwrap());
    let seen = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let count = stream.read(&mut request).await.unwrap();
        let answer = head("content-length: 0");
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&request[..count]).into_owned()
    });
    exchange(&url.parse().unwrap(), PATIENT).await.unwrap();
    let seen = seen.await.unwrap();
    assert!(seen.contains("authorization: Basic bWU6cGFzcw=="), "{seen}");
}
