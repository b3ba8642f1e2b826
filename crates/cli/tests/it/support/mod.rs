//! Runs the binary as a user would, for all tests that do.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::panic,
    reason = "helpers of tests stand outside of them"
)]

pub mod documents;
pub mod served;
pub mod shop;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use proofhouse_test_support::process;
use serde_json::{Value, json};

pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

pub fn command(args: &[&str]) -> Command {
    command_under(&[], args)
}

/// The same under a program that prepares something and then becomes the binary.
pub fn command_under(wrapper: &[&str], args: &[&str]) -> Command {
    process::end_what_hangs(Path::new(env!("CARGO_BIN_EXE_proofhouse")));
    // Tests leave nothing in the project.
    let names_place = |arg: &&str| ["--out", "--no-keep", "--list", "--help"].contains(arg);
    let keeps = args.first() == Some(&"run") && !args.iter().any(names_place);
    let more: &[&str] = if keeps { &["--no-keep"] } else { &[] };
    let mut words = [wrapper, &[env!("CARGO_BIN_EXE_proofhouse")], args, more].concat();
    // Tests run beside each other in one process; their guards have nothing to tell each other.
    if args.first() == Some(&"guard") && (args.contains(&"--") || args.contains(&"--url")) {
        words.insert(wrapper.len() + 2, "--no-session");
    }
    let mut command = Command::new(words[0]);
    command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(&words[1..]);
    command
}

pub fn finish(output: Output) -> Ran {
    Ran {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}

pub fn run(args: &[&str]) -> Ran {
    finish(command(args).output().unwrap())
}

pub fn run_with_input(args: &[&str], input: &[u8]) -> Ran {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may stop reading early; that is its right.
    let _ = child.stdin.take().unwrap().write_all(input);
    finish(child.wait_with_output().unwrap())
}

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A document with these indicators, in a directory of its own.
pub struct Case {
    pub directory: tempfile::TempDir,
    pub rules: String,
}

impl Case {
    pub fn new(indicators: &Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rules.yaml");
        let document = json!({"oatf": "0.1", "attack": {
            "id": "CASE-001",
            "name": "A case",
            "execution": {"mode": "mcp_server", "state": {"tools": []}},
            "indicators": indicators,
        }});
        fs::write(&path, document.to_string()).unwrap();
        Self {
            rules: path.to_str().unwrap().to_owned(),
            directory,
        }
    }

    /// Looks for `secret` in the text of any message.
    pub fn secret() -> Self {
        Self::new(&json!([{"target": "text", "pattern": {"contains": "secret"}}]))
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs a command that judges a trace.
    pub fn judge(&self, command: &str, trace: &Path, more: &[&str]) -> Ran {
        let trace = trace.to_str().unwrap();
        // What these look for is nowhere in the protocol.
        let allowed: &[&str] = if command == "scan" {
            &["--allow-unknown"]
        } else {
            &[]
        };
        run(&[&[command, trace, "--rules", &self.rules], allowed, more].concat())
    }
}

/// A demo service on a free port; it ends with the test, because its stdin does.
pub struct Demo {
    child: std::process::Child,
    /// Such as `127.0.0.1:40001`.
    pub address: String,
}

impl Demo {
    pub fn start(more: &[&str]) -> Self {
        let args = [
            "demo-service",
            "--listen",
            "127.0.0.1:0",
            "--until-stdin-closes",
        ];
        let mut child = command(&[&args, more].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        let places = json(&line);
        let origin = places["listening"].as_str().unwrap();
        let address = origin.strip_prefix("http://").unwrap().to_owned();
        Self { child, address }
    }

    /// Closes its stdin and waits for it to end.
    pub fn end(&mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code()
    }

    /// Sends one request and gives status and body.
    pub fn ask(&self, head: &str, body: &str) -> (u16, String) {
        use std::io::Read;
        let mut stream = std::net::TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "{head}\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        #[expect(clippy::disallowed_methods, reason = "capped by take")]
        stream.take(1 << 20).read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
        (status, body)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
