//! `proofhouse tool serve` as a user starts it: over stdin, over HTTP, with a trace, and what it refuses.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use proofhouse_test_support::process::signal;
use serde_json::{Value, json};

use crate::support::{command, json, run, run_with_input};

const CLOCK: &str = "examples/tools/clock.yaml";

fn lines(messages: &[Value]) -> Vec<u8> {
    let lines = messages.iter().map(|message| format!("{message}\n"));
    lines.collect::<String>().into_bytes()
}

fn greet(id: u64, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "clock_greet", "arguments": arguments}})
}

fn handshake() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}}})
}

#[test]
fn stdout_is_the_protocol_and_the_trace_has_every_call() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("calls.jsonl").display().to_string();
    let messages = [
        handshake(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        greet(1, &json!({"name": "Ada"})),
        greet(2, &json!({"name": 7})),
    ];
    let ran = run_with_input(
        &["tool", "serve", CLOCK, "--stdio", "--trace", &trace],
        &lines(&messages),
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let mut answers: Vec<Value> = ran.stdout.lines().map(json).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "proofhouse");
    let greeted = json!({"greetings": ["Hello, Ada!"]});
    assert_eq!(answers[1]["result"]["structuredContent"], greeted);
    assert_eq!(answers[2]["result"]["isError"], true);
    let scanned = run(&[
        "scan",
        &trace,
        "--rules",
        "examples/documents/poisoned-tool.yaml",
    ]);
    assert_eq!(
        scanned.code,
        Some(0),
        "{}{}",
        scanned.stdout,
        scanned.stderr
    );
    #[expect(clippy::disallowed_methods, reason = "our own file")]
    let written = std::fs::read_to_string(&trace).unwrap();
    assert_eq!(written.matches("\"clock_greet\"").count(), 2, "{written}");
}

/// A server over HTTP, killed when it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start() -> Self {
        let arguments = [
            "tool",
            "serve",
            CLOCK,
            "--listen",
            "localhost:0",
            "--format",
            "json",
        ];
        let mut child = command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let url = json(&line)["url"].as_str().unwrap().to_owned();
        let address = url.strip_prefix("http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        Self { child, address }
    }

    /// Posts a message and returns the whole answer, with its head.
    fn post(&self, headers: &str, message: &Value) -> String {
        let body = message.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        #[expect(clippy::disallowed_methods, reason = "an answer of our own server")]
        stream.take(1 << 20).read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn http_serves_until_it_is_told_to_end() {
    let mut server = Server::start();
    let hello = server.post("", &handshake());
    let session = hello
        .lines()
        .find(|line| line.starts_with("mcp-session-id:"))
        .unwrap();
    let greeted = server.post(
        &format!("{session}\r\n"),
        &greet(1, &json!({"name": "Ada"})),
    );
    assert!(greeted.contains("Hello, Ada!"), "{greeted}");
    let foreign = server.post("origin: https://evil.example\r\n", &handshake());
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    signal(server.child.id(), "-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_be_served_is_refused() {
    for (arguments, code, told) in [
        (vec![CLOCK, "--listen", "0.0.0.0:0"], 64, "--allow-remote"),
        (vec![CLOCK, "--listen", "8080"], 64, "127.0.0.1:8080"),
        (
            vec![CLOCK, "--listen", "127.0.0.1:0", "--stdio"],
            64,
            "cannot be used with",
        ),
        (vec![CLOCK, "--allow-remote"], 64, "--listen"),
        (vec!["-"], 64, "stdin cannot be both"),
        (vec!["examples/tools/nothing.yaml"], 64, "nothing.yaml"),
        (
            vec!["examples/documents/poisoned-tool.yaml"],
            64,
            "is a threat document",
        ),
        (
            vec![CLOCK, "--listen", "203.0.113.7:9", "--allow-remote"],
            3,
            "can call every tool",
        ),
    ] {
        let all: Vec<&str> = ["tool", "serve"].into_iter().chain(arguments).collect();
        let ran = run_with_input(&all, b"");
        assert_eq!(ran.code, Some(code), "{all:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{all:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{all:?}");
    }
}
