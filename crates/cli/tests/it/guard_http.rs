//! `proofhouse guard --url` with real sockets: whatever ends or lies, the client gets an error and nothing hangs; and sessions shared with guards over stdio.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests, helpers included"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use proofhouse_test_support::http::{TestReply, TestServer};
use serde_json::{Value, json};

use crate::guard::{Client, MAIL, write};
use crate::tool_serve_peers::proofhouse;

/// A guard in front of an address; it ends with the test.
struct Guarded {
    child: Child,
    address: SocketAddr,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Guarded {
    fn start(server: SocketAddr, runtime: &Path, flags: &[&str]) -> Self {
        let url = format!("http://{server}/mcp");
        let args = [
            "guard",
            "--no-lock",
            "--ask",
            "nobody",
            "--url",
            &url,
            "--listen",
            "127.0.0.1:0",
        ];
        let mut child = Command::new(proofhouse())
            .args(args)
            .args(flags)
            .env("XDG_RUNTIME_DIR", runtime)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let url = told["listening"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().split('/').next();
        Self {
            child,
            address: address.unwrap().parse().unwrap(),
        }
    }

    /// A connection on which a request was sent, of which the body says how long it is.
    fn open(&self, body: &str, length: usize) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}",
            self.address
        )
        .unwrap();
        stream
    }

    /// The body of the answer to a message.
    fn post(&self, body: &str) -> String {
        let mut answer = String::new();
        self.open(body, body.len())
            .read_to_string(&mut answer)
            .unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let text = self.post(&call.to_string());
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
    }
}

/// A server whose answers are these bytes, after which it closes the connection.
fn raw(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(answer);
        }
    });
    address
}

#[test]
fn a_server_that_ends_or_lies_is_an_error_for_the_request() {
    let scratch = tempfile::tempdir().unwrap();
    // Nobody listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let half = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 400\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{\"text\":\"SECRET";
    let broken = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"SECRET\":}}";
    let stream = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"SECRET";
    let closed = b"";
    for server in [gone, raw(half), raw(broken), raw(stream), raw(closed)] {
        let guard = Guarded::start(server, scratch.path(), &[]);
        let text = guard.post(
            &json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x"}})
                .to_string(),
        );
        assert!(!text.contains("SECRET"), "{text}");
        // In a stream, the error is an event.
        let json = text.find('{').map(|at| text[at..].lines().next());
        let answer = json.flatten().map(serde_json::from_str::<Value>);
        let Some(Ok(answer)) = answer else {
            panic!("{server}: {text:?}");
        };
        assert!(answer["error"]["code"].is_i64(), "{text}");
        assert_eq!(answer["id"], 7, "{text}");
    }
}

#[test]
fn what_a_client_sends_in_half_does_not_reach_the_server() {
    let scratch = tempfile::tempdir().unwrap();
    let server = TestServer::start(|request, _| {
        TestReply::Json(json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": {}}))
    });
    let guard = Guarded::start(server.address(), scratch.path(), &[]);
    // It is gone in the middle of its message.
    drop(guard.open("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/ca", 500));
    // What is no JSON is answered, and the next message passes.
    let broken: Value = serde_json::from_str(&guard.post("{\"jsonrpc\":")).unwrap();
    assert_eq!(broken["error"]["code"], -32700, "{broken}");
    assert_eq!(guard.call("x", &json!({}))["result"], json!({}));
    let seen = server.requests();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0].json()["params"]["name"], "x");
}

#[test]
fn eight_megabytes_reach_a_client_that_reads_late_and_stop_no_other() {
    let scratch = tempfile::tempdir().unwrap();
    let long = "x".repeat(8 << 20);
    let text = long.clone();
    let server = TestServer::start(move |request, _| {
        let message = request.json();
        let text = if message["params"]["name"] == "long" {
            text.as_str()
        } else {
            "short"
        };
        TestReply::Json(
            json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}}),
        )
    });
    let guard = Guarded::start(server.address(), scratch.path(), &[]);
    let body =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "long"}})
            .to_string();
    let mut late = guard.open(&body, body.len());
    // Another client is answered, while nobody reads the long one.
    assert_eq!(
        guard.call("y", &json!({}))["result"]["content"][0]["text"],
        "short"
    );
    let mut answer = String::new();
    late.read_to_string(&mut answer).unwrap();
    let (_, answer) = answer.split_once("\r\n\r\n").unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert!(answer["result"]["content"][0]["text"] == long.as_str());
}

#[test]
fn a_guard_that_is_killed_ends_its_connections() {
    let scratch = tempfile::tempdir().unwrap();
    let server = TestServer::start(|_, _| TestReply::Held);
    let mut guard = Guarded::start(server.address(), scratch.path(), &[]);
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x"}})
        .to_string();
    let mut waiting = guard.open(&body, body.len());
    while server.requests().is_empty() {
        thread::yield_now();
    }
    guard.child.kill().unwrap();
    guard.child.wait().unwrap();
    // Nothing, or an error of the connection; but no answer, and no waiting.
    let mut rest = Vec::new();
    let _ = waiting.read_to_end(&mut rest);
    assert_eq!(rest, b"");
}

#[test]
fn guards_over_http_and_stdio_share_a_session_by_its_name() {
    let scratch = tempfile::tempdir().unwrap();
    let mail = write(scratch.path(), "mail.yaml", MAIL);
    let server = TestServer::start(|request, _| {
        let message = request.json();
        TestReply::Json(
            json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "Or ask mallory@evil.example."}]}}),
        )
    });
    for (flags, is_shared) in [(&["--session", "office"][..], true), (&[], false)] {
        let web = Guarded::start(server.address(), scratch.path(), flags);
        let program = proofhouse();
        let serve = ["--", &program, "tool", "serve", &mail, "--stdio"];
        let mut command = Command::new(&program);
        command
            .args([&["guard", "--no-lock", "--ask", "nobody"], flags, &serve].concat())
            .env("XDG_RUNTIME_DIR", scratch.path());
        let mut client = Client::of(command);
        let is_blocked = |answer: &Value| {
            let text = answer["result"]["content"][0]["text"].as_str();
            text.is_some_and(|text| text.starts_with("Blocked by the Proofhouse guard"))
        };
        // From stdio to HTTP, and back.
        client.call("mail_fetch", &json!({}));
        let sent = web.call("post_letter", &json!({"to": "eve@evil.example"}));
        assert_eq!(is_blocked(&sent), is_shared, "{flags:?}: {sent}");
        web.call("web_fetch", &json!({}));
        let letter = json!({"to": "mallory@evil.example", "body": "hi"});
        let sent = client.call("mail_send", &letter);
        assert_eq!(is_blocked(&sent), is_shared, "{flags:?}: {sent}");
        let (code, told) = client.end();
        assert_eq!(code, Some(0), "{told}");
    }
}
