//! Outages: a host that is away for a while is waited for, and nobody else suffers from it.

use std::sync::Arc;
use std::time::Duration;

use proofhouse_manifest::Tool;
use proofhouse_test_support::loopback::Vacant;
use proofhouse_tools::runtime::{ActionFailure, Runtimes, ToolLimits, ToolTask};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{Server, act, environment, json_reply, loopback, tool};

fn waiting(outage: Duration) -> ToolLimits {
    ToolLimits {
        outage,
        ..crate::support::limits()
    }
}

fn task(tool: Arc<Tool>, limits: &ToolLimits) -> ToolTask {
    let runtimes = Runtimes::new(limits, loopback()).unwrap();
    ToolTask::new(tool, environment(), runtimes, limits.clone())
}

fn asks(port: u16) -> Arc<Tool> {
    tool(&format!(
        "stateless_http: {{method: POST, url: \"http://127.0.0.1:{port}/\"}}"
    ))
}

/// Answers one request at a port that nobody listened at until now.
async fn come_back(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = [0; 4096];
    let _ = stream.read(&mut request).await.unwrap();
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{\"ok\": 1}";
    stream.write_all(answer).await.unwrap();
}

#[tokio::test]
async fn a_host_that_comes_back_is_found_by_the_call_that_waits_for_it() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let task = task(asks(port), &waiting(Duration::from_secs(60)));
    let back = async {
        // Long after the quick attempts of the beginning.
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        come_back(port).await;
    };
    let (called, ()) = tokio::join!(act(&task, json!({})), back);
    assert_eq!(called.unwrap().value, json!({"ok": 1}));
}

#[tokio::test]
async fn a_host_that_is_away_ends_only_the_calls_to_it() {
    let healthy = Server::start(|_, _| json_reply(&json!({"ok": 1}))).await;
    let nobody = Vacant::new();
    let limits = waiting(Duration::from_millis(700));
    let runtimes = Runtimes::new(&limits, loopback()).unwrap();
    let away = asks(nobody.address().port());
    let one =
        |tool: Arc<Tool>| ToolTask::new(tool, environment(), runtimes.clone(), limits.clone());
    for _ in 0..2 {
        let error = act(&one(Arc::clone(&away)), json!({})).await.unwrap_err();
        assert_eq!(error.failure, ActionFailure::Unreachable);
        assert!(error.message.contains("it was waited for 0.7 s"), "{error}");
        let called = act(&one(asks(healthy.port)), json!({})).await;
        assert_eq!(called.unwrap().value, json!({"ok": 1}));
    }
    // The same task finds it too, whatever came of its other calls.
    let (port, gone) = (healthy.port, nobody.address().port());
    let both = tool(&format!(
        "stateless_http: {{method: GET, url: \"http://127.0.0.1:{gone}/\"}}\n  - name: well\n    description: d\n    \
         execute:\n      stateless_http: {{method: GET, url: \"http://127.0.0.1:{port}/\"}}"
    ));
    let task = one(both);
    assert!(act(&task, json!({})).await.is_err());
    let called = task.invoke("well", Map::new(), json!({}), CancellationToken::new());
    assert_eq!(called.await.unwrap().value, json!({"ok": 1}));
}
