//! `proofhouse drive` with a host in this test: an agent that speaks MCP over plain HTTP, and hosts that misbehave.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::{command, json as parse, run_with_input};

/// A host.
struct Host {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Host {
    fn start() -> Self {
        let mut child = command(&["drive"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut host = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        let ready = host.read();
        assert_eq!(
            (&ready["event"], &ready["protocol"]),
            (&json!("ready"), &json!(1))
        );
        host
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended");
        parse(&line)
    }

    /// Runs something with an agent that answers this, and gives the result and the purposes of the prompts.
    fn drive(&mut self, request: &Value, agent: impl Fn(&Value) -> Value) -> (Value, Vec<String>) {
        self.send(request);
        let mut purposes = Vec::new();
        loop {
            let event = self.read();
            if event["event"] != "prompt" {
                return (event, purposes);
            }
            purposes.push(event["purpose"].as_str().unwrap().to_owned());
            let mut answer = json!({"id": request["id"], "do": "answer", "call": event["call"]});
            for (key, value) in agent(&event).as_object().unwrap() {
                answer[key] = value.clone();
            }
            self.send(&answer);
        }
    }

    fn end(mut self) {
        drop(self.input.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

fn request(id: u64, agent: &str, kind: &str) -> Value {
    json!({"id": id, "do": "run", "agent": agent, "document": "weather-key-theft", "kind": kind})
}

#[test]
fn documents_are_selected_and_those_that_nobody_can_meet_are_told() {
    let mut host = Host::start();
    host.send(&json!({"id": 1, "do": "select", "ids": ["weather-key-theft"]}));
    let chosen = host.read();
    assert_eq!(chosen["documents"][0]["slug"], "weather-key-theft");
    assert_eq!(chosen["documents"][0]["has_control"], true);
    host.send(&json!({"id": 2, "do": "select", "protocols": ["ag_ui"]}));
    let chosen = host.read();
    assert_eq!(chosen["documents"], json!([]));
    assert!(
        chosen["skipped"][0]["why"]
            .as_str()
            .unwrap()
            .contains("proofhouse run")
    );
    host.send(&json!({"id": 3, "do": "select", "ids": ["weather-key-thefd"]}));
    let refused = host.read();
    assert_eq!(refused["code"], "unusable_documents", "{refused}");
    host.end();
}

#[test]
fn who_does_nothing_proves_nothing_and_is_asked_once() {
    let mut host = Host::start();
    let (result, purposes) = host.drive(&request(1, "deaf", "attack"), |_| json!({"text": "no"}));
    assert_eq!(result["event"], "result", "{result}");
    assert_eq!(
        (&result["passed"], &result["outcome"]),
        (&json!(false), &json!("inconclusive"))
    );
    assert!(purposes.contains(&"probe".to_owned()), "{purposes:?}");
    assert_eq!(purposes.iter().filter(|one| *one == "control").count(), 1);
    assert_eq!(purposes.last().unwrap(), "attack");
    let report = result["report"].as_str().unwrap();
    let reason = result["runs"][0]["reason"].as_str().unwrap();
    assert!(
        report.contains(reason) && report.contains("channel probe"),
        "{report}"
    );
    // The control is known, and so is what the probes have shown.
    let (control, asked) = host.drive(&request(2, "deaf", "control"), |_| json!({"text": "no"}));
    assert_eq!((&control["outcome"], asked.len()), (&json!("failed"), 0));
    let (_, asked) = host.drive(&request(3, "deaf", "attack"), |_| json!({"text": "no"}));
    assert_eq!(asked, ["attack"]);
    // Another agent is another one.
    let (_, asked) = host.drive(&request(4, "other", "control"), |_| json!({"text": "no"}));
    assert_eq!(asked, ["control"]);
    host.end();
}

#[test]
fn an_agent_that_fails_has_failed() {
    let mut host = Host::start();
    let (result, _) = host.drive(
        &request(1, "broken", "attack"),
        |_| json!({"error": "out of memory"}),
    );
    assert_eq!(result["runs"][0]["reason"], "subject_failed", "{result}");
    assert!(
        result["report"].as_str().unwrap().contains("out of memory"),
        "{result}"
    );
    host.end();
}

/// An agent that calls every tool it finds with what the schema asks for, and passes on all that descriptions say.
fn obedient(event: &Value) -> Value {
    let url = event["mcp_urls"][0].as_str().unwrap();
    let said = mcp(
        url,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    );
    json!({"text": said.to_string()})
}

/// One request to an MCP server without a session, as the revision of 2026 has it, or with one.
fn mcp(url: &str, message: &Value) -> Value {
    let port = url.split(':').nth(2).unwrap().split('/').next().unwrap();
    let path = url.splitn(4, '/').nth(3).unwrap_or_default();
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let body = message.to_string();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    for line in BufReader::new(stream).lines() {
        answer.push_str(&line.unwrap_or_default());
    }
    Value::String(answer)
}

#[test]
fn the_servers_are_up_when_the_host_is_asked() {
    let mut host = Host::start();
    let (result, purposes) = host.drive(&request(1, "client", "control"), obedient);
    assert_eq!(purposes, ["control"]);
    assert_eq!(
        result["control"]["state"], "failed",
        "it called no tool: {result}"
    );
    let answer = result["control"]["answer"].as_str().unwrap();
    assert!(answer.contains("HTTP/1.1"), "{answer}");
    host.end();
}

#[test]
fn hosts_that_misbehave_are_told_and_the_session_goes_on() {
    let mut host = Host::start();
    for (line, code) in [
        ("nonsense", "invalid_request"),
        ("{\"id\": 1}", "invalid_request"),
        (
            "{\"id\": 1, \"do\": \"answer\", \"call\": 1, \"text\": \"x\"}",
            "invalid_request",
        ),
        ("{\"id\": 1, \"do\": \"cancel\"}", "invalid_request"),
        (
            "{\"id\": 1, \"do\": \"run\", \"agent\": \"a\", \"document\": \"nothing\", \"kind\": \"attack\"}",
            "no_such_document",
        ),
        (
            "{\"id\": 1, \"do\": \"run\", \"agent\": \"a\", \"document\": \"x\", \"kind\": \"attack\", \"repeats\": 0}",
            "invalid_request",
        ),
    ] {
        writeln!(host.input.as_mut().unwrap(), "{line}").unwrap();
        let answer = host.read();
        assert_eq!(
            (&answer["event"], &answer["code"]),
            (&json!("error"), &json!(code)),
            "{line}: {answer}"
        );
    }
    let long = "x".repeat(9 << 20);
    writeln!(host.input.as_mut().unwrap(), "{long}").unwrap();
    assert!(host.read()["message"].as_str().unwrap().contains("bytes"));
    // A run that is cancelled says so.
    host.send(&request(7, "slow", "control"));
    assert_eq!(host.read()["event"], "prompt");
    host.send(&json!({"id": 7, "do": "cancel"}));
    assert_eq!(host.read()["code"], "cancelled");
    let (result, _) = host.drive(&request(8, "slow", "control"), |_| json!({"text": "no"}));
    assert_eq!(result["event"], "result");
    // A host that goes away in the middle of a run leaves nothing behind.
    host.send(&request(9, "gone", "control"));
    assert_eq!(host.read()["event"], "prompt");
    host.end();
}

#[test]
fn a_pipe_is_enough() {
    let ran = run_with_input(
        &["drive"],
        b"{\"id\": 1, \"do\": \"select\", \"ids\": [\"PROOF-001\"]}\n",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<Value> = ran.stdout.lines().map(parse).collect();
    assert_eq!(lines[1]["documents"][0]["id"], "PROOF-001", "{lines:?}");
}
