//! The server over lines: one client, both eras.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use std::sync::Arc;
use std::time::Duration;

use proofhouse_mcp_serve::ServeLimits;
use proofhouse_test_support::wait::soon;
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::task::JoinHandle;

use crate::serve_support::{Counts, Demo, limits, modern_body, server};

/// A client at the other end of two pipes.
struct Client {
    input: DuplexStream,
    output: tokio::io::Lines<BufReader<DuplexStream>>,
    counts: Arc<Counts>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Client {
    fn start(limits: ServeLimits) -> Self {
        let demo = Demo::default();
        let counts = Arc::clone(&demo.counts);
        let (input, theirs) = duplex(64 << 10);
        let (output, ours) = duplex(64 << 10);
        let stop = CancellationToken::new();
        let serving = server(Arc::new(demo), limits).serve_lines(theirs, output, stop.clone());
        Self {
            input,
            output: BufReader::new(ours).lines(),
            counts,
            stop,
            serving: tokio::spawn(serving),
        }
    }

    async fn say(&mut self, line: impl std::fmt::Display) {
        let line = format!("{line}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, id: u64, method: &str, params: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
    }

    async fn hear(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(Duration::from_secs(10), self.output.next_line()).await;
        let line = line.expect("a line in time").unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    async fn initialize(&mut self) {
        self.ask(0, "initialize", json!({"protocolVersion": "2025-11-25"}))
            .await;
        assert_eq!(
            self.hear().await.unwrap()["result"]["protocolVersion"],
            "2025-11-25"
        );
        self.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
    }

    /// Closes the input; returns what is still said.
    async fn leave(mut self) -> Vec<Value> {
        drop(std::mem::replace(&mut self.input, duplex(1).0));
        let mut heard = Vec::new();
        while let Some(message) = self.hear().await {
            heard.push(message);
        }
        tokio::time::timeout(Duration::from_secs(10), self.serving)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(self.counts.get().2, 0, "nothing runs");
        assert_eq!(self.counts.get().1, 1, "the tools are closed");
        heard
    }
}

#[tokio::test]
async fn both_eras_share_a_connection_and_its_tools() {
    let mut client = Client::start(limits());
    client.ask(1, "tools/list", json!({})).await;
    assert_eq!(
        client.hear().await.unwrap()["error"]["code"],
        -32600,
        "first the handshake"
    );
    client.ask(2, "ping", json!({})).await;
    assert_eq!(client.hear().await.unwrap()["result"], json!({}));
    client
        .say(modern_body(3, "server/discover", json!({})))
        .await;
    assert_eq!(
        client.hear().await.unwrap()["result"]["resultType"],
        "complete"
    );
    client.initialize().await;
    client
        .ask(4, "initialize", json!({"protocolVersion": "2025-11-25"}))
        .await;
    assert_eq!(
        client.hear().await.unwrap()["error"]["code"],
        -32600,
        "only once"
    );
    client
        .ask(
            5,
            "tools/call",
            json!({"name": "echo", "arguments": {"a": 1}}),
        )
        .await;
    let answer = client.hear().await.unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({"a": 1}));
    assert_eq!(answer["result"].get("resultType"), None);
    client
        .say(modern_body(6, "tools/call", json!({"name": "echo"})))
        .await;
    assert_eq!(
        client.hear().await.unwrap()["result"]["resultType"],
        "complete"
    );
    client.say(modern_body(7, "ping", json!({}))).await;
    assert_eq!(client.hear().await.unwrap()["error"]["code"], -32601);
    assert_eq!(client.counts.get().0, 1);
    assert_eq!(client.leave().await, Vec::<Value>::new());
}

#[tokio::test]
async fn what_makes_no_sense_is_answered_and_passed_over() {
    let small = ServeLimits {
        wire: proofhouse_wire::WireLimits {
            max_message_bytes: 1000,
            ..proofhouse_wire::WireLimits::default()
        },
        ..limits()
    };
    let mut client = Client::start(small);
    client.initialize().await;
    let long = format!("\"{}\"", "x".repeat(5000));
    for (line, code) in [
        ("{", -32700),
        ("\u{fffd}\u{0}", -32700),
        ("[]", -32600),
        (r#"[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]"#, -32600),
        (
            r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#,
            -32600,
        ),
        (r#"{"jsonrpc": "1.0", "id": 1, "method": "ping"}"#, -32600),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "server/discover"}"#,
            -32602,
        ),
        (&long, -32600),
    ] {
        client.say(line).await;
        let answer = client.hear().await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{line}");
    }
    // Answers to what nobody asked, and notifications that nobody knows, are passed over.
    client
        .say(r#"{"jsonrpc": "2.0", "id": 9, "result": {}}"#)
        .await;
    client
        .say(r#"{"jsonrpc": "2.0", "method": "notifications/what"}"#)
        .await;
    client.ask(10, "ping", json!({})).await;
    assert_eq!(client.hear().await.unwrap()["id"], 10);
    client.leave().await;
}

#[tokio::test]
async fn calls_are_cancelled_by_id_in_both_eras_and_bounded_in_number() {
    let mut client = Client::start(ServeLimits {
        max_session_calls: 3,
        ..limits()
    });
    client.initialize().await;
    client.ask(1, "tools/call", json!({"name": "hang"})).await;
    client
        .say(modern_body(2, "tools/call", json!({"name": "hang"})))
        .await;
    let listening = json!({"notifications": {"toolsListChanged": true}});
    client
        .say(modern_body(3, "subscriptions/listen", listening))
        .await;
    assert!(
        client.hear().await.unwrap()["method"]
            .as_str()
            .unwrap()
            .ends_with("acknowledged")
    );
    client.ask(4, "tools/call", json!({"name": "echo"})).await;
    let refused = client.hear().await.unwrap();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(4), &json!(-32603))
    );
    for id in [1, 2, 3] {
        let params = json!({"requestId": id, "reason": "enough"});
        client
            .say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
            .await;
    }
    soon("all end", || client.counts.get().3 == 2).await;
    client.ask(1, "tools/call", json!({"name": "grow"})).await;
    let (one, other) = (client.hear().await.unwrap(), client.hear().await.unwrap());
    let told: Vec<_> = [one, other]
        .into_iter()
        .filter(|one| one.get("id").is_none())
        .collect();
    // The subscription is over, so only the session is told.
    assert_eq!(
        told,
        [json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})]
    );
    assert_eq!(client.leave().await, Vec::<Value>::new());
}

#[tokio::test]
async fn what_was_asked_before_the_input_ended_is_answered() {
    let mut client = Client::start(limits());
    client.initialize().await;
    client.ask(1, "tools/call", json!({"name": "steps"})).await;
    client.ask(2, "tools/call", json!({"name": "hang"})).await;
    let heard = client.leave().await;
    let answers: Vec<_> = heard.iter().filter_map(|one| one.get("id")).collect();
    assert_eq!(answers, [&json!(1)], "and what hangs is cancelled");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_left() {
    let wire = proofhouse_wire::WireLimits {
        idle_timeout: Duration::from_millis(200),
        ..proofhouse_wire::WireLimits::default()
    };
    let mut client = Client::start(ServeLimits { wire, ..limits() });
    client.initialize().await;
    let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "echo", "arguments": {"a": "x".repeat(2000)}}});
    // It goes on sending for as long as somebody takes it.
    while client
        .input
        .write_all(format!("{line}\n").as_bytes())
        .await
        .is_ok()
    {}
    tokio::time::timeout(Duration::from_secs(10), client.serving)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((client.counts.get().1, client.counts.get().2), (1, 0));
}

#[tokio::test]
async fn the_end_of_the_server_ends_everything() {
    let mut client = Client::start(limits());
    client.initialize().await;
    client.ask(1, "tools/call", json!({"name": "hang"})).await;
    soon("it runs", || client.counts.get().2 == 1).await;
    client.stop.cancel();
    tokio::time::timeout(Duration::from_secs(10), client.serving)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(client.counts.get(), (1, 1, 0, 1));
}
