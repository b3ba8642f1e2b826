//! `stateful_session` against a real server: one session per task, ended with it.

use futures_util::future::join_all;
use proofhouse_manifest::Bundle;
use proofhouse_tools::runtime::ActionFailure;
use serde_json::json;

use crate::support::*;

fn session(port: u16, more: &str) -> String {
    let base = format!("http://127.0.0.1:{port}");
    format!(
        "stateful_session: {{create: {{method: POST, url: \"{base}/s\", json: {{for: \"{{x}}\"}}}}, \
         extract: {{id: $.id, token: $.token}}, \
         execute: {{method: POST, url: \"{base}/s/{{session.id}}/run\", \
         headers: {{X-Token: \"{{session.token}}\"}}, body: {{x: \"{{x}}\"}}}}, \
         destroy: {{method: DELETE, url: \"{base}/s/{{session.id}}\"}}{more}}}"
    )
}

/// Lines of requests, such as `POST /s`.
fn lines(server: &Server) -> Vec<String> {
    let seen = server.seen();
    let first = |request: &String| {
        request
            .lines()
            .next()
            .unwrap_or_default()
            .replace(" HTTP/1.1", "")
    };
    seen.iter().map(first).collect()
}

fn answer(request: &str) -> Reply {
    match request {
        _ if request.starts_with("POST /s HTTP") => reply(
            "201 Created",
            "",
            json!({"id": "s/1", "token": "tok-en-1"}).to_string(),
        ),
        _ if request.starts_with("DELETE") => reply("204 No Content", "", ""),
        _ => reply("200 OK", "", json!({"echo": request}).to_string()),
    }
}

#[tokio::test]
async fn one_session_serves_every_call_and_is_ended() {
    let server = Server::start(|_, request| answer(request)).await;
    let task = task(tool(&session(server.port, "")));
    let results = join_all((0..10).map(|_| act(&task, json!({"x": 5})))).await;
    for outcome in results {
        let shown = outcome.unwrap().value.to_string();
        assert!(
            shown.contains("[redacted]") && !shown.contains("tok-en-1"),
            "{shown}"
        );
    }
    assert!(task.teardown().await.is_empty());
    assert!(task.teardown().await.is_empty());
    let lines = lines(&server);
    assert_eq!((lines.len(), lines[0].as_str()), (12, "POST /s"));
    assert!(
        lines[1..11].iter().all(|line| line == "POST /s/s%2F1/run"),
        "{lines:?}"
    );
    assert_eq!(lines[11], "DELETE /s/s%2F1");
    let seen = server.seen();
    assert!(seen[0].ends_with("{\"for\":5}"));
    assert!(seen[1].contains("x-token: tok-en-1") && seen[1].ends_with("{\"x\":5}"));
}

#[tokio::test]
async fn a_session_is_ended_after_failed_calls() {
    let server = Server::start(|_, request| match request {
        _ if request.contains("/run") => reply("500 Oops", "", "tok-en-1"),
        _ => answer(request),
    })
    .await;
    let task = task(tool(&session(server.port, "")));
    let error = act(&task, json!({})).await.unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (ActionFailure::HttpStatus, true)
    );
    assert_eq!(error.detail["body"], "[redacted]");
    assert!(task.teardown().await.is_empty());
    assert_eq!(
        lines(&server),
        ["POST /s", "POST /s/s%2F1/run", "DELETE /s/s%2F1"]
    );
}

#[tokio::test]
async fn failures_to_open_and_to_close_are_told() {
    // What could not be made is tried again by the next call, and nothing is ended.
    let server = Server::start(|_, _| reply("500 Oops", "", "")).await;
    let closed = task(tool(&session(server.port, "")));
    assert_eq!(
        act(&closed, json!({})).await.unwrap_err().failure,
        ActionFailure::HttpStatus
    );
    assert_eq!(
        act(&closed, json!({})).await.unwrap_err().failure,
        ActionFailure::HttpStatus
    );
    assert!(closed.teardown().await.is_empty());
    assert_eq!(lines(&server), ["POST /s", "POST /s"]);

    let server = Server::start(|_, _| reply("200 OK", "", "{}")).await;
    let empty = task(tool(&session(server.port, "")));
    assert_eq!(
        act(&empty, json!({})).await.unwrap_err().failure,
        ActionFailure::NoMatch
    );

    for (status, errors) in [("404 Gone", 0), ("410 Gone", 0), ("500 Oops", 1)] {
        let server = Server::start(move |_, request| match request {
            _ if request.starts_with("DELETE") => reply(status, "", ""),
            _ => answer(request),
        })
        .await;
        let task = task(tool(&session(server.port, "")));
        act(&task, json!({})).await.unwrap();
        assert_eq!(task.teardown().await.len(), errors, "{status}");
    }
}

#[tokio::test]
async fn initialize_is_a_second_call_and_its_failure_ends_the_session() {
    let server = Server::start(|_, request| match request {
        _ if request.contains("x=bad") => reply("400 Bad", "", "tok-en-1"),
        _ => answer(request),
    })
    .await;
    let more = format!(
        ", initialize: {{method: PUT, url: \"http://127.0.0.1:{}/s/{{session.id}}?x={{x}}\"}}",
        server.port
    );
    let session = task(tool(&session(server.port, &more)));
    let error = act(&session, json!({"x": "bad"})).await.unwrap_err();
    assert_eq!(error.detail["body"], "[redacted]");
    act(&session, json!({"x": "good"})).await.unwrap();
    assert!(session.teardown().await.is_empty());
    let (first, second) = ("PUT /s/s%2F1?x=bad", "PUT /s/s%2F1?x=good");
    let expected = [
        "POST /s",
        first,
        "DELETE /s/s%2F1",
        "POST /s",
        second,
        "POST /s/s%2F1/run",
        "DELETE /s/s%2F1",
    ];
    assert_eq!(lines(&server), expected);
}

#[test]
fn the_actions_of_a_tool_share_one_session() {
    let action = |name: &str, url: &str| {
        format!(
            "  - {{name: {name}, description: d, execute: {{stateful_session: {{create: {{method: POST, url: \"{url}\"}}, \
             execute: {{method: GET, url: \"https://h.test/{name}\"}}}}}}}}\n"
        )
    };
    let text = |second: &str| {
        format!(
            "kind: commonagents.info/v1/tool\nnamespace: n\nname: t\ndescription: d\nactions:\n{}{}",
            action("a", "https://h.test/s"),
            action("b", second)
        )
    };
    let (_, findings) = Bundle::read(&text("https://h.test/s"));
    assert!(findings.is_empty(), "{findings:?}");
    let (_, findings) = Bundle::read(&text("https://h.test/other"));
    assert_eq!(findings.len(), 1);
    assert_eq!(
        (findings[0].code, findings[0].span.map(|span| span.line)),
        ("TM-019", Some(7))
    );
}

/// A service may say where its session is. That is reached under the egress policy, as every address is.
#[tokio::test]
async fn a_session_may_say_where_it_is() {
    let elsewhere = Server::start(|_, _| reply("200 OK", "", "{\"here\": 1}")).await;
    for (url, expected) in [
        (
            format!("http://127.0.0.1:{}/at/1", elsewhere.port),
            Ok(json!({"here": 1})),
        ),
        (
            "http://169.254.169.254/latest".to_owned(),
            Err(ActionFailure::EgressDeniedChosen),
        ),
        ("/relative".to_owned(), Err(ActionFailure::Setting)),
    ] {
        let made = json!({"url": url}).to_string();
        let server = Server::start(move |_, _| reply("201 Created", "", made.clone())).await;
        let task = task(tool(&format!(
            "stateful_session: {{create: {{method: POST, url: \"http://127.0.0.1:{}/s\"}}, extract: {{url: $.url}}, \
             execute: {{method: GET, url: \"{{session.url}}/run/{{x}}\"}}, \
             destroy: {{method: DELETE, url: \"{{session.url}}\"}}}}",
            server.port
        )));
        let called = act(&task, json!({"x": "a/b"})).await;
        let called = called.map(|done| done.value).map_err(|error| error.failure);
        assert_eq!(called, expected, "{url}");
        task.teardown().await;
    }
    assert_eq!(lines(&elsewhere), ["GET /at/1/run/a%2Fb", "DELETE /at/1"]);
}

/// Where a session's service sends a task is not for the manifest's author to mend, and the model is told.
#[tokio::test]
async fn a_host_that_a_session_names_ends_no_task() {
    let nobody = proofhouse_test_support::loopback::Vacant::new();
    for (host, failure) in [
        (
            nobody.address().to_string(),
            ActionFailure::UnreachableChosen,
        ),
        ("10.1.2.3".to_owned(), ActionFailure::EgressDeniedChosen),
    ] {
        let url = json!({"url": format!("http://{host}/s")}).to_string();
        let server = Server::start(move |_, _| reply("201 Created", "", &url)).await;
        let execute = format!(
            "stateful_session: {{create: {{method: POST, url: \"http://127.0.0.1:{}/s\"}}, extract: {{url: $.url}}, \
             execute: {{method: GET, url: \"{{session.url}}/run\"}}}}",
            server.port
        );
        let error = act(&task(tool(&execute)), json!({})).await.unwrap_err();
        assert_eq!(error.failure, failure, "{error}");
        assert!(error.is_recoverable());
    }
}
