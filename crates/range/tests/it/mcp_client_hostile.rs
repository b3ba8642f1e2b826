//! The `mcp_client` driver against servers that break the protocol in every way.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

use futures_util::future::join_all;
use proofhouse_wire::StatusCode;
use proofhouse_wire::server::Reply;
use serde_json::json;

use crate::client_support::{
    Arrived, Scripted,
    mcp::{DOCUMENT, discovered, legacy, method, result},
    play, play_impatiently, stream, verdict, warned,
};

/// What is warned of when a peer says nothing.
const SILENCE: &str = "no answer in time";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_server_answers_the_run_ends_in_time() {
    type Answer = fn(&Arrived) -> Reply;
    fn lines(text: &'static str) -> Reply {
        stream(move |writer| async move { while writer.write(text).await.is_ok() {} })
    }
    let cases: [(&str, Answer, &str); 11] = [
        (
            "garbage",
            |_| Reply::json(StatusCode::OK, "{]"),
            "the server sent garbage",
        ),
        (
            "a list",
            |_| Reply::json(StatusCode::OK, "[1,2,{}]"),
            "the server sent garbage",
        ),
        (
            "a wrong id",
            |_| Reply::json(StatusCode::OK, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#),
            "never made, id 99",
        ),
        (
            "a text id",
            |a| {
                let id = a.body["id"].to_string();
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
                Reply::json(StatusCode::OK, answer.to_string())
            },
            "never made",
        ),
        (
            "two answers",
            |a| {
                let answer = json!({"jsonrpc": "2.0", "id": a.body["id"], "result": {}});
                Reply::json(StatusCode::OK, json!([answer, answer]).to_string())
            },
            "was answered again",
        ),
        (
            "a flood",
            |_| lines("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"),
            "too many messages",
        ),
        (
            "a huge event",
            |_| {
                stream(
                    |writer| async move { while writer.write("x".repeat(50_000)).await.is_ok() {} },
                )
            },
            "an event of more than",
        ),
        (
            "a huge body",
            |_| Reply::json(StatusCode::OK, "x".repeat(2 << 20)),
            "more than",
        ),
        (
            "silence",
            |_| stream(|writer| async move { writer.closed().await }),
            SILENCE,
        ),
        ("a cut", |_| Reply::cut(), "`tools/list`: "),
        (
            "input for ever",
            |a| {
                result(
                    a,
                    &json!({"resultType": "input_required", "requestState": "x"}),
                )
            },
            "asks back for ever",
        ),
    ];
    let runs = cases.into_iter().flat_map(|(name, answer, warning)| {
        [false, true].map(|modern| async move {
            let server = Scripted::start(move |_, arrived| match method(arrived) {
                "server/discover" if modern => discovered(arrived),
                "tools/list" if name == "input for ever" => legacy(arrived),
                "tools/list" | "tools/call" => answer(arrived),
                _ => legacy(arrived),
            })
            .await;
            let report = if warning == SILENCE {
                play_impatiently(DOCUMENT, &server.url).await
            } else {
                play(DOCUMENT, &server.url).await
            };
            let took = report.duration;
            assert!(
                took < std::time::Duration::from_secs(30),
                "{name}: {took:?}"
            );
            assert!(report.errors.is_empty(), "{name}: {:?}", report.errors);
            assert_eq!(verdict(&report), "NotExploited", "{name}");
            if name != "input for ever" || modern {
                assert!(warned(&report, warning), "{name}: {:?}", report.warnings);
            }
            assert!(server.arrived().len() < 100, "{name}");
        })
    });
    join_all(runs).await;
}

#[tokio::test]
async fn a_flood_of_questions_is_answered_within_bounds() {
    let server = Scripted::start(|_, arrived| match method(arrived) {
        "tools/call" => stream(|writer| async move {
            let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
            while writer.write(format!("data: {ask}\n\n")).await.is_ok() {}
        }),
        "response" => stream(|writer| async move { writer.closed().await }),
        _ => legacy(arrived),
    })
    .await;
    let report = play(DOCUMENT, &server.url).await;
    assert!(warned(&report, "requests wait for an answer already"));
    assert!(report.duration < std::time::Duration::from_secs(30));
}
