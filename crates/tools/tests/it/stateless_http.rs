//! `stateless_http` against real servers on the loopback address, well-behaved and not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofhouse_test_support::loopback::Vacant;
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{
    ActionError, ActionFailure, ActionResult, Runtimes, TokenError, TokenSource, ToolLimits,
    ToolTask,
};
use serde_json::{Value, json};

use crate::support::*;

/// A call with these fields beside method and URL.
async fn call(
    server: &Server,
    method: &str,
    path: &str,
    fields: &str,
    arguments: Value,
) -> Result<ActionResult, ActionError> {
    let url = format!("http://127.0.0.1:{}{path}", server.port);
    let tool = tool(&format!(
        "stateless_http: {{method: {method}, url: \"{url}\"{fields}}}"
    ));
    act(&task(tool), arguments).await
}

async fn get(server: &Server) -> Result<ActionResult, ActionError> {
    call(server, "GET", "/", "", json!({})).await
}

#[tokio::test]
async fn five_methods_with_headers_and_bodies() {
    let server = Server::start(|_, _| json_reply(&json!({"ok": true}))).await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let fields = ", headers: {X-Key: \"k {settings.api_key}\"}, body: {n: \"{x}\", t: \"<{x}>\", a: \"{context.agent.name}\"}";
        let outcome = call(
            &server,
            method,
            "/a/{x}?q={x}",
            fields,
            json!({"x": [1, 2]}),
        )
        .await
        .unwrap();
        assert_eq!(outcome.value, json!({"ok": true}));
        let request = server.seen().pop().unwrap();
        assert!(
            request.starts_with(&format!(
                "{method} /a/%5B1%2C2%5D?q=%5B1%2C2%5D HTTP/1.1\r\n"
            )),
            "{request}"
        );
        assert!(
            request.contains("\r\nx-key: k sk-secret/1\r\n"),
            "{request}"
        );
        assert!(
            request.contains("\r\ncontent-type: application/json\r\n"),
            "{request}"
        );
        assert!(
            request.ends_with("\r\n\r\n{\"n\":[1,2],\"t\":\"<[1,2]>\",\"a\":\"a\"}"),
            "{request}"
        );
    }
}

#[tokio::test]
async fn response_paths_select() {
    let server = Server::start(|_, _| json_reply(&json!({"items": [{"id": 1}, {"id": 2}]}))).await;
    let select = |path: &'static str| {
        let fields = format!(", response_path: \"{path}\"");
        let server = &server;
        async move { call(server, "GET", "/", &fields, json!({})).await }
    };
    assert_eq!(select("$.items[0].id").await.unwrap().value, json!(1));
    assert_eq!(select("$.items[*].id").await.unwrap().value, json!([1, 2]));
    let error = select("$.nothing").await.unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (ActionFailure::NoMatch, true)
    );
}

#[tokio::test]
async fn what_is_not_json_is_text_or_bytes() {
    for (headers, body, path, expected) in [
        (
            "content-type: text/plain\r\n",
            &b"{\"a\":1}"[..],
            "",
            Ok(json!("{\"a\":1}")),
        ),
        (
            "content-type: text/plain\r\n",
            b"{\"a\":1}",
            ", response_path: $.a",
            Ok(json!(1)),
        ),
        ("", b"{\"a\":1}", "", Ok(json!({"a": 1}))),
        ("", b"plain", "", Ok(json!("plain"))),
        (
            "content-type: application/problem+json; charset=utf-8\r\n",
            b"[1]",
            "",
            Ok(json!([1])),
        ),
        (
            "content-type: application/json\r\n",
            b"",
            "",
            Ok(Value::Null),
        ),
        (
            "content-type: image/png\r\n",
            b"\xff\xfe",
            "",
            Ok(json!({"content_type": "image/png", "base64": "//4="})),
        ),
        (
            "content-type: application/json\r\n",
            b"<html>",
            "",
            Err(ActionFailure::Response),
        ),
        (
            "content-type: text/plain\r\n",
            b"plain",
            ", response_path: $.a",
            Err(ActionFailure::Response),
        ),
        (
            "content-encoding: gzip\r\n",
            b"x",
            "",
            Err(ActionFailure::Response),
        ),
    ] {
        let server = Server::start(move |_, _| reply("200 OK", headers, body)).await;
        let result = call(&server, "GET", "/", path, json!({})).await;
        let result = result
            .map(|outcome| outcome.value)
            .map_err(|error| error.failure);
        assert_eq!(result, expected, "{headers}");
    }
}

#[tokio::test]
async fn statuses_are_told_to_the_model() {
    for status in ["400 Bad Request", "404 Not Found", "500 Oops"] {
        let server = Server::start(move |_, _| reply(status, "", "why: sk-secret/1")).await;
        let error = get(&server).await.unwrap_err();
        assert!(error.is_recoverable());
        let told = error.to_json();
        assert_eq!(told["error"], "http_status");
        assert_eq!(told["status"].to_string(), status[..3]);
        assert_eq!(told["body"], "why: [redacted]");
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_form_content_type_sends_a_form() {
    let server = Server::start(|_, request| json_reply(&json!({"seen": request}))).await;
    let tool = tool(&format!(
        "stateless_http: {{method: POST, url: \"http://127.0.0.1:{}/\", headers: {{Content-Type: \
         application/x-www-form-urlencoded; charset=utf-8}}, body: {{a: \"{{x}} &\", b: [1, two], c: {{d: 1}}, e: null}}}}",
        server.port
    ));
    act(&task(tool), json!({"x": "ä"})).await.unwrap();
    let request = server.seen().pop().unwrap();
    let body = "a=%C3%A4+%26&b=1&b=two&c=%7B%22d%22%3A1%7D";
    assert!(request.ends_with(&format!("\r\n\r\n{body}")), "{request}");
}

#[tokio::test]
async fn a_closed_port_ends_the_task() {
    let nobody = Vacant::new();
    let port = nobody.address().port();
    let tool = tool(&format!(
        "stateless_http: {{method: GET, url: \"http://127.0.0.1:{port}/{{settings.api_key}}\"}}"
    ));
    let error = act(&task(tool), json!({})).await.unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (ActionFailure::Unreachable, false)
    );
    assert!(
        error.message.contains("cannot connect to 127.0.0.1"),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("sk-secret"), "{error:?}");
}

#[tokio::test]
async fn slow_endless_and_oversized_answers_end() {
    let slow = Server::start(|_, _| Reply::Silence).await;
    let error = get(&slow).await.unwrap_err();
    assert_eq!(
        (error.failure, error.outcome_unknown),
        (ActionFailure::Timeout, false)
    );
    let error = call(&slow, "POST", "/", "", json!({})).await.unwrap_err();
    assert_eq!(
        (error.failure, error.outcome_unknown),
        (ActionFailure::Timeout, true)
    );
    assert!(error.is_recoverable());
    assert_eq!(slow.seen().len(), 2);

    let drip = Server::start(|_, _| Reply::Endless(b"x", Duration::from_millis(20))).await;
    assert_eq!(
        get(&drip).await.unwrap_err().failure,
        ActionFailure::Timeout
    );

    let server = Server::start(|_, _| Reply::Endless(&[b'x'; 4096], Duration::ZERO)).await;
    let small = ToolLimits {
        max_response_bytes: 100_000,
        http: Duration::from_secs(10),
        ..limits()
    };
    let tool = tool(&format!(
        "stateless_http: {{method: GET, url: \"http://127.0.0.1:{}/\"}}",
        server.port
    ));
    let runtimes = Runtimes::new(&small, loopback()).unwrap();
    let error = act(
        &ToolTask::new(tool, environment(), runtimes, small),
        json!({}),
    )
    .await
    .unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (ActionFailure::TooLarge, true)
    );
}

#[tokio::test]
async fn long_results_are_cut_for_the_model() {
    let server = Server::start(|_, _| reply("200 OK", "", "é".repeat(1 << 20))).await;
    let outcome = get(&server).await.unwrap();
    assert!(outcome.truncated);
    assert_eq!(outcome.value.as_str().map(str::len), Some(1 << 20));
}

#[tokio::test]
async fn redirects_stay_within_their_origin() {
    let other = Server::start(|_, _| json_reply(&json!("stolen"))).await;
    let port = other.port;
    let to = |target: String| {
        move |_: usize, request: &str| {
            if request.contains(" /end ") {
                json_reply(&json!("end"))
            } else {
                reply("302 Found", &format!("location: {target}\r\n"), "")
            }
        }
    };
    let server = Server::start(to("/end".to_owned())).await;
    assert_eq!(get(&server).await.unwrap().value, json!("end"));
    let error = call(&server, "POST", "/", "", json!({})).await.unwrap_err();
    assert_eq!(error.detail["status"], 302);

    for target in [
        format!("http://127.0.0.1:{port}/"),
        "http://169.254.169.254/latest".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        let server = Server::start(to(target)).await;
        let error = get(&server).await.unwrap_err();
        assert_eq!(
            (error.failure, error.is_recoverable()),
            (ActionFailure::HttpStatus, true)
        );
    }
    assert!(other.seen().is_empty());

    let circle = Server::start(|_, _| reply("302 Found", "location: /again\r\n", "")).await;
    assert_eq!(
        get(&circle).await.unwrap_err().failure,
        ActionFailure::HttpStatus
    );
    assert_eq!(circle.seen().len(), 4);
}

#[tokio::test]
async fn values_cannot_break_out() {
    let server = Server::start(|_, _| json_reply(&json!(1))).await;
    for value in ["a\r\nX-Evil: 1", "a\nb", "a\rb"] {
        for (path, fields) in [
            ("/{x}", ""),
            ("/?q={x}", ""),
            ("/", ", headers: {X-A: \"{x}\"}"),
        ] {
            let error = call(&server, "GET", path, fields, json!({"x": value}))
                .await
                .unwrap_err();
            assert_eq!(
                (error.failure, error.is_recoverable()),
                (ActionFailure::Arguments, true),
                "{path}"
            );
        }
    }
    for value in ["..", "../admin", "a/../../b", "%2e%2e", "."] {
        let error = call(&server, "GET", "/a/{x}", "", json!({"x": value}))
            .await
            .unwrap_err();
        assert_eq!(error.failure, ActionFailure::Arguments, "{value}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn loopback_is_closed_unless_allowed() {
    let server = Server::start(|_, _| json_reply(&json!(1))).await;
    for host in [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
    ] {
        let tool = tool(&format!(
            "stateless_http: {{method: GET, url: \"http://{host}:{}/\"}}",
            server.port
        ));
        let runtimes = Runtimes::new(&limits(), EgressPolicy::default()).unwrap();
        let task = ToolTask::new(tool, environment(), runtimes, limits());
        let error = act(&task, json!({})).await.unwrap_err();
        assert_eq!(
            (error.failure, error.is_recoverable()),
            (ActionFailure::EgressDenied, false),
            "{host}: {error}"
        );
        assert!(error.message.contains("egress.allow"), "{error}");
    }
    assert!(server.seen().is_empty());
    let tool = tool(&format!(
        "stateless_http: {{method: GET, url: \"http://localhost:{}/\"}}",
        server.port
    ));
    let both = EgressPolicy::allowing(["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]);
    let runtimes = Runtimes::new(&limits(), both).unwrap();
    let task = ToolTask::new(tool, environment(), runtimes, limits());
    assert_eq!(act(&task, json!({})).await.unwrap().value, json!(1));
}

#[tokio::test]
async fn only_what_may_be_repeated_is() {
    for (method, first, expected) in [
        ("GET", "busy", Ok(2)),
        ("PUT", "busy", Ok(2)),
        ("POST", "busy", Err((ActionFailure::HttpStatus, false))),
        ("GET", "close", Ok(2)),
        ("DELETE", "close", Ok(2)),
        ("POST", "close", Err((ActionFailure::Broken, true))),
        ("PATCH", "close", Err((ActionFailure::Broken, true))),
        ("GET", "later", Err((ActionFailure::HttpStatus, false))),
    ] {
        let server = Server::start(move |number, _| match (number, first) {
            (0, "busy") => reply("503 Busy", "retry-after: 0\r\n", ""),
            (0, "later") => reply("503 Busy", "retry-after: 31\r\n", ""),
            (0, _) => Reply::Close,
            _ => json_reply(&json!(1)),
        })
        .await;
        let result = call(&server, method, "/", "", json!({})).await;
        let seen = server.seen().len();
        let result = result
            .map(|_| seen)
            .map_err(|error| (error.failure, error.outcome_unknown));
        assert_eq!(result, expected, "{method} {first}");
        assert!(
            seen == 2 || result.is_err() && seen == 1,
            "{method} {first}: {seen}"
        );
    }
}

struct Tokens(AtomicUsize);

impl TokenSource for Tokens {
    fn token<'a>(
        &'a self,
        provider: &'a str,
        fresh: bool,
    ) -> BoxFuture<'a, Result<String, TokenError>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Ok(format!("{provider}-token-{fresh}")) })
    }
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let server = Server::start(|_, request| {
        if request.contains("bearer google-token-true") {
            reply("200 OK", "", "you sent google-token-true")
        } else {
            reply("401 Unauthorized", "", "google-token-false")
        }
    })
    .await;
    let tokens = Arc::new(Tokens(AtomicUsize::new(0)));
    let run = |header: &str| {
        let execute = format!(
            "stateless_http: {{method: POST, url: \"http://127.0.0.1:{}/\", headers: {{Authorization: \"{header}\"}}}}",
            server.port
        );
        let environment = environment().with_tokens(tokens.clone());
        let runtimes = Runtimes::new(&limits(), loopback()).unwrap();
        ToolTask::new(tool(&execute), environment, runtimes, limits())
    };
    let outcome = act(&run("bearer {auth.google()}"), json!({}))
        .await
        .unwrap();
    assert_eq!(outcome.value, json!("you sent [redacted]"));
    assert_eq!(
        (tokens.0.load(Ordering::SeqCst), server.seen().len()),
        (2, 2)
    );
    let error = act(&run("other {auth.google}"), json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.detail["status"], 401);
    assert_eq!(error.detail["body"], "[redacted]");
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn echoed_secrets_are_taken_out() {
    let server = Server::start(|_, request| {
        json_reply(&json!({"echo": request, "b64": "c2stc2VjcmV0LzE=", "region": "north"}))
    })
    .await;
    let fields = ", headers: {Authorization: \"Bearer {settings.api_key}\"}";
    let outcome = call(
        &server,
        "GET",
        "/?key={settings.api_key}",
        fields,
        json!({}),
    )
    .await
    .unwrap();
    let shown = outcome.value.to_string();
    assert!(
        !shown.contains("sk-secret") && !shown.contains("c2stc2"),
        "{shown}"
    );
    assert!(shown.contains("/?key=[redacted] HTTP"), "{shown}");
    assert!(shown.contains("north"), "{shown}");
}

#[tokio::test]
async fn a_missing_setting_ends_the_task() {
    let tool = tool(
        "stateless_http: {method: GET, url: \"https://h.test/{settings.region}/{settings.api_key}\"}",
    );
    let environment =
        proofhouse_tools::runtime::Environment::new(json!({"region": "x"}), String::new);
    let runtimes = Runtimes::new(&limits(), loopback()).unwrap();
    let error = act(
        &ToolTask::new(tool, environment, runtimes, limits()),
        json!({}),
    )
    .await
    .unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (ActionFailure::Setting, false)
    );
    assert_eq!(error.message, "the setting `api_key` is not configured");
}
