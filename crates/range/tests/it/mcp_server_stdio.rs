//! `mcp_server` over lines, both eras in one process.

use std::time::Duration;

use proofhouse_range::RunOptions;
use proofhouse_wire::WireLimits;
use serde_json::{Value, json};

use crate::mcp_support::*;

fn handshake() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "test", "version": "1"}})
}

#[tokio::test]
async fn a_probe_is_neutral_and_both_eras_are_answered() {
    let state = json!({"tools": [{"name": "t", "responses": [{"content": "hi"}]}]});
    let (stage, mut pipes) = Stage::stdio(of_state(&state), options()).await;
    let probe = pipes
        .call(1, "server/discover", envelope(json!({}), json!({})))
        .await;
    assert_eq!(probe["result"]["supportedVersions"], json!(["2026-07-28"]));
    let answer = pipes.call(2, "initialize", handshake()).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    pipes
        .send(&notification("notifications/initialized", json!({})))
        .await;
    let legacy = pipes.call(3, "tools/call", json!({"name": "t"})).await;
    assert!(legacy["result"].get("resultType").is_none());
    let params = envelope(json!({"name": "t"}), json!({}));
    let modern = pipes.call(4, "tools/call", params).await;
    assert_eq!(modern["result"]["resultType"], "complete");
    let refused = pipes.call(5, "server/discover", json!({})).await;
    assert_eq!(
        (&refused["error"]["code"], &refused["id"]),
        (&json!(-32602), &json!(5))
    );
    let gone = pipes.call(6, "ping", envelope(json!({}), json!({}))).await;
    assert_eq!(gone["error"]["code"], -32601);
    let report = stage.finish().await;
    // The probe counted, so the handshake after it is no event, but it is a message.
    assert_eq!(count(&report, "initialize", "Request"), 2);
}

#[tokio::test]
async fn notifications_questions_and_listeners_share_the_lines() {
    let phases = json!([
        {
            "name": "trust",
            "state": {
                "tools": [{"name": "t", "responses": [{"content": "{{request.inputResponses.elicitation.action}}"}]}],
                "elicitations": [{"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}],
            },
            "trigger": {"event": "tools/call"},
        },
        {"name": "strike", "on_enter": [{"send": {"method": "notifications/tools/list_changed"}}]},
    ]);
    let (stage, mut pipes) = Stage::stdio(of_phases(&phases), options()).await;
    let params = envelope(
        json!({"notifications": {"toolsListChanged": true}}),
        json!({}),
    );
    let acknowledged = pipes.call(1, "subscriptions/listen", params).await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    pipes.call(2, "initialize", handshake()).await;
    pipes
        .send(&notification("notifications/initialized", json!({})))
        .await;
    let asked = pipes.call(3, "tools/call", json!({"name": "t"})).await;
    assert_eq!(asked["method"], "elicitation/create");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}});
    pipes.send(&answer).await;
    let reply = pipes.read().await;
    assert_eq!(reply["result"]["content"][0]["text"], "decline");
    // One for the client of the handshake, one for the listener, both after the reply.
    let (first, second) = (pipes.read().await, pipes.read().await);
    let tagged = [&first, &second]
        .iter()
        .filter(|one| one["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1)
        .count();
    assert_eq!(first["method"], "notifications/tools/list_changed");
    assert_eq!(second["method"], "notifications/tools/list_changed");
    assert_eq!(tagged, 1);
    stage.finish().await;
}

#[tokio::test]
async fn listening_ends_with_a_cancel_and_leaves_nothing_behind() {
    let state = json!({"tools": [{"name": "poke", "x-steps": [
        {"broadcast": {"method": "notifications/tools/list_changed"}},
    ], "responses": [{"content": "poked"}]}]});
    let (stage, mut pipes) = Stage::stdio(of_state(&state), options()).await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    // More than may run or listen at a time.
    for id in 0..1_500 {
        let params = envelope(wanted.clone(), json!({}));
        let acknowledged = pipes.call(id, "subscriptions/listen", params).await;
        let method = &acknowledged["method"];
        assert_eq!(method, "notifications/subscriptions/acknowledged", "{id}");
        let poke = envelope(json!({"name": "poke"}), json!({}));
        if id % 100 == 0 {
            // The listener is there as soon as it is told of, or a moment later.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let heard = pipes.call(9_000, "tools/call", poke.clone()).await;
            assert_eq!(heard["method"], "notifications/tools/list_changed", "{id}");
            assert_eq!(pipes.read().await["id"], 9_000);
        }
        let cancel = notification("notifications/cancelled", json!({"requestId": id}));
        pipes.send(&cancel).await;
        if id % 100 == 0 {
            let answer = pipes.call(9_001, "tools/call", poke).await;
            assert_eq!(answer["id"], 9_001, "nobody hears it any more");
        }
    }
    stage.finish().await;
}

#[tokio::test]
async fn a_call_is_cancelled_and_others_go_on() {
    let state = json!({"tools": [
        {"name": "sleep", "x-steps": [{"pause": "30s"}]},
        {"name": "t", "responses": [{"content": "hi"}]},
    ]});
    let (stage, mut pipes) = Stage::stdio(of_state(&state), options()).await;
    pipes.call(1, "initialize", handshake()).await;
    pipes
        .send(&request(2, "tools/call", json!({"name": "sleep"})))
        .await;
    pipes
        .send(&request(2, "tools/call", json!({"name": "sleep"})))
        .await;
    let other = pipes.call(3, "tools/call", json!({"name": "t"})).await;
    assert_eq!(other["id"], 3, "the sleeper holds nobody up");
    for id in [json!(2), json!(77), json!(null)] {
        let cancel = notification("notifications/cancelled", json!({"requestId": id}));
        pipes.send(&cancel).await;
    }
    assert_eq!(pipes.call(4, "ping", json!({})).await["id"], 4);
    let report = stage.finish().await;
    assert!(report.warnings.iter().any(|one| one.contains("still runs")));
}

#[tokio::test]
async fn nonsense_is_answered_and_passed_over() {
    let limits = WireLimits {
        max_message_bytes: 1_000,
        ..WireLimits::default()
    };
    let options = RunOptions {
        limits,
        ..options()
    };
    let (stage, mut pipes) = Stage::stdio(of_state(&json!({})), options).await;
    for (line, code) in [
        ("hello".to_owned(), -32700),
        ("{\"jsonrpc\":\"2.0\",".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]".to_owned(),
            -32600,
        ),
        ("{\"id\":1,\"method\":\"ping\"}".to_owned(), -32600),
        ("\u{0}\u{1}".to_owned(), -32700),
        ("[".repeat(900), -32700),
        ("x".repeat(5_000), -32600),
    ] {
        pipes.write(&format!("{line}\n")).await;
        let answer = pipes.read().await;
        assert_eq!(answer["error"]["code"], code, "{line}");
    }
    assert_eq!(pipes.call(9, "ping", json!({})).await["result"], json!({}));
    pipes.write("{\"jsonrpc\": \"2.0\", \"id\": 3").await;
    pipes.input = None;
    assert_eq!(pipes.line().await, None, "the output ends with the input");
    // And so does the run, for there is nobody left.
    let report = stage.ended().await;
    assert_eq!(report.ending, proofhouse_range::Ending::SubjectDone);
    assert!(
        report
            .warnings
            .iter()
            .any(|one| one.contains("input ended"))
    );
    assert!(report.errors.is_empty());
}

#[tokio::test]
async fn replies_are_delivered_as_the_phase_says() {
    let phase = |delivery: Value| json!([{"name": "p", "state": {"tools": [{"name": "t", "responses": [{"content": "hi"}]}]}, "x-delivery": delivery}]);
    let ping = request(1, "ping", json!({}));

    let (stage, mut pipes) =
        Stage::stdio(of_phases(&phase(json!({"duplicate_ids": true}))), options()).await;
    pipes.send(&ping).await;
    assert_eq!(pipes.read().await, pipes.read().await);
    stage.finish().await;

    let (stage, mut pipes) = Stage::stdio(
        of_phases(&phase(json!({"notification_flood": 100}))),
        options(),
    )
    .await;
    pipes.send(&ping).await;
    for _ in 0..100 {
        assert_eq!(pipes.read().await["method"], "notifications/message");
    }
    assert_eq!(pipes.read().await["id"], 1);
    stage.finish().await;

    let document = of_phases(&phase(json!({"oversized": 100_000, "deep_nesting": 100})));
    let (stage, mut pipes) = Stage::stdio(document, options()).await;
    pipes.send(&ping).await;
    let line = pipes.line().await.unwrap();
    assert!(line.len() > 100_000 && line.contains("[[[["));
    stage.finish().await;

    let document = of_phases(&phase(json!({"delay": "200ms", "slow_stream": "20ms"})));
    let (stage, mut pipes) = Stage::stdio(document, options()).await;
    let started = std::time::Instant::now();
    pipes.send(&ping).await;
    assert_eq!(pipes.read().await["id"], 1);
    assert!(started.elapsed() >= Duration::from_millis(240));
    stage.finish().await;

    let (stage, mut pipes) =
        Stage::stdio(of_phases(&phase(json!({"abrupt_close": true}))), options()).await;
    pipes.send(&ping).await;
    let half = pipes.line().await.unwrap();
    assert!(serde_json::from_str::<Value>(&half).is_err(), "{half}");
    assert_eq!(pipes.line().await, None);
    stage.finish().await;
}

#[tokio::test]
async fn a_reader_that_does_not_read_ends_nothing_but_itself() {
    let limits = WireLimits {
        idle_timeout: Duration::from_millis(300),
        ..WireLimits::default()
    };
    let options = RunOptions {
        limits,
        ..options()
    };
    let state = json!({"instructions": "x".repeat(3_000_000)});
    let (stage, mut pipes) = Stage::stdio(of_state(&state), options).await;
    pipes.send(&request(1, "initialize", handshake())).await;
    // Long enough for a slow machine: a reader that comes back too early gets the whole answer.
    tokio::time::sleep(Duration::from_secs(4)).await;
    // What was written before is still there, and then the end.
    while pipes.line().await.is_some() {}
    stage.finish().await;
}
