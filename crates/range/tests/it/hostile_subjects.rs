//! Subjects that would stall a server actor, or make it answer something else than it was asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proofhouse_range::{ActorEndpoint, ActorErrorKind, Ending, RunOptions};
use proofhouse_wire::{Spawn, WireLimits};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::a2a::{self, Running};
use crate::client_support;
use crate::mcp_support::*;

/// Thirty digits, which no number of a machine can hold.
const LONG_ID: &str = "123456789012345678901234567890";

const AGENT: &str = r#"
oatf: "0.1"
attack:
  execution:
    mode: a2a_server
    state:
      agent_card: {name: Helper}
      task_responses: [{status: {state: completed}}]
"#;

/// Where a server is, of its URL.
fn place(url: &str) -> String {
    let place = url.trim_start_matches("http://");
    place.split('/').next().unwrap_or(place).to_owned()
}

/// Sends one request on a connection of its own, with these headers, and reads the answer to its end.
async fn raw(place: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(place).await.unwrap();
    let text = format!(
        "POST {path} HTTP/1.1\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer));
    let _ = reading.await.expect("an answer in time");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_client_is_answered_between_large_calls() {
    let state = json!({"tools": [{"name": "t", "responses": [{"content": "fine"}]}]});
    let stage = Stage::http(of_state(&state)).await;
    let mut good = Http::initialized(&stage.url, json!({})).await;
    let hostile = Arc::new(Http::initialized(&stage.url, json!({})).await);
    let arrays = vec!["[]"; 250_000].join(",");
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"a":[{arrays}]}}}}}}"#
    );
    let body: Arc<str> = body.into();
    let finished = Arc::new(AtomicUsize::new(0));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (hostile, body, finished) = (hostile.clone(), body.clone(), finished.clone());
        calls.spawn(async move {
            let response = hostile
                .send(proofhouse_wire::Method::POST, &[], &body)
                .await;
            assert_eq!(response.status, 200);
            finished.fetch_add(1, Ordering::SeqCst);
        });
    }
    // How many of them were finished while the good client waited for one answer.
    let (mut overtaken, mut answered) = (0, 0);
    while finished.load(Ordering::SeqCst) < 12 {
        let before = finished.load(Ordering::SeqCst);
        let answer = good.call("tools/call", json!({"name": "t"})).await;
        assert_eq!(answer["result"]["content"][0]["text"], "fine");
        overtaken = overtaken.max(finished.load(Ordering::SeqCst) - before);
        answered += 1;
    }
    calls.join_all().await;
    assert!(overtaken <= 3 && answered >= 4, "{overtaken} {answered}");
    let report = stage.finish().await;
    assert_eq!(
        report.messages,
        2 * (12 + answered) + 6,
        "{:?}",
        report.warnings
    );
}

#[tokio::test]
async fn a_client_that_rests_between_requests_is_not_a_broken_connection() {
    let options = RunOptions {
        limits: WireLimits {
            header_timeout: Duration::from_millis(50),
            ..WireLimits::default()
        },
        ..options()
    };
    let stage = Stage::with(of_state(&json!({})), options).await;
    let mut stream = TcpStream::connect(place(&stage.url)).await.unwrap();
    let body = request(1, "initialize", json!({"protocolVersion": "2025-11-25"})).to_string();
    let text = format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    for _ in 0..3 {
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut piece = [0; 4096];
        let reading = tokio::time::timeout(PATIENCE, stream.read(&mut piece));
        assert!(reading.await.unwrap().unwrap() > 0);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    drop(stream);
    let report = stage.finish().await;
    assert_eq!(report.warnings, Vec::<String>::new());
}

#[tokio::test]
async fn an_agent_is_asked_under_its_own_name_only() {
    let server = Running::start(AGENT, a2a::options()).await;
    let place = place(&server.address);
    let body = request(1, "tasks/get", json!({"id": "x"})).to_string();
    for (headers, status) in [
        ("host: evil.example\r\n", "403"),
        ("host: 127.0.0.1\r\n", "200"),
        ("host: localhost:1\r\n", "200"),
        ("host: 127.0.0.1\r\nhost: evil.example\r\n", "400"),
        ("host: 127.0.0.1\r\norigin: http://evil.example\r\n", "403"),
    ] {
        let answer = raw(&place, "/", headers, &body).await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{headers}: {answer}");
    }
    server.finish().await;
    let options = RunOptions {
        check_origin: false,
        ..a2a::options()
    };
    let server = Running::start(AGENT, options).await;
    let place = self::place(&server.address);
    let answer = raw(&place, "/", "host: evil.example\r\n", &body).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.finish().await;
}

#[tokio::test]
async fn long_ids_come_back_as_they_were_sent() {
    let ids = [
        LONG_ID,
        "-123456789012345678901234567890",
        "18446744073709551616",
        "1.10",
        "1e2",
        "7",
        "\"7\"",
        "\"\\ufdd07\"",
        "\"\\ufdd0\\ufdd0\"",
    ];
    let echo = |id: &str| id.replace("\\ufdd0", "\u{fdd0}");
    let ask =
        |id: &str, method: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}","id":{id}}}"#);

    let stage = Stage::http(of_state(&json!({}))).await;
    let http = Http::initialized(&stage.url, json!({})).await;
    for id in ids {
        for method in ["ping", "no/such", "tools/list"] {
            let response = http
                .send(proofhouse_wire::Method::POST, &[], &ask(id, method))
                .await;
            let text = response.bytes().await.unwrap();
            let text = String::from_utf8_lossy(&text).into_owned();
            let expected = format!("\"id\":{},", echo(id));
            assert!(text.contains(&expected), "{text} lacks {expected}");
        }
    }
    stage.finish().await;

    let (stage, mut pipes) = Stage::stdio(of_state(&json!({})), options()).await;
    for id in ids {
        pipes.write(&format!("{}\n", ask(id, "ping"))).await;
        let line = pipes.line().await.unwrap();
        assert!(line.contains(&format!("\"id\":{},", echo(id))), "{line}");
    }
    stage.finish().await;

    let server = Running::start(AGENT, a2a::options()).await;
    for id in ids {
        for method in ["tasks/list", "message/send", "message/stream"] {
            let params = r#","params":{"message":{"role":"user","messageId":"m","parts":[]}}"#;
            let body = ask(id, method).replace(",\"id\"", &format!("{params},\"id\""));
            let response = server.post(body).await.unwrap();
            let text = response.bytes().await.unwrap();
            let text = String::from_utf8_lossy(&text).into_owned();
            let expected = format!("\"id\":{},", echo(id));
            assert!(text.contains(&expected), "{text} lacks {expected}");
        }
    }
    server.finish().await;
}

#[tokio::test]
async fn a_command_that_never_answers_is_named_with_the_time_it_had() {
    let document = r#"
oatf: "0.1"
attack:
  execution:
    mode: mcp_client
    state:
      actions: [{method: tools/list}]
"#;
    let spawn = Spawn {
        program: "sleep".to_owned(),
        arguments: vec!["600".to_owned()],
        ..Spawn::default()
    };
    let mut options = client_support::options(ActorEndpoint::Command(spawn));
    options.limits.response_timeout = Duration::from_millis(200);
    let report = client_support::try_play(document, options).await.unwrap();
    let error = &report.errors[0];
    assert_eq!(error.kind, ActorErrorKind::Unreachable);
    for part in ["`sleep 600`", "200ms", "`initialize`", "never answered"] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
}

#[tokio::test]
async fn a_silent_agent_ends_the_run_of_a_client_after_the_idle_limit() {
    // It takes connections, and never says a word.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let held = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    let document = r#"
oatf: "0.1"
attack:
  execution:
    mode: ag_ui_client
    state: {run_agent_input: {messages: [{id: m, role: user, content: hello}]}}
"#;
    let mut options = client_support::options(ActorEndpoint::Url(url));
    options.idle_limit = Duration::from_millis(300);
    options.arrival_limit = Duration::from_millis(300);
    let report = client_support::try_play(document, options).await.unwrap();
    assert_eq!(report.ending, Ending::Idle);
    held.abort();
}

#[test]
fn an_answer_is_waited_for_as_long_as_a_subject_may_be_silent() {
    let silence = Duration::from_secs(600);
    let options = RunOptions::patient(silence);
    assert_eq!(
        (options.idle_limit, options.arrival_limit),
        (silence, silence)
    );
    assert!(options.limits.response_timeout > silence && options.limits.idle_timeout > silence);
    let quick = RunOptions::patient(Duration::from_secs(1));
    assert_eq!(
        quick.limits.response_timeout,
        WireLimits::default().response_timeout
    );
}
