//! The server over HTTP as a client of the legacy era sees it.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use proofhouse_mcp_serve::ServeLimits;
use proofhouse_test_support::wait::soon;
use proofhouse_wire::Method;
use serde_json::{Value, json};

use crate::serve_support::{Stage, all, json_of, limits, next};

#[tokio::test]
async fn the_handshake_answers_the_asked_version_or_the_latest() {
    let stage = Stage::start(limits()).await;
    for (asked, told) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize",
            "params": {"protocolVersion": asked, "capabilities": {}}});
        let response = stage.send(Method::POST, &[], body.to_string()).await;
        let id = response.header("mcp-session-id").unwrap();
        assert!(id.len() >= 32 && id.bytes().all(|byte| byte.is_ascii_graphic()));
        let answer = json_of(response).await;
        assert_eq!(answer["id"], "a");
        assert_eq!(answer["result"]["protocolVersion"], told, "{asked}");
        assert_eq!(answer["result"]["instructions"], "Be kind.");
        let capabilities = json!({"tools": {"listChanged": true}, "logging": {}});
        assert_eq!(answer["result"]["capabilities"], capabilities);
    }
    let nothing = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"}).to_string();
    let answer = json_of(stage.send(Method::POST, &[], nothing).await).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(
        stage.counts.get().0,
        5,
        "no session for what is no handshake"
    );
    stage.finish().await;
}

#[tokio::test]
async fn sessions_are_needed_and_end_when_they_are_deleted() {
    let stage = Stage::start(limits()).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for (headers, status) in [
        (vec![], 400),
        (vec![("mcp-session-id", "nonsense")], 404),
        (vec![("mcp-protocol-version", "1.0")], 400),
    ] {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let response = stage.send(method.clone(), &headers, ping.to_string()).await;
            assert_eq!(response.status, status, "{method} {headers:?}");
        }
    }
    let session = stage.session().await;
    let answer = json_of(session.post(&ping).await).await;
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(session.send(Method::PUT, "").await.status, 405);
    assert_eq!(session.send(Method::DELETE, "").await.status, 204);
    assert_eq!(session.post(&ping).await.status, 404);
    soon("its tools are closed", || stage.counts.get().1 == 1).await;
    stage.finish().await;
}

#[tokio::test]
async fn tools_are_listed_in_pages_and_called() {
    let page = ServeLimits {
        page: 3,
        ..limits()
    };
    let stage = Stage::start(page).await;
    let session = stage.session().await;
    let first = json_of(session.ask(1, "tools/list", json!({})).await).await;
    let cursor = &first["result"]["nextCursor"];
    assert_eq!(first["result"]["tools"].as_array().unwrap().len(), 3);
    let params = json!({"cursor": cursor});
    let second = json_of(session.ask(2, "tools/list", params).await).await;
    assert_eq!(second["result"]["tools"][0]["name"], "grow");
    assert_eq!(second["result"].get("nextCursor"), None);
    for wrong in [json!("x"), json!(3), json!("dG9vbHM6OTk")] {
        let params = json!({"cursor": wrong});
        let answer = json_of(session.ask(3, "tools/list", params).await).await;
        assert_eq!(answer["error"]["code"], -32602);
    }
    let answer = json_of(session.call(4, "echo", json!({"a": [1]})).await).await;
    let expected = json!({"jsonrpc": "2.0", "id": 4, "result": {
        "content": [{"type": "text", "text": "{\"a\":[1]}"}], "structuredContent": {"a": [1]}}});
    assert_eq!(answer, expected);
    for (method, params, code) in [
        ("tools/call", json!({"name": "nothing"}), -32602),
        ("tools/call", json!({"arguments": {}}), -32602),
        (
            "tools/call",
            json!({"name": "echo", "arguments": []}),
            -32602,
        ),
        ("logging/setLevel", json!({"level": "shout"}), -32602),
        ("initialize", json!({"protocolVersion": "2025-11-25"}), 0),
        ("resources/list", json!({}), -32601),
        ("server/explode", json!({}), -32601),
    ] {
        let response = session.ask(5, method, params).await;
        assert_eq!(response.status, 200);
        let answer = json_of(response).await;
        // A handshake begins another session.
        let expected = if code == 0 { Value::Null } else { json!(code) };
        assert_eq!(answer["error"]["code"], expected, "{method}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn progress_and_log_messages_come_before_the_answer() {
    let stage = Stage::start(limits()).await;
    let session = stage.session().await;
    let params = json!({"name": "steps", "_meta": {"progressToken": "p"}});
    let heard = all(session.ask(7, "tools/call", params.clone()).await).await;
    let steps = heard
        .iter()
        .filter(|one| one["method"] == "notifications/progress");
    let steps: Vec<_> = steps
        .map(|one| one["params"]["progress"].as_f64())
        .collect();
    assert_eq!(
        steps,
        [Some(1.0), Some(2.0), Some(3.0)],
        "never a step back"
    );
    assert_eq!(heard[0]["params"]["progressToken"], "p");
    assert_eq!(
        heard[3]["params"],
        json!({"level": "warning", "logger": "demo", "data": "loud"})
    );
    assert_eq!(heard[4]["id"], 7);
    assert_eq!(heard.len(), 5);
    let level = session
        .ask(8, "logging/setLevel", json!({"level": "error"}))
        .await;
    assert_eq!(json_of(level).await["result"], json!({}));
    // Nobody wants to hear anything now, so the answer stands alone.
    let answer = json_of(session.ask(9, "tools/call", json!({"name": "steps"})).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    stage.finish().await;
}

#[tokio::test]
async fn a_disconnect_is_not_a_cancel_and_a_cancel_is() {
    let stage = Stage::start(limits()).await;
    let session = stage.session().await;
    let hanging = session.call(1, "hang", json!({})).await;
    assert!(hanging.is_event_stream());
    drop(hanging);
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(stage.counts.get().2, 1, "it goes on");
    let same = json_of(session.call(1, "echo", json!({})).await).await;
    assert_eq!(same["error"]["code"], -32600, "its id is taken");
    let second = session.call(2, "hang", json!({})).await;
    for id in [json!(1), json!(2), json!("2"), json!(99), Value::Null] {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id}});
        assert_eq!(session.post(&note).await.status, 202);
    }
    assert_eq!(all(second).await, Vec::<Value>::new(), "no answer");
    soon("both end", || stage.counts.get().2 == 0).await;
    assert_eq!(stage.counts.get().3, 2);
    stage.finish().await;
}

#[tokio::test]
async fn changes_of_the_list_are_told_on_the_listening_stream() {
    let stage = Stage::start(limits()).await;
    let (session, other) = (stage.session().await, stage.session().await);
    let mut earlier = session.send(Method::GET, "").await.events();
    let mut events = session.send(Method::GET, "").await.events();
    assert_eq!(next(&mut earlier).await, None, "another takes its place");
    let mut others = other.send(Method::GET, "").await.events();
    json_of(session.call(1, "grow", json!({})).await).await;
    let told = next(&mut events).await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    let list = json_of(session.ask(2, "tools/list", json!({})).await).await;
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 5);
    // The other session has tools of its own, which did not change; its stream ends with it.
    other.send(Method::DELETE, "").await;
    assert_eq!(next(&mut others).await, None);
    stage.finish().await;
}

#[tokio::test]
async fn the_end_cancels_calls_and_closes_every_session() {
    let stage = Stage::start(limits()).await;
    let counts = std::sync::Arc::clone(&stage.counts);
    let (one, two) = (stage.session().await, stage.session().await);
    let _hanging = one.call(1, "hang", json!({})).await;
    let _hanging = two.call(1, "hang", json!({})).await;
    stage.modern("tools/call", json!({"name": "hang"})).await;
    soon("all run", || counts.get().2 == 3).await;
    stage.finish().await;
    assert_eq!(counts.get(), (3, 3, 0, 3));
}
