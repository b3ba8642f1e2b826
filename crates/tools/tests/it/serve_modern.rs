//! The server over HTTP as a client of the modern era sees it.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use proofhouse_test_support::wait::soon;
use proofhouse_wire::Method;
use serde_json::{Value, json};

use crate::serve_support::{MODERN, Stage, all, json_of, limits, modern_body, next};

#[tokio::test]
async fn every_result_says_what_the_era_wants() {
    let stage = Stage::start(limits()).await;
    for (method, params, cached) in [
        ("server/discover", json!({}), true),
        ("tools/list", json!({}), true),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {"a": 1}}),
            false,
        ),
    ] {
        let response = stage.modern(method, params).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header("mcp-session-id"), None);
        let result = json_of(response).await["result"].clone();
        assert_eq!(result["resultType"], "complete", "{method}");
        let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(info, &json!({"name": "demo", "version": "1"}), "{method}");
        assert_eq!(result.get("ttlMs").is_some(), cached, "{method}");
        assert_eq!(result.get("cacheScope").is_some(), cached, "{method}");
        if method == "server/discover" {
            assert_eq!(result["supportedVersions"], json!([MODERN]));
            assert_eq!(result["instructions"], "Be kind.");
        }
    }
    assert_eq!(stage.counts.get().0, 1, "one set of tools for everyone");
    stage.finish().await;
}

#[tokio::test]
async fn what_a_request_says_of_itself_is_checked() {
    let stage = Stage::start(limits()).await;
    let version = ("mcp-protocol-version", MODERN);
    let call = json!({"name": "echo", "arguments": {}});
    let whole = |method, params: &Value| modern_body(1, method, params.clone());
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let mut old = whole("tools/list", &json!({}));
    old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    let regional = json!({"name": "echo", "arguments": {"region": "eu"}});
    let list = ("mcp-method", "tools/list");
    let called = ("mcp-method", "tools/call");
    let named = ("mcp-name", "echo");
    for (headers, body, status, code) in [
        (vec![version, list], bare, 400, -32602),
        (vec![list], whole("tools/list", &json!({})), 400, -32020),
        (vec![version], whole("tools/list", &json!({})), 400, -32020),
        (
            vec![version, called],
            whole("tools/list", &json!({})),
            400,
            -32020,
        ),
        (
            vec![("mcp-protocol-version", "2099-01-01"), list],
            old.clone(),
            400,
            -32022,
        ),
        (vec![version, list], old, 400, -32020),
        (
            vec![version, called],
            whole("tools/call", &call),
            400,
            -32020,
        ),
        (
            vec![version, called, ("mcp-name", "grow")],
            whole("tools/call", &call),
            400,
            -32020,
        ),
        (
            vec![version, called, ("mcp-name", "=?base64?ZWNobw==?=")],
            whole("tools/call", &call),
            200,
            0,
        ),
        (
            vec![version, called, named],
            whole("tools/call", &regional),
            400,
            -32020,
        ),
        (
            vec![version, called, named, ("mcp-param-region", "eu")],
            whole("tools/call", &regional),
            200,
            0,
        ),
        (
            vec![version, called, ("mcp-name", "no")],
            whole("tools/call", &json!({"name": "no"})),
            400,
            -32602,
        ),
        (
            vec![version, ("mcp-method", "ping")],
            whole("ping", &json!({})),
            404,
            -32601,
        ),
        (
            vec![version, ("mcp-method", "initialize")],
            whole("initialize", &json!({})),
            404,
            -32601,
        ),
        (
            vec![version, ("mcp-method", "logging/setLevel")],
            whole("logging/setLevel", &json!({})),
            404,
            -32601,
        ),
    ] {
        let response = stage.send(Method::POST, &headers, body.to_string()).await;
        assert_eq!(response.status, status, "{headers:?} {body}");
        let answer = json_of(response).await;
        let expected = if code == 0 { Value::Null } else { json!(code) };
        assert_eq!(
            answer["error"]["code"], expected,
            "{headers:?} {body} {answer}"
        );
        assert_eq!(answer["id"], 1);
        if code == -32022 {
            let data = json!({"supported": [MODERN], "requested": "2099-01-01"});
            assert_eq!(answer["error"]["data"], data);
        }
    }
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(stage.send(method, &[version], "").await.status, 405);
    }
    stage.finish().await;
}

#[tokio::test]
async fn closing_the_stream_cancels_the_call() {
    let stage = Stage::start(limits()).await;
    let hanging = stage.modern("tools/call", json!({"name": "hang"})).await;
    assert!(hanging.is_event_stream());
    assert_eq!(stage.counts.get().2, 1);
    drop(hanging);
    soon("it ends", || stage.counts.get() == (1, 0, 0, 1)).await;
    stage.finish().await;
}

#[tokio::test]
async fn a_client_that_goes_before_the_answer_began_cancels_its_call() {
    let patient = proofhouse_mcp_serve::ServeLimits {
        stream_after: std::time::Duration::from_secs(60),
        ..limits()
    };
    let stage = Stage::start(patient).await;
    let body = modern_body(1, "tools/call", json!({"name": "hang"})).to_string();
    let mut raw = tokio::net::TcpStream::connect(stage.address).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\nmcp-method: tools/call\r\n\
         mcp-name: hang\r\nmcp-protocol-version: {MODERN}\r\n\r\n{body}",
        body.len()
    );
    tokio::io::AsyncWriteExt::write_all(&mut raw, request.as_bytes())
        .await
        .unwrap();
    soon("it runs", || stage.counts.get().2 == 1).await;
    drop(raw);
    soon("it ends", || stage.counts.get() == (1, 0, 0, 1)).await;
    stage.finish().await;
}

#[tokio::test]
async fn log_messages_and_progress_are_told_to_who_asks_in_the_request() {
    let stage = Stage::start(limits()).await;
    let silent = stage.modern("tools/call", json!({"name": "steps"})).await;
    assert!(!silent.is_event_stream());
    let meta = json!({"progressToken": 5, "io.modelcontextprotocol/logLevel": "debug"});
    let heard = all(stage
        .modern("tools/call", json!({"name": "steps", "_meta": meta}))
        .await)
    .await;
    let methods: Vec<_> = heard
        .iter()
        .filter_map(|one| one["method"].as_str())
        .collect();
    let (progress, message) = ("notifications/progress", "notifications/message");
    assert_eq!(methods, [progress, progress, progress, message, message]);
    assert_eq!(heard[5]["result"]["resultType"], "complete");
    stage.finish().await;
}

#[tokio::test]
async fn subscriptions_hear_of_what_they_asked_for() {
    let stage = Stage::start(limits()).await;
    let wanted = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    let mut events = stage.modern("subscriptions/listen", wanted).await.events();
    let mut deaf = stage
        .modern("subscriptions/listen", json!({"notifications": {}}))
        .await
        .events();
    let first = next(&mut events).await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        first["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    let subscription = json!({"io.modelcontextprotocol/subscriptionId": 1});
    assert_eq!(first["params"]["_meta"], subscription);
    assert_eq!(
        next(&mut deaf).await.unwrap()["params"]["notifications"],
        json!({})
    );
    stage.modern("tools/call", json!({"name": "grow"})).await;
    let told = next(&mut events).await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"], subscription);
    let wrong = stage.modern("subscriptions/listen", json!({})).await;
    assert_eq!(wrong.status, 400);
    // The end of the server ends the streams; the one that heard nothing heard nothing.
    let (ended, ()) = tokio::join!(
        tokio::time::timeout(std::time::Duration::from_secs(10), deaf.next()),
        stage.finish()
    );
    assert!(!matches!(ended.unwrap(), Ok(Some(_))));
}
