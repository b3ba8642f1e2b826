//! `mcp` with servers that answer calls with tasks (2026-07-28): the official SDK's, and some that misbehave.

#![allow(
    clippy::needless_pass_by_value,
    reason = "helpers of tests take values as they are written"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_tools::runtime::{ActionFailure, ToolLimits, ToolTask};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

use crate::mcp_support::server::DIARY;
use crate::mcp_support::task_server::over_http;
use crate::mcp_support::*;
use crate::support::{Reply, Server, json_reply, reply};

fn at(url: &str, limits: ToolLimits) -> ToolTask {
    let block = format!("mcp:\n  transport: streamable_http\n  url: {url}\n");
    task_with(tool(&block), limits)
}

/// Limits for what never ends.
fn short() -> ToolLimits {
    ToolLimits {
        mcp_call: Duration::from_millis(1500),
        ..limits()
    }
}

/// Waits until something stands in the diary of a server.
async fn noted(diary: &Mutex<Vec<String>>, what: &str) {
    let looking = async {
        while !diary.lock().unwrap().iter().any(|noted| noted == what) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(30), looking).await;
    assert!(found.is_ok(), "no `{what}` in {:?}", diary.lock().unwrap());
}

fn count(diary: &Mutex<Vec<String>>, what: &str) -> usize {
    let diary = diary.lock().unwrap();
    diary.iter().filter(|noted| *noted == what).count()
}

#[tokio::test]
async fn the_result_of_a_task_is_the_result_of_its_call() {
    let (url, diary) = over_http().await;
    let http = at(&url, limits());
    let stdio = task(acting("tasks", ""));
    for task in [http, stdio] {
        assert_eq!(value(&task, "now", json!({})).await, "at once");
        assert_eq!(value(&task, "steps", json!({})).await, "done in steps");
        let answers = value(&task, "asks", json!({})).await;
        assert_eq!(answers, r#"[{"action":"decline"},{"roots":[]}]"#);
        let mistake = error(&task, "mistake", json!({})).await;
        assert_eq!(mistake.failure, ActionFailure::Tool);
        assert_eq!(mistake.message, "no luck with [redacted]");
        let failed = error(&task, "fails", json!({})).await;
        assert_eq!(failed.failure, ActionFailure::Tool);
        assert!(
            failed.message.ends_with("the disk is full of [redacted]"),
            "{failed}"
        );
        assert_eq!(failed.detail["code"], -32603);
        let stopped = error(&task, "stops", json!({})).await;
        assert_eq!(stopped.failure, ActionFailure::Tool, "{stopped}");
        assert!(stopped.message.contains("cancelled"), "{stopped}");
        end(task).await;
    }
    // Nothing that was over is cancelled, and what was asked twice is answered once.
    assert_eq!(count(&diary, "cancelled"), 0);
    assert_eq!(count(&diary, "answered"), 2);
    assert_eq!(count(&diary, "called"), 6);
}

#[tokio::test]
async fn a_task_is_cancelled_when_its_time_is_over() {
    let (url, diary) = over_http().await;
    let task = at(&url, short());
    let late = error(&task, "hangs", json!({})).await;
    assert_eq!(late.failure, ActionFailure::Timeout, "{late}");
    assert!(late.outcome_unknown);
    noted(&diary, "cancelled").await;
    assert_eq!(value(&task, "now", json!({})).await, "at once");
    end(task).await;
}

#[tokio::test]
async fn a_task_is_cancelled_with_its_call() {
    let (url, diary) = over_http().await;
    let task = at(&url, limits());
    let cancel = CancellationToken::new();
    let called = task.invoke("hangs", Default::default(), json!({}), cancel.clone());
    let leaving = async {
        noted(&diary, "asked").await;
        cancel.cancel();
    };
    let (called, ()) = tokio::join!(called, leaving);
    assert_eq!(called.unwrap_err().failure, ActionFailure::Cancelled);
    noted(&diary, "cancelled").await;
    end(task).await;
}

#[tokio::test]
async fn a_task_is_cancelled_before_its_server_is_left() {
    let diary = tempfile::NamedTempFile::new().unwrap();
    let path = json!(diary.path().display().to_string());
    let more = format!("  env: {{{DIARY}: {path}, {ROLE}: tasks}}");
    let block = block("tasks", "  ");
    let lines = block.lines().filter(|line| !line.contains("env:"));
    let lines: Vec<&str> = lines.collect();
    let task = task(tool(&format!("mcp:\n{}\n{more}", lines.join("\n"))));
    #[expect(clippy::disallowed_methods, reason = "the test wrote it")]
    let notes = || std::fs::read_to_string(diary.path()).unwrap();
    let called = task.invoke(
        "hangs",
        Default::default(),
        json!({}),
        CancellationToken::new(),
    );
    let leaving = async {
        while !notes().contains("asked") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        end(task.clone()).await;
    };
    let (called, ()) = tokio::join!(called, leaving);
    assert!(called.is_err());
    // The server has ended; so it heard of it before.
    let notes = notes();
    let notes: Vec<&str> = notes.lines().collect();
    assert_eq!(notes, ["started", "called", "asked", "cancelled", "ended"]);
}

#[tokio::test]
async fn what_cannot_be_answered_ends_the_call() {
    let (url, diary) = over_http().await;
    let task = at(&url, limits());
    let samples = error(&task, "samples", json!({})).await;
    assert_eq!(samples.failure, ActionFailure::Response, "{samples}");
    assert!(samples.message.contains("model"), "{samples}");
    noted(&diary, "cancelled").await;
    diary.lock().unwrap().clear();
    let nags = error(&task, "nags", json!({})).await;
    assert!(nags.message.contains("declined 5 times"), "{nags}");
    noted(&diary, "cancelled").await;
    assert_eq!(count(&diary, "answered"), 5);
    end(task).await;
}

/// The message of a request over HTTP.
fn message(request: &str) -> Value {
    let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_default()
}

fn task_state(status: &str, more: Value) -> Value {
    let mut state = json!({
        "taskId": "t 1", "status": status, "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z",
        "ttlMs": null, "pollIntervalMs": 0, "resultType": "complete",
    });
    for (key, value) in more.as_object().unwrap() {
        state[key] = value.clone();
    }
    state
}

/// A server of its own making: a call is always a task, and this answers what is asked about it.
async fn odd(get: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Server {
    Server::start(move |_, request| {
        let message = message(request);
        let result = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
            }),
            "tools/list" => json!({
                "tools": [{"name": "act", "inputSchema": {"type": "object"}}],
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            }),
            "tools/call" => task_state("working", json!({"resultType": "task"})),
            "tasks/get" => get(&message),
            "tasks/cancel" | "tasks/update" => json!({"resultType": "complete"}),
            _ => return reply("404 Not Found", "", ""),
        };
        match result {
            Value::Null => reply("404 Not Found", "", "no such session"),
            Value::Bool(_) => Reply::Close,
            result => json_reply(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result})),
        }
    })
    .await
}

fn methods(server: &Server, method: &str) -> usize {
    let seen = server.seen();
    let of_method = seen
        .iter()
        .filter(|request| message(request)["method"] == method);
    of_method.count()
}

#[tokio::test]
async fn odd_tasks_end_in_a_clear_error_and_are_called_once() {
    let completed = |result: Value| task_state("completed", json!({"result": result}));
    for (told, expected) in [
        (Value::Null, "is not known"),
        (
            task_state("working", json!({"taskId": "other"})),
            "another task",
        ),
        (completed(json!({"tools": []})), "not that of a tool"),
        (
            completed(json!({"resultType": "task", "taskId": "t 2"})),
            "not that of a tool",
        ),
        (task_state("completed", json!({})), "is not known"),
        (task_state("paused", json!({})), "is not known"),
        (
            task_state("failed", json!({"error": {"code": "x"}})),
            "says no more",
        ),
    ] {
        let answer = told.clone();
        let server = odd(move |_| answer.clone()).await;
        let task = at(&format!("http://127.0.0.1:{}/mcp", server.port), limits());
        let odd = error(&task, "act", json!({})).await;
        assert!(odd.message.contains(expected), "{told}: {odd}");
        end(task).await;
        assert_eq!(methods(&server, "tools/call"), 1, "{told}");
    }
}

#[tokio::test]
async fn odd_parts_of_a_result_do_not_cost_the_others() {
    let parts = json!([{"type": "text", "text": "a", "annotations": 7}, {"type": "hologram"}]);
    let result = json!({"content": parts, "isError": "no"});
    let server = odd(move |_| task_state("completed", json!({"result": result.clone()}))).await;
    let task = at(&format!("http://127.0.0.1:{}/mcp", server.port), limits());
    let said = value(&task, "act", json!({})).await;
    assert_eq!(said[0]["text"], "a");
    assert_eq!(said[1]["text"], r#"{"type":"hologram"}"#);
    end(task).await;
    let seen = server.seen();
    let get = seen
        .iter()
        .find(|request| message(request)["method"] == "tasks/get");
    let get = get.unwrap().to_lowercase();
    assert!(get.contains("\r\nmcp-name: t 1\r\n"), "{get}");
    assert!(get.contains("\r\nmcp-method: tasks/get\r\n"), "{get}");
}

#[tokio::test]
async fn a_question_that_got_lost_is_asked_again() {
    let questions = Arc::new(Mutex::new(0));
    let asked = Arc::clone(&questions);
    let server = odd(move |_| {
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        match *asked {
            1..=3 => json!(true),
            _ => {
                let content = json!([{"type": "text", "text": "after all"}]);
                task_state("completed", json!({"result": {"content": content}}))
            }
        }
    })
    .await;
    let task = at(&format!("http://127.0.0.1:{}/mcp", server.port), limits());
    assert_eq!(value(&task, "act", json!({})).await, "after all");
    end(task).await;
    assert_eq!(*questions.lock().unwrap(), 4);
    assert_eq!(methods(&server, "tools/call"), 1);
}

#[tokio::test]
async fn servers_of_the_legacy_era_are_not_offered_tasks() {
    let server = Server::start(move |_, request| {
        let message = message(request);
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"},
            }),
            "tools/list" => json!({"tools": [{"name": "act", "inputSchema": {"type": "object"}}]}),
            "tools/call" => task_state("working", json!({"resultType": "task"})),
            "server/discover" => return reply("400 Bad Request", "", ""),
            _ => return reply("202 Accepted", "", ""),
        };
        json_reply(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    })
    .await;
    let task = at(&format!("http://127.0.0.1:{}/mcp", server.port), limits());
    let refused = error(&task, "act", json!({})).await;
    assert!(refused.message.contains("not asked for"), "{refused}");
    end(task).await;
    let seen = server.seen();
    let offered = |method: &str| {
        let mut seen = seen.iter().map(|request| message(request));
        let found = seen.find(|message| message["method"] == method);
        found.unwrap()["params"].to_string()
    };
    assert!(!offered("initialize").contains("tasks"));
    assert!(offered("server/discover").contains("io.modelcontextprotocol/tasks"));
    assert_eq!(methods(&server, "tasks/get"), 0);
}
