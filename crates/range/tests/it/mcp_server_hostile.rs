//! What `mcp_server` makes of clients that keep to nothing.

use std::time::{Duration, Instant};

use proofhouse_range::RunOptions;
use proofhouse_wire::{Method, WireLimits};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::mcp_support::*;

#[tokio::test]
async fn nonsense_gets_the_status_that_the_protocol_has_for_it() {
    let limits = WireLimits {
        max_message_bytes: 10_000,
        ..WireLimits::default()
    };
    let options = RunOptions {
        limits,
        ..options()
    };
    let stage = Stage::with(of_state(&json!({})), options).await;
    let http = Http::initialized(&stage.url, json!({})).await;
    let deep = "[".repeat(9_000);
    let huge = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}",
        "x".repeat(20_000)
    );
    for (text, status, code) in [
        ("", 400, -32700),
        ("hello", 400, -32700),
        ("{\"jsonrpc\":\"2.0\"", 400, -32700),
        (deep.as_str(), 400, -32700),
        ("[]", 400, -32600),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            400,
            -32600,
        ),
        (
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
            400,
            -32600,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            400,
            -32600,
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", 400, -32600),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":[1]}",
            200,
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":{}}}",
            200,
            -32602,
        ),
        (huge.as_str(), 413, -32600),
    ] {
        let response = http.send(Method::POST, &[], text).await;
        let place: String = text.chars().take(80).collect();
        assert_eq!(response.status, status, "{place}");
        assert_eq!(body(response).await["error"]["code"], code, "{place}");
    }
    assert_eq!(
        http.send(
            Method::POST,
            &[],
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
        )
        .await
        .status,
        200
    );
    let report = stage.finish().await;
    assert!(report.warnings.len() >= 8 && report.errors.is_empty());
}

#[tokio::test]
async fn the_same_id_twice_is_answered_twice() {
    let state = json!({"tools": [{"name": "t", "x-steps": [{"pause": "100ms"}], "responses": [{"content": "hi"}]}]});
    let stage = Stage::http(of_state(&state)).await;
    let http = Http::initialized(&stage.url, json!({})).await;
    let message = request(1, "tools/call", json!({"name": "t"}));
    let (one, other) = tokio::join!(http.post(&message), http.post(&message));
    for response in [one, other] {
        let reply = next(&mut response.events()).await.unwrap();
        assert_eq!(reply["result"]["content"][0]["text"], "hi");
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_sessions_leave_room_for_the_latest() {
    let stage = Stage::http(of_state(&json!({}))).await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        let url = stage.url.clone();
        clients.push(tokio::spawn(async move {
            let mut http = Http::new(&url);
            let mut first = None;
            for _ in 0..1_250 {
                http.session = None;
                http.initialize(json!({})).await;
                first = first.or_else(|| http.session.clone());
            }
            (first, http)
        }));
    }
    for client in clients {
        let (first, mut http) = client.await.unwrap();
        assert_eq!(http.call("ping", json!({})).await["result"], json!({}));
        http.session = first;
        let old = request(1, "ping", json!({}));
        assert_eq!(http.post(&old).await.status, 404, "the oldest made room");
    }
    let report = stage.finish().await;
    assert!(report.messages >= 20_000);
}

#[tokio::test]
async fn a_slow_reader_is_not_waited_for_by_others() {
    let big = "x".repeat(100_000);
    let state = json!({"tools": [{"name": "shout", "x-steps": [
        {"broadcast": {"method": "notifications/message", "params": {"level": "info", "data": big}}},
    ], "responses": [{"content": "ok"}]}]});
    let stage = Stage::http(of_state(&state)).await;
    let sleeper = Http::initialized(&stage.url, json!({})).await;
    let _never_read = sleeper.listen().await;
    let mut http = Http::initialized(&stage.url, json!({})).await;
    let started = Instant::now();
    for _ in 0..200 {
        let answer = http.call("tools/call", json!({"name": "shout"})).await;
        assert_eq!(answer["result"]["content"][0]["text"], "ok");
    }
    assert!(
        started.elapsed() < Duration::from_secs(60),
        "{:?}",
        started.elapsed()
    );
    stage.finish().await;
}

#[tokio::test]
async fn broken_connections_and_other_protocols_cost_nothing() {
    let stage = Stage::http(of_state(&json!({}))).await;
    let address = stage
        .url
        .trim_start_matches("http://")
        .trim_end_matches("/mcp")
        .to_owned();
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET",
        b"SSH-2.0-x\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{\"json",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
    ] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
    }
    let mut http = Http::initialized(&stage.url, json!({})).await;
    assert_eq!(http.call("ping", json!({})).await["result"], json!({}));
    let elsewhere = Http::new(
        &stage
            .url
            .replace("/mcp", "/.well-known/oauth-protected-resource"),
    );
    assert_eq!(elsewhere.send(Method::GET, &[], "").await.status, 404);
    stage.finish().await;
}

#[tokio::test]
async fn calls_that_never_end_are_ended_with_the_run() {
    let state = json!({
        "tools": [{"name": "t", "x-steps": [{"request": {"method": "sampling/createMessage"}}]}],
    });
    let stage = Stage::http(of_state(&state)).await;
    let http = Http::initialized(&stage.url, json!({"sampling": {}})).await;
    let mut open = Vec::new();
    for id in 0..20 {
        let message = request(id, "tools/call", json!({"name": "t"}));
        open.push(http.post(&message).await);
    }
    let started = Instant::now();
    stage.finish().await;
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_not_waited_for_forever() {
    let limits = WireLimits {
        response_timeout: Duration::from_millis(200),
        ..WireLimits::default()
    };
    let options = RunOptions {
        limits,
        ..options()
    };
    let state = json!({"tools": [{
        "name": "t",
        "x-steps": [{"request": {"key": "s", "method": "sampling/createMessage", "force": true}}],
        "responses": [{"content": "without"}],
    }]});
    let stage = Stage::with(of_state(&state), options).await;
    let http = Http::initialized(&stage.url, json!({})).await;
    let message = request(1, "tools/call", json!({"name": "t"}));
    let mut events = http.post(&message).await.events();
    let mut methods = Vec::new();
    while let Some(message) = next(&mut events).await {
        methods.push(message["method"].as_str().unwrap_or("reply").to_owned());
    }
    let expected = ["sampling/createMessage", "notifications/cancelled", "reply"];
    assert_eq!(methods, expected);
    stage.finish().await;
}
