//! Real processes over pipes: what passes is what was sent, and whatever dies, nothing hangs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_guard::engine::{AskRoute, GuardSession, GuardSetup};
use proofhouse_guard::policy::Policy;
use proofhouse_guard::proxy::{GuardedCommand, ProxyLimits, StdioEnd, StdioSetup, run_stdio};
use proofhouse_guard::{FindingCode, GuardFinding};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

use crate::support::{policy, recorder};

/// No test takes as long; it only ends what hangs.
const HANGS: Duration = Duration::from_secs(60);

struct Running {
    input: DuplexStream,
    output: DuplexStream,
    ended: JoinHandle<StdioEnd>,
    found: Arc<Mutex<Vec<GuardFinding>>>,
    cancel: CancellationToken,
}

fn start(script: &str, policy: Policy, limits: ProxyLimits) -> Running {
    let (input, guard_input) = tokio::io::duplex(1 << 16);
    let (output, guard_output) = tokio::io::duplex(1 << 16);
    let command = GuardedCommand {
        program: "sh".to_owned(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
    };
    let (recorder, found) = recorder();
    let setup = GuardSetup {
        server: "test".to_owned(),
        origin: None,
        policy: Arc::new(policy),
        asks: AskRoute::Client,
        lock: None,
        watcher: None,
    };
    let session = GuardSession::new(setup, recorder.shared()).unwrap();
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let ended = tokio::spawn(async move {
        run_stdio(
            &command,
            session,
            (guard_input, guard_output),
            StdioSetup {
                limits,
                ..StdioSetup::default()
            },
            &token,
        )
        .await
        .unwrap()
    });
    Running {
        input,
        output,
        ended,
        found,
        cancel,
    }
}

fn plain(script: &str) -> Running {
    let limits = ProxyLimits {
        exit_timeout: Duration::from_millis(300),
        ..ProxyLimits::default()
    };
    start(script, policy("policy: 1\n"), limits)
}

impl Running {
    async fn send(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).await.unwrap();
    }

    /// Everything up to the end of the output, and how it ended.
    async fn rest(self) -> (Vec<u8>, StdioEnd) {
        let Self {
            mut output,
            ended,
            input,
            ..
        } = self;
        let reading = async {
            let mut bytes = Vec::new();
            let mut chunk = [0; 65536];
            while let Ok(count @ 1..) = output.read(&mut chunk).await {
                bytes.extend_from_slice(&chunk[..count]);
            }
            (bytes, ended.await.unwrap())
        };
        let done = tokio::time::timeout(HANGS, reading)
            .await
            .expect("nothing hangs");
        drop(input);
        done
    }

    /// The same after the client closed its side.
    async fn close(self) -> (Vec<u8>, StdioEnd) {
        let (unused, _) = tokio::io::duplex(1);
        let Self {
            input,
            output,
            ended,
            found,
            cancel,
        } = self;
        drop(input);
        Running {
            input: unused,
            output,
            ended,
            found,
            cancel,
        }
        .rest()
        .await
    }

    async fn line(&mut self) -> Value {
        let reading = async {
            let mut line = Vec::new();
            loop {
                let byte = self.output.read_u8().await.unwrap();
                if byte == b'\n' {
                    return serde_json::from_slice(&line).unwrap();
                }
                line.push(byte);
            }
        };
        tokio::time::timeout(HANGS, reading)
            .await
            .expect("nothing hangs")
    }

    fn codes(&self) -> Vec<FindingCode> {
        self.found
            .lock()
            .unwrap()
            .iter()
            .map(|finding| finding.code)
            .collect()
    }
}

fn request(id: u64) -> Vec<u8> {
    format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "x"}})
    )
    .into_bytes()
}

#[tokio::test]
async fn what_passes_is_what_was_sent() {
    // The server writes down what it gets, and says something odd but valid.
    let directory = tempfile::tempdir().unwrap();
    let seen = directory.path().join("seen");
    let said = "{ \"jsonrpc\":\"2.0\" ,\"method\":\"notifications/message\", \"params\":{\"x\":1.50,\"y\":\"\\u00e9\"}}\r\n\n";
    std::fs::write(directory.path().join("said"), said).unwrap();
    let script = format!("cat {0}/said; cat > {0}/seen", directory.path().display());
    let mut running = plain(&script);
    let sent = "{\"method\" : \"ping\",\"jsonrpc\":\"2.0\",\"id\": 1}\r\n\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
    running.send(sent.as_bytes()).await;
    let (bytes, end) = running.close().await;
    assert_eq!(String::from_utf8(bytes).unwrap(), said);
    assert!(!end.server_left);
    #[expect(clippy::disallowed_methods, reason = "our own file")]
    let seen = std::fs::read(seen).unwrap();
    assert_eq!(String::from_utf8(seen).unwrap(), sent);
}

#[tokio::test]
async fn a_server_that_dies_leaves_an_error_for_every_request() {
    let mut running = plain("read a; read b; exit 3");
    running.send(&request(1)).await;
    running.send(&request(2)).await;
    let found = Arc::clone(&running.found);
    let (bytes, end) = running.rest().await;
    let text = String::from_utf8(bytes).unwrap();
    let answers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 2);
    for (answer, id) in answers.iter().zip(1..) {
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(id), &json!(-32000))
        );
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("exit status: 3"),
            "{answer}"
        );
    }
    assert!(end.server_left);
    assert_eq!(end.status.and_then(|status| status.code()), Some(3));
    assert_eq!(found.lock().unwrap()[0].code, FindingCode::ServerEnded);
}

#[tokio::test]
async fn half_a_message_of_a_dying_server_does_not_pass() {
    let mut running = plain("read a; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"resu'");
    running.send(&request(1)).await;
    let found = Arc::clone(&running.found);
    let (bytes, _) = running.rest().await;
    let text = String::from_utf8(bytes).unwrap();
    let answer: Value = serde_json::from_str(text.trim_end()).unwrap();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(1), &json!(-32010)),
        "{text}"
    );
    assert_eq!(found.lock().unwrap()[0].code, FindingCode::Malformed);
}

#[tokio::test]
async fn a_client_that_leaves_takes_the_server_with_it() {
    // It ends neither with its input nor when it is asked to.
    let running = plain("trap '' TERM; while :; do sleep 1; done");
    let (bytes, end) = running.close().await;
    assert_eq!((bytes.len(), end.server_left), (0, false));
    assert!(
        end.status.is_some_and(|status| status.code().is_none()),
        "it was killed"
    );

    let running =
        plain("cat > /dev/null; echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}'");
    let (bytes, end) = running.close().await;
    assert!(!bytes.is_empty(), "its last words arrive");
    assert_eq!(end.status.and_then(|status| status.code()), Some(0));
}

#[tokio::test]
async fn a_cancelled_guard_ends_the_server() {
    let running = plain("trap '' TERM; while :; do sleep 1; done");
    running.cancel.cancel();
    let (_, end) = running.rest().await;
    assert!(!end.server_left && end.status.is_some());
}

#[tokio::test]
async fn noise_of_a_server_does_not_reach_the_client_and_noise_of_a_client_is_answered() {
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let mut running = plain(&format!(
        "echo starting up; read a; echo '{answer}'; cat > /dev/null"
    ));
    running.send(b"{not json\n").await;
    assert_eq!(running.line().await["error"]["code"], -32700);
    running.send(&request(1)).await;
    assert_eq!(running.line().await, answer);
    assert_eq!(running.codes(), [FindingCode::Malformed; 2]);
    running.close().await;
}

#[tokio::test]
async fn a_carriage_return_within_a_line_does_not_pass() {
    let directory = tempfile::tempdir().unwrap();
    let seen = directory.path().join("seen");
    let mut running = plain(&format!("cat > {}", seen.display()));
    // Other readers see two messages.
    let hidden = "{\"jsonrpc\":\"2.0\",\r\"method\":\"notifications/x\"}\n";
    running.send(hidden.as_bytes()).await;
    assert_eq!(running.line().await["error"]["code"], -32700);
    let plain = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\r\n";
    running.send(plain.as_bytes()).await;
    assert_eq!(running.codes(), [FindingCode::Malformed]);
    running.close().await;
    assert_eq!(std::fs::read_to_string(seen).unwrap(), plain);
}

#[tokio::test]
async fn a_result_of_eight_megabytes_passes_whole() {
    let directory = tempfile::tempdir().unwrap();
    let text = "x".repeat(8 << 20);
    let answer =
        json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]}});
    std::fs::write(directory.path().join("answer"), format!("{answer}\n")).unwrap();
    let mut running = start(
        &format!(
            "read a; cat {}/answer; cat > /dev/null",
            directory.path().display()
        ),
        Policy::stock(),
        ProxyLimits::default(),
    );
    running.send(&request(1)).await;
    assert_eq!(running.line().await, answer);
    running.close().await;
}

#[tokio::test]
async fn a_message_that_is_too_long_becomes_an_error() {
    let limits = ProxyLimits {
        max_message_bytes: 10_000,
        exit_timeout: Duration::from_millis(300),
    };
    let script = "read a; printf '{\"jsonrpc\":\"2.0\",\"result\":{\"x\":\"'; head -c 100000 /dev/zero | tr '\\0' x; printf '\"},\"id\":1}\\n'; cat > /dev/null";
    let mut running = start(script, policy("policy: 1\n"), limits);
    running.send(&request(1)).await;
    let answer = running.line().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["isError"]),
        (&json!(1), &json!(true)),
        "{answer}"
    );
    let long =
        json!({"jsonrpc": "2.0", "id": 2, "method": "ping", "params": {"x": "x".repeat(20_000)}});
    running.send(format!("{long}\n").as_bytes()).await;
    let answer = running.line().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(2), &json!(-32600)),
        "{answer}"
    );
    assert_eq!(running.codes(), [FindingCode::TooLong; 2]);
    running.close().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_nothing_else() {
    // More than all buffers hold; then the client leaves without having read any of it.
    let line = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"x": "x".repeat(1000)}});
    let mut running = plain(&format!("while :; do echo '{line}'; done"));
    running.send(&request(1)).await;
    let Running {
        input,
        ended,
        output,
        ..
    } = running;
    drop(input);
    let end = tokio::time::timeout(HANGS, ended)
        .await
        .expect("nothing hangs")
        .unwrap();
    assert!(end.status.is_some());
    drop(output);
}

#[tokio::test]
async fn an_ask_that_nobody_answers_is_denied_over_the_wire() {
    let text = "policy: 1\nasks: {timeout: 50ms}\nrules:\n  - {id: ask, when: 'call.tool == \"x\"', decision: ask, on_error: block}\n";
    let mut running = start("cat > /dev/null", policy(text), ProxyLimits::default());
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {"elicitation": {}}}});
    running.send(format!("{hello}\n").as_bytes()).await;
    running.send(&request(1)).await;
    assert_eq!(running.line().await["method"], "elicitation/create");
    let refused = running.line().await;
    assert_eq!(
        (&refused["id"], &refused["result"]["isError"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(running.line().await["method"], "notifications/cancelled");
    running.close().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_started_is_an_error() {
    let command = GuardedCommand {
        program: "/nowhere/server".to_owned(),
        arguments: Vec::new(),
    };
    let setup = GuardSetup {
        asks: AskRoute::Nobody,
        server: "test".to_owned(),
        origin: None,
        policy: Arc::new(Policy::stock()),
        lock: None,
        watcher: None,
    };
    let session = GuardSession::new(setup, recorder().0.shared()).unwrap();
    let cancel = CancellationToken::new();
    let ran = run_stdio(
        &command,
        session,
        (tokio::io::empty(), tokio::io::sink()),
        StdioSetup::default(),
        &cancel,
    )
    .await;
    assert!(ran.unwrap_err().to_string().contains("/nowhere/server"));
}

#[tokio::test]
async fn a_client_that_leaves_while_the_server_takes_nothing_takes_it_with_it() {
    let mut running = plain("exec sleep 1000");
    // More than the pipe to the server holds.
    let long = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": "x".repeat(150_000)}});
    running.send(format!("{long}\n").as_bytes()).await;
    running.send(&request(1)).await;
    let (_, end) = running.close().await;
    assert!(!end.server_left && end.status.is_some());
}

#[tokio::test]
async fn a_server_that_listens_no_more_is_an_error_for_every_request() {
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    let mut running = plain(&format!("exec 0<&-; echo '{notice}'; exec sleep 1000"));
    assert_eq!(running.line().await, notice);
    running.send(&request(1)).await;
    let answer = running.line().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(1), &json!(-32000)),
        "{answer}"
    );
    let (_, end) = running.rest().await;
    assert!(end.server_left);
}
