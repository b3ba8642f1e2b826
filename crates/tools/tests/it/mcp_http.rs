//! `mcp` over HTTP: both eras, sessions that end, tokens, and servers that misbehave.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "helpers of tests stand outside of them"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{
    ActionFailure, Runtimes, TokenError, TokenSource, ToolLimits, ToolTask,
};
use proofhouse_wire::trace::{Span, TraceScope};
use serde_json::{Value, json};

use crate::mcp_support::{self, *};
use crate::support::{Reply, Server, json_reply, reply};

fn at(server: &Server, more: &str) -> ToolTask {
    at_with(server, more, limits())
}

fn at_with(server: &Server, more: &str, limits: ToolLimits) -> ToolTask {
    let port = server.port;
    task_with(
        tool(&format!(
            "mcp:\n  transport: streamable_http\n  url: http://127.0.0.1:{port}/mcp\n{more}"
        )),
        limits,
    )
}

/// The JSON of a request's body.
fn body(request: &str) -> Value {
    let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_default()
}

fn header<'r>(request: &'r str, name: &str) -> Option<&'r str> {
    let head = request.split_once("\r\n\r\n")?.0;
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(": ")?;
        found.eq_ignore_ascii_case(name).then_some(value)
    })
}

fn result(request: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

fn text(request: &Value, text: &str) -> Value {
    result(
        request,
        json!({"content": [{"type": "text", "text": text}]}),
    )
}

/// An answer as one event of a stream that ends.
fn event(answer: &Value) -> Reply {
    reply(
        "200 OK",
        "content-type: text/event-stream\r\n",
        format!("event: message\ndata: {answer}\n\n"),
    )
}

fn listed(request: &Value) -> Value {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let tools = json!([
        {"name": "act", "inputSchema": {"type": "object", "properties": {"region": region}}},
        {"name": "other", "inputSchema": {"type": "object"}},
    ]);
    let (ttl, scope) = (60_000, "public");
    result(
        request,
        json!({"tools": tools, "resultType": "complete", "ttlMs": ttl, "cacheScope": scope}),
    )
}

/// A server of the legacy era with sessions `s1`, `s2`, and so on; calls are answered by `call`.
async fn legacy(
    call: impl Fn(usize, &str, &Value) -> Reply + Send + Sync + 'static,
) -> (Server, Arc<AtomicUsize>) {
    let sessions = Arc::new(AtomicUsize::new(0));
    let made = Arc::clone(&sessions);
    let calls = AtomicUsize::new(0);
    let server = Server::start(move |_, request| {
        let message = body(request);
        if request.starts_with("GET") {
            return reply("405 Method Not Allowed", "", "");
        }
        if request.starts_with("DELETE") {
            return reply("200 OK", "", "");
        }
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" => reply("400 Bad Request", "", "no session"),
            "initialize" => {
                let number = made.fetch_add(1, Ordering::SeqCst) + 1;
                let answer = result(
                    &message,
                    json!({
                        "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                        "serverInfo": {"name": "s", "version": "1"},
                    }),
                );
                let headers =
                    format!("content-type: application/json\r\nmcp-session-id: s{number}\r\n");
                reply("200 OK", &headers, answer.to_string())
            }
            "tools/list" => event(&listed(&message)),
            "tools/call" => call(calls.fetch_add(1, Ordering::SeqCst), request, &message),
            _ => reply("202 Accepted", "", ""),
        }
    })
    .await;
    (server, sessions)
}

async fn modern(call: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Server {
    Server::start(move |_, request| {
        let message = body(request);
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" => json_reply(&result(
                &message,
                json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                    "ttlMs": 0, "cacheScope": "private",
                }),
            )),
            "tools/list" => json_reply(&listed(&message)),
            "tools/call" => call(request, &message),
            _ => reply("404 Not Found", "", ""),
        }
    })
    .await
}

#[tokio::test]
async fn a_session_of_the_legacy_era() {
    let (server, _) = legacy(|_, _, message| event(&text(message, "done"))).await;
    let task = at(&server, "  headers: {X-Region: \"{settings.region}\"}\n");
    assert_eq!(value(&task, "act", json!({})).await, "done");
    end(task).await;
    let seen = server.seen();
    let methods: Vec<Value> = seen
        .iter()
        .map(|request| body(request)["method"].clone())
        .collect();
    let position = |method: &str| methods.iter().position(|known| known == method).unwrap();
    assert_eq!(position("server/discover"), 0);
    let initialize = &seen[position("initialize")];
    assert_eq!(body(initialize)["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(body(initialize)["params"]["capabilities"], json!({}));
    let call = &seen[position("tools/call")];
    assert_eq!(header(call, "mcp-session-id"), Some("s1"));
    assert_eq!(header(call, "mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(header(call, "x-region"), Some("north"));
    assert!(
        seen.iter().any(|request| request.starts_with("DELETE")),
        "{seen:#?}"
    );
}

#[tokio::test]
async fn a_call_of_the_modern_era() {
    let server = modern(|_, message| match message["params"]["inputResponses"] {
        Value::Null => json_reply(&result(
            message,
            json!({
                "resultType": "input_required", "requestState": "s",
                "inputRequests": {"user": {"method": "elicitation/create", "params": {
                    "mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}},
                }}},
            }),
        )),
        ref answers => event(&text(message, &answers.to_string())),
    })
    .await;
    let task = at(&server, "");
    let said = value(&task, "act", json!({"region": "süd"})).await;
    assert_eq!(said, r#"{"user":{"action":"decline"}}"#);
    end(task).await;
    let seen = server.seen();
    assert!(
        seen.iter().all(|request| request.starts_with("POST")),
        "{seen:#?}"
    );
    let last = seen.last().unwrap();
    assert_eq!(header(last, "mcp-method"), Some("tools/call"));
    assert_eq!(header(last, "mcp-name"), Some("act"));
    assert_eq!(
        header(last, "mcp-param-region"),
        Some("=?base64?c8O8ZA==?=")
    );
    assert_eq!(header(last, "mcp-protocol-version"), Some("2026-07-28"));
    let params = &body(last)["params"];
    assert_eq!(params["requestState"], "s");
    let meta = &params["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
    );
}

/// What a call is for is said in the call itself, and in a header for those on the way, in both eras.
#[tokio::test]
async fn a_server_is_told_what_a_call_is_for() {
    const SAID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let modern = modern(|_, message| event(&text(message, "done"))).await;
    let (legacy, _) = legacy(|_, _, message| event(&text(message, "done"))).await;
    for server in [modern, legacy] {
        let task = at(&server, "");
        let scope = TraceScope::below(Span::none(), SAID.parse().ok());
        let done = scope.run(value(&task, "act", json!({}))).await;
        assert_eq!(done, "done");
        assert_eq!(value(&task, "act", json!({})).await, "done");
        end(task).await;
        let seen = server.seen();
        let calls = seen
            .iter()
            .filter(|request| body(request)["method"] == "tools/call");
        let calls: Vec<_> = calls.collect();
        let [told, untold] = calls[..] else {
            panic!("{seen:#?}");
        };
        assert_eq!(body(told)["params"]["_meta"]["traceparent"], SAID);
        assert_eq!(header(told, "traceparent"), Some(SAID));
        assert_eq!(body(untold)["params"]["_meta"]["traceparent"], Value::Null);
        assert_eq!(header(untold, "traceparent"), None);
    }
}

#[tokio::test]
async fn news_of_the_modern_era_is_asked_for() {
    let lists = AtomicUsize::new(0);
    let server = Server::start(move |_, request| {
        let message = body(request);
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" => json_reply(&result(
                &message,
                json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {"listChanged": true}}, "ttlMs": 60_000, "cacheScope": "public",
                }),
            )),
            "tools/list" => match lists.fetch_add(1, Ordering::SeqCst) {
                0 => json_reply(&listed(&message)),
                _ => json_reply(&result(
                    &message,
                    json!({"tools": [{"name": "grown", "inputSchema": {"type": "object"}}]}),
                )),
            },
            "subscriptions/listen" => {
                let meta = json!({"io.modelcontextprotocol/subscriptionId": message["id"]});
                let asked = &message["params"]["notifications"];
                let said = [
                    json!({
                        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                        "params": {"notifications": asked, "_meta": meta},
                    }),
                    json!({
                        "jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                        "params": {"_meta": meta},
                    }),
                ];
                let events = said.map(|said| format!("data: {said}\n\n")).concat();
                reply("200 OK", "content-type: text/event-stream\r\n", events)
            }
            _ => reply("404 Not Found", "", ""),
        }
    })
    .await;
    let task = at(&server, "");
    let mut seen = names(&task).await;
    for _ in 0..100 {
        if seen == ["grown"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        seen = names(&task).await;
    }
    assert_eq!(seen, ["grown"]);
    end(task).await;
}

#[tokio::test]
async fn a_session_that_ended_is_begun_again() {
    let (server, sessions) =
        legacy(
            |_, request, message| match header(request, "mcp-session-id") {
                Some("s1") => reply("404 Not Found", "", ""),
                _ => json_reply(&text(message, "done")),
            },
        )
        .await;
    let task = at(&server, "");
    assert_eq!(value(&task, "act", json!({})).await, "done");
    assert_eq!(value(&task, "act", json!({})).await, "done");
    assert_eq!(sessions.load(Ordering::SeqCst), 2);
    end(task).await;
}

#[tokio::test]
async fn a_session_that_always_ends_is_begun_again_once() {
    let (server, sessions) = legacy(|_, _, _| reply("404 Not Found", "", "")).await;
    let task = at(&server, "");
    let error = error(&task, "act", json!({})).await;
    assert_eq!(error.failure, ActionFailure::Broken, "{error}");
    assert!(error.is_recoverable() && !error.outcome_unknown);
    assert_eq!(sessions.load(Ordering::SeqCst), 2);
    end(task).await;
}

#[tokio::test]
async fn what_may_have_happened_is_not_repeated() {
    let cut = |_: usize, _: &str, message: &Value| {
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        match message["params"]["name"].as_str() {
            Some("act") => Reply::Close,
            _ => event(&log),
        }
    };
    let (server, _) = legacy(cut).await;
    let task = at(&server, "");
    for tool in ["act", "other"] {
        let error = error(&task, tool, json!({})).await;
        assert_eq!(error.failure, ActionFailure::Broken, "{tool}: {error}");
        assert!(error.outcome_unknown && error.is_recoverable());
    }
    end(task).await;
    let calls = server.seen();
    let calls = calls
        .iter()
        .filter(|request| body(request)["method"] == "tools/call");
    assert_eq!(calls.count(), 2);
}

#[tokio::test]
async fn slow_and_endless_answers_end_in_time_and_no_tool_is_lost() {
    let limits = ToolLimits {
        mcp_call: Duration::from_millis(1500),
        ..limits()
    };
    let (server, _) = legacy(|_, _, message| match message["params"]["name"].as_str() {
        Some("act") => Reply::Silence,
        _ => Reply::EndlessEvents(
            "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n",
        ),
    })
    .await;
    let task = at_with(&server, "", limits);
    for tool in ["act", "other"] {
        let error = error(&task, tool, json!({})).await;
        assert_eq!(error.failure, ActionFailure::Timeout, "{tool}: {error}");
        assert!(error.outcome_unknown && error.is_recoverable(), "{tool}");
    }
    assert_eq!(names(&task).await, ["act", "other"]);
    end(task).await;
}

#[tokio::test]
async fn answers_that_are_none() {
    let (server, _) = legacy(|number, _, message| match number {
        0 => reply(
            "500 Internal Server Error",
            "",
            "the key sk-secret/1 is wrong",
        ),
        1 => reply(
            "307 Temporary Redirect",
            "location: http://127.0.0.1:1/\r\n",
            "",
        ),
        2 => reply("200 OK", "content-type: text/html\r\n", "<html>"),
        3 => json_reply(
            &json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -1, "message": "no"}}),
        ),
        4 => reply(
            "400 Bad Request",
            "content-type: application/json\r\n",
            json!({
                "jsonrpc": "2.0", "id": null, "error": {"code": -32602, "message": "odd"},
            })
            .to_string(),
        ),
        5 => reply(
            "200 OK",
            "content-type: application/json\r\n",
            "x".repeat(11 << 20),
        ),
        6 => reply(
            "200 OK",
            "content-type: text/event-stream\r\n",
            format!("data: {}\n\n", "x".repeat(11 << 20)),
        ),
        _ => json_reply(&text(message, "at last")),
    })
    .await;
    let task = at(&server, "");
    for expected in [
        ActionFailure::HttpStatus,
        ActionFailure::HttpStatus,
        ActionFailure::Response,
        ActionFailure::Tool,
        ActionFailure::Tool,
        ActionFailure::TooLarge,
        ActionFailure::Broken,
    ] {
        let error = error(&task, "act", json!({})).await;
        assert_eq!(error.failure, expected, "{error}");
        assert!(error.is_recoverable());
        assert!(
            !error.to_json().to_string().contains("sk-secret"),
            "{error:?}"
        );
    }
    assert_eq!(value(&task, "act", json!({})).await, "at last");
    end(task).await;
}

#[tokio::test]
async fn hosts_that_are_closed_or_not_there_end_the_task() {
    let (server, _) = legacy(|_, _, message| json_reply(&text(message, "x"))).await;
    let url = format!(
        "mcp: {{transport: sse, url: \"http://127.0.0.1:{}/\"}}",
        server.port
    );
    let runtimes = Runtimes::new(&limits(), EgressPolicy::default()).unwrap();
    let task = ToolTask::new(tool(&url), environment(), runtimes, limits());
    let denied = error(&task, "act", json!({})).await;
    assert_eq!(denied.failure, ActionFailure::EgressDenied, "{denied}");
    assert!(server.seen().is_empty());
    let nobody = "mcp: {transport: sse, url: \"http://127.0.0.1:1/{settings.api_key}\"}";
    let nobody = error(&mcp_support::task(tool(nobody)), "act", json!({})).await;
    assert_eq!(nobody.failure, ActionFailure::Unreachable, "{nobody}");
    assert!(!nobody.is_recoverable());
    assert!(
        !nobody.to_json().to_string().contains("sk-secret"),
        "{nobody:?}"
    );
}

#[tokio::test]
async fn a_server_that_is_silent_at_the_start() {
    let limits = ToolLimits {
        mcp_start: Duration::from_secs(8),
        ..limits()
    };
    let silent = Server::start(|_, _| Reply::Silence).await;
    let error = error(&at_with(&silent, "", limits), "act", json!({})).await;
    assert_eq!(error.failure, ActionFailure::Timeout, "{error}");
    let asked: Vec<Value> = silent
        .seen()
        .iter()
        .map(|request| body(request)["method"].clone())
        .collect();
    // Silence says that the server is of the legacy era.
    assert_eq!(asked, ["server/discover", "initialize"]);
}

/// Gives out `token-1`, then `token-2`, and so on.
#[derive(Default)]
struct Counting(AtomicUsize);

impl TokenSource for Counting {
    fn token<'a>(&'a self, _: &'a str, fresh: bool) -> BoxFuture<'a, Result<String, TokenError>> {
        let before = self.0.fetch_add(usize::from(fresh), Ordering::SeqCst);
        Box::pin(async move { Ok(format!("token-{}", before + usize::from(fresh) + 1)) })
    }
}

#[tokio::test]
async fn a_refused_token_is_replaced_once_and_never_shown() {
    let accepted = |request: &str, token: &str| {
        header(request, "authorization") == Some(format!("Bearer {token}").as_str())
    };
    let (server, _) = legacy(move |_, request, message| {
        match message["params"]["name"].as_str() {
            // From the second call on the first token is old.
            Some("act") if accepted(request, "token-2") => {
                json_reply(&text(message, "used token-2"))
            }
            _ => reply("401 Unauthorized", "", "token-2 and token-1 are bad"),
        }
    })
    .await;
    let port = server.port;
    let tool = tool(&format!(
        "mcp:\n  transport: streamable_http\n  url: http://127.0.0.1:{port}/mcp\n  headers: {{Authorization: \
         \"Bearer {{auth.bank()}}\"}}\n"
    ));
    let runtimes = Runtimes::new(&limits(), loopback()).unwrap();
    let environment = environment().with_tokens(Arc::new(Counting::default()));
    let task = ToolTask::new(tool, environment, runtimes, limits());
    assert_eq!(value(&task, "act", json!({})).await, "used [redacted]");
    let refused = error(&task, "other", json!({})).await;
    assert_eq!(refused.detail["status"], 401);
    assert!(
        !refused.to_json().to_string().contains("token-"),
        "{refused:?}"
    );
    end(task).await;
}

#[tokio::test]
async fn the_old_transport_is_tried_when_nobody_posts() {
    // The stream names an address elsewhere, which must get nothing.
    let server = Server::start(|_, request| {
        if request.starts_with("GET") {
            reply(
                "200 OK",
                "content-type: text/event-stream\r\n",
                "event: endpoint\ndata: http://127.0.0.1:1/steal\n\n",
            )
        } else {
            reply("405 Method Not Allowed", "", "")
        }
    })
    .await;
    let url = format!(
        "mcp: {{transport: sse, url: \"http://127.0.0.1:{}/sse\"}}",
        server.port
    );
    let error = error(&mcp_support::task(tool(&url)), "act", json!({})).await;
    assert_eq!(error.failure, ActionFailure::Response, "{error}");
    assert!(error.message.contains("not its own"), "{error}");
}

/// Who cannot be connected to is `unreachable`, also where starting has no more time than an outage.
#[tokio::test]
async fn a_server_that_is_away_is_unreachable_when_its_time_is_up() {
    let nobody = proofhouse_test_support::loopback::Vacant::new();
    let equal = ToolLimits {
        mcp_start: Duration::from_secs(2),
        outage: Duration::from_secs(2),
        ..limits()
    };
    for transport in ["streamable_http", "sse"] {
        let url = format!("http://{}/mcp", nobody.address());
        let block = tool(&format!("mcp:\n  transport: {transport}\n  url: {url}\n"));
        let error = mcp_support::error(&task_with(block, equal.clone()), "act", json!({})).await;
        assert_eq!(error.failure, ActionFailure::Unreachable, "{error}");
    }
}
