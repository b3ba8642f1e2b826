//! The server over HTTP against clients that mean no good.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use std::time::Duration;

use proofhouse_mcp_serve::ServeLimits;
use proofhouse_test_support::wait::soon;
use proofhouse_wire::{Method, WireLimits};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::serve_support::{self, Stage, json_of, limits};

#[tokio::test]
async fn nonsense_is_refused_with_the_code_that_says_so() {
    let stage = Stage::start(limits()).await;
    let deep = "[".repeat(50_000);
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        (deep.as_str(), -32700),
        ("[]", -32600),
        (
            r#"[{"jsonrpc": "2.0", "id": 1, "method": "initialize"}]"#,
            -32600,
        ),
        (r#"{"jsonrpc": "2.0", "id": {}, "method": "ping"}"#, -32600),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}"#,
            -32600,
        ),
        (r#"{"id": 1, "method": "ping"}"#, -32600),
    ] {
        let response = stage.send(Method::POST, &[], body).await;
        assert_eq!(response.status, 400);
        assert_eq!(json_of(response).await["error"]["code"], code);
    }
    assert_eq!(stage.send(Method::PATCH, &[], "").await.status, 405);
    assert_eq!(stage.counts.get().0, 0, "nothing was opened for it");
    stage.finish().await;
}

#[tokio::test]
async fn web_pages_are_refused() {
    let stage = Stage::start(limits()).await;
    let session = stage.session().await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let own = format!("http://{}", stage.address);
    for (name, value, status) in [
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("origin", "http://127.0.0.1.evil.example", 403),
        ("host", "evil.example", 403),
        ("origin", own.as_str(), 200),
        ("origin", "http://localhost:3000", 200),
    ] {
        let headers = [(name, value), ("mcp-session-id", session.id.as_str())];
        let response = stage.send(Method::POST, &headers, ping.clone()).await;
        assert_eq!(response.status, status, "{name}: {value}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn large_and_slow_bodies_are_cut_off() {
    let wire = WireLimits {
        max_message_bytes: 1000,
        body_timeout: Duration::from_millis(200),
        header_timeout: Duration::from_millis(500),
        ..WireLimits::default()
    };
    let stage = Stage::start(ServeLimits { wire, ..limits() }).await;
    let response = stage.send(Method::POST, &[], "x".repeat(5000)).await;
    assert_eq!(response.status, 413);
    let start = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50\r\n\r\n{";
    for (sent, status) in [(start, "HTTP/1.1 408"), ("POST /mcp HT", "")] {
        let mut raw = TcpStream::connect(stage.address).await.unwrap();
        raw.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let reading = raw.read_to_end(&mut answer);
        let read = tokio::time::timeout(Duration::from_secs(10), reading).await;
        read.expect("the connection is closed").unwrap();
        assert!(
            String::from_utf8_lossy(&answer).starts_with(status),
            "{sent}"
        );
    }
    stage.session().await;
    stage.finish().await;
}

#[tokio::test]
async fn the_session_that_was_idle_for_longest_makes_room() {
    let stage = Stage::start(ServeLimits {
        max_sessions: 3,
        ..limits()
    })
    .await;
    let (busy, idle, listening) = (
        stage.session().await,
        stage.session().await,
        stage.session().await,
    );
    let _hanging = busy.call(1, "hang", json!({})).await;
    let _stream = listening.send(Method::GET, "").await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let fourth = stage.session().await;
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    assert_eq!(idle.post(&ping).await.status, 404);
    soon("its tools are closed", || stage.counts.get().1 == 1).await;
    let _hanging = fourth.call(1, "hang", json!({})).await;
    // Who only listens goes before who has calls under way.
    let fifth = stage.session().await;
    assert_eq!(listening.post(&ping).await.status, 404);
    let _hanging = fifth.call(1, "hang", json!({})).await;
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25"}});
    assert_eq!(
        stage.send(Method::POST, &[], body.to_string()).await.status,
        503
    );
    for session in [&busy, &fourth, &fifth] {
        assert_eq!(session.post(&ping).await.status, 200);
    }
    stage.finish().await;
}

#[tokio::test]
async fn sessions_in_which_nothing_happens_end() {
    let stage = Stage::start(ServeLimits {
        idle: Duration::from_millis(300),
        ..limits()
    })
    .await;
    let session = stage.session().await;
    let listening = stage.session().await;
    let _stream = listening.send(Method::GET, "").await;
    stage.modern("tools/list", json!({})).await;
    soon("both are closed", || stage.counts.get().1 == 2).await;
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    assert_eq!(session.post(&ping).await.status, 404);
    assert_eq!(listening.post(&ping).await.status, 200, "it listens");
    assert_eq!(
        stage.modern("tools/list", json!({})).await.status,
        200,
        "it opens again"
    );
    stage.finish().await;
}

#[tokio::test]
async fn calls_are_bounded_per_session_and_overall() {
    let bounds = ServeLimits {
        max_session_calls: 2,
        max_calls: 3,
        max_listeners: 1,
        ..limits()
    };
    let stage = Stage::start(bounds).await;
    let (one, other) = (stage.session().await, stage.session().await);
    let mut hanging = Vec::new();
    for id in [1, 2] {
        hanging.push(one.call(id, "hang", json!({})).await);
    }
    let refused = json_of(one.call(3, "echo", json!({})).await).await;
    assert_eq!(refused["error"]["code"], -32603, "one session");
    hanging.push(other.call(1, "hang", json!({})).await);
    let refused = json_of(other.call(2, "echo", json!({})).await).await;
    assert_eq!(refused["error"]["code"], -32603, "all together");
    let refused = json_of(stage.modern("tools/call", json!({"name": "echo"})).await).await;
    assert_eq!(refused["error"]["code"], -32603, "all together");
    let wanted = json!({"notifications": {}});
    let listening = stage.modern("subscriptions/listen", wanted.clone()).await;
    assert!(listening.is_event_stream());
    let refused = json_of(stage.modern("subscriptions/listen", wanted).await).await;
    assert_eq!(refused["error"]["code"], -32603, "listeners");
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    assert_eq!(
        one.post(&ping).await.status,
        200,
        "what takes no time is answered"
    );
    one.send(Method::DELETE, "").await;
    soon("its calls end", || stage.counts.get().2 == 1).await;
    assert_eq!(
        json_of(other.call(2, "echo", json!({})).await).await["id"],
        2
    );
    stage.finish().await;
}

#[tokio::test]
async fn calls_that_never_end_are_ended() {
    let short = ServeLimits {
        call: Duration::from_millis(300),
        ..limits()
    };
    let stage = Stage::start(short).await;
    let session = stage.session().await;
    let heard = serve_support::all(session.call(1, "hang", json!({})).await).await;
    assert_eq!(heard[0]["result"]["isError"], true);
    let told = heard[0]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        told.contains("timeout") && told.contains("outcome_unknown"),
        "{told}"
    );
    let counts = stage.counts.get();
    assert_eq!((counts.2, counts.3), (0, 1), "it was told to end, and did");
    stage.finish().await;
}

#[tokio::test]
async fn a_flood_of_handshakes_and_garbage_does_not_keep_others_out() {
    let stage = Stage::start(ServeLimits {
        max_sessions: 8,
        ..limits()
    })
    .await;
    let session = stage.session().await;
    let _hanging = session.call(1, "hang", json!({})).await;
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25"}})
    .to_string();
    for _ in 0..100 {
        let flood = (0..4).map(|_| stage.send(Method::POST, &[], body.clone()));
        futures_util::future::join_all(flood).await;
        stage.send(Method::POST, &[], "\u{0}garbage").await;
    }
    assert_eq!(
        json_of(session.call(2, "echo", json!({"a": 1})).await).await["id"],
        2
    );
    soon("only eight are open", || stage.counts.get().1 == 401 - 8).await;
    let counts = std::sync::Arc::clone(&stage.counts);
    stage.finish().await;
    assert_eq!(counts.get(), (401, 401, 0, 1));
}
