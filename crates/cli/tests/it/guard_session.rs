//! Guards of several servers that one client starts: they share a session, and whichever of them dies, the others know.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests, helpers included"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use proofhouse_test_support::http::{TestReply, TestServer};
use serde_json::{Value, json};

use crate::guard::{Client, MAIL, write};
use crate::tool_serve_peers::proofhouse;

/// Another server, which sends what it is told to.
const POST: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: post
description: A post office.
actions:
  - name: send
    description: Sends a letter.
    parameters: {properties: {to: {type: string}, body: {type: string}}}
    execute: {cel: {expression: "{'sent': input.to}"}}
"#;

/// Two servers and a place for the sockets of their guards.
struct Office {
    scratch: tempfile::TempDir,
    mail: String,
    post: String,
}

impl Office {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        Self {
            mail: write(scratch.path(), "mail.yaml", MAIL),
            post: write(scratch.path(), "post.yaml", POST),
            scratch,
        }
    }

    /// No other test meets its guards here, though one process starts all of them.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(proofhouse());
        command
            .args(args)
            .env("XDG_RUNTIME_DIR", self.scratch.path());
        command
    }

    fn guard(&self, manifest: &str, flags: &[&str]) -> Client {
        let program = proofhouse();
        let server = ["--", &program, "tool", "serve", manifest, "--stdio"];
        let args = [&["guard", "--no-lock", "--ask", "nobody"], flags, &server].concat();
        Client::of(self.command(&args))
    }

    /// The sockets there are.
    fn sockets(&self) -> Vec<PathBuf> {
        fn below(path: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    below(&entry.path(), found);
                } else if entry.path().extension().is_some_and(|end| end == "sock") {
                    found.push(entry.path());
                }
            }
        }
        let mut found = Vec::new();
        below(self.scratch.path(), &mut found);
        found
    }
}

fn letter(client: &mut Client, to: &str) -> Value {
    client.call("post_send", &json!({"to": to, "body": "invoices"}))
}

fn is_blocked(answer: &Value) -> bool {
    let text = answer["result"]["content"][0]["text"].as_str();
    let is_ours = text.is_some_and(|text| text.starts_with("Blocked by the Proofhouse guard"));
    answer["result"]["isError"] == true && is_ours
}

#[test]
fn a_value_of_one_server_is_followed_into_calls_of_another() {
    for flags in [&["--session", "office"][..], &[]] {
        let office = Office::new();
        let mut post = office.guard(&office.post, flags);
        let mut mail = office.guard(&office.mail, flags);
        // The user names one address, and a stranger the other.
        let sent = letter(&mut post, "ada@work.example");
        assert!(!is_blocked(&sent), "{flags:?}: {sent}");
        mail.call("mail_fetch", &json!({}));
        let refused = letter(&mut post, "eve@evil.example");
        assert!(is_blocked(&refused), "{flags:?}: {refused}");
        let sent = letter(&mut post, "ada@work.example");
        assert!(!is_blocked(&sent), "{flags:?}: {sent}");
        // A guard that comes later knows what was read before.
        let mut late = office.guard(&office.post, flags);
        let refused = letter(&mut late, "eve@evil.example");
        assert!(is_blocked(&refused), "{flags:?}: {refused}");
        for client in [post, mail, late] {
            let (code, told) = client.end();
            assert_eq!(code, Some(0), "{told}");
            assert!(!told.contains("session_alone"), "{told}");
        }
        assert_eq!(office.sockets(), Vec::<PathBuf>::new());
    }
}

#[test]
fn without_a_session_each_works_alone() {
    for (one, other) in [
        (&["--no-session"][..], &["--no-session"][..]),
        (&["--session", "a"], &["--session", "b"]),
        (&["--session", "a"], &[]),
    ] {
        let office = Office::new();
        let mut mail = office.guard(&office.mail, one);
        let mut post = office.guard(&office.post, other);
        mail.call("mail_fetch", &json!({}));
        let sent = letter(&mut post, "eve@evil.example");
        assert!(!is_blocked(&sent), "{one:?} and {other:?}: {sent}");
    }
}

#[test]
fn what_a_guard_saw_that_was_killed_stays_known() {
    let office = Office::new();
    let flags = ["--session", "office"];
    let mut mail = office.guard(&office.mail, &flags);
    let mut post = office.guard(&office.post, &flags);
    mail.call("mail_fetch", &json!({}));
    mail.child.kill().unwrap();
    mail.child.wait().unwrap();
    let refused = letter(&mut post, "eve@evil.example");
    assert!(is_blocked(&refused), "{refused}");
    let sent = letter(&mut post, "ada@work.example");
    assert!(!is_blocked(&sent), "{sent}");
    // Its socket is still there; whoever joins takes it away.
    assert_eq!(office.sockets().len(), 2);
    let mut late = office.guard(&office.post, &flags);
    assert_eq!(office.sockets().len(), 2);
    let refused = letter(&mut late, "eve@evil.example");
    assert!(is_blocked(&refused), "{refused}");
}

#[test]
fn only_their_own_user_reaches_the_guards() {
    let office = Office::new();
    let guard = office.guard(&office.mail, &["--session", "office"]);
    let sockets = office.sockets();
    let [socket] = sockets.as_slice() else {
        panic!("{sockets:?}");
    };
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(socket), 0o600);
    let session = socket.parent().unwrap();
    assert_eq!(mode(session), 0o700);
    let base = session.parent().unwrap();
    assert_eq!(mode(base), 0o700);
    guard.end();
    // A place that others can enter is not used: by name that is an error, by parent a finding.
    fs::set_permissions(base, fs::Permissions::from_mode(0o755)).unwrap();
    let program = proofhouse();
    let args = ["guard", "--no-lock", "--session", "x", "--", &program];
    let refused = office.command(&args).output().unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains("others can enter"), "{told}");
    let (code, told) = office.guard(&office.mail, &[]).end();
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("[session_alone]"), "{told}");
}

#[test]
fn requests_are_spans_and_findings_their_events() {
    let collector = TestServer::start(|_, _| TestReply::Json(json!({})));
    let url = format!("http://{}", collector.address());
    let office = Office::new();
    let mut mail = office.guard(&office.mail, &["--no-session", "--otlp", &url]);
    mail.call("mail_fetch", &json!({}));
    let refused = mail.call(
        "mail_send",
        &json!({"to": "eve@evil.example", "body": "invoices"}),
    );
    assert!(is_blocked(&refused), "{refused}");
    let (code, told) = mail.end();
    assert_eq!(code, Some(0), "{told}");
    let sent: Vec<u8> = collector
        .requests()
        .iter()
        .filter(|request| request.path == "/v1/traces")
        .flat_map(|request| request.body.clone())
        .collect();
    let text = String::from_utf8_lossy(&sent);
    for words in [
        "tools/call mail_fetch",
        "tools/call mail_send",
        "proofhouse.guard.decision",
        "ask_denied",
        "untrusted-value-decides-effect",
    ] {
        assert!(text.contains(words), "no {words} in {} bytes", sent.len());
    }
    // What the messages say goes to no collector.
    assert!(!text.contains("invoices"));
}

#[test]
fn what_happens_is_counted_for_prometheus() {
    let office = Office::new();
    let flags = ["--no-session", "--metrics", "127.0.0.1:0"];
    let mut mail = office.guard(&office.mail, &flags);
    mail.call("mail_fetch", &json!({}));
    let refused = mail.call(
        "mail_send",
        &json!({"to": "eve@evil.example", "body": "invoices"}),
    );
    assert!(is_blocked(&refused), "{refused}");
    let mut told = String::new();
    let mut lines = BufReader::new(mail.child.stderr.as_mut().unwrap());
    lines.read_line(&mut told).unwrap();
    let address = told.trim().strip_prefix("guard: metrics at http://");
    let (address, path) = address.unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    for line in [
        "proofhouse_guard_sessions_total 1",
        "proofhouse_guard_findings_total{code=\"ask_denied\",decision=\"block\"} 1",
        "proofhouse_guard_messages_total{from=\"client\",outcome=\"changed\"} 1",
        "proofhouse_guard_judge_seconds_count ",
    ] {
        assert!(page.contains(line), "no {line} in {page}");
    }
    let args = ["guard", "--no-lock", "--metrics", "0.0.0.0:0", "--", "cat"];
    let refused = office.command(&args).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("loopback"), "{told}");
}
