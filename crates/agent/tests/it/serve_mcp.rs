//! The agent over MCP, on the wire: itself and its capabilities as tools, with their rules.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proofhouse_agent::serve::{AgentLimits, AgentServer, ServeAddresses};
use proofhouse_test_support::wait::soon;
use proofhouse_wire::{CancellationToken, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::served::*;
use crate::tasks::*;

const RULES: &str = r#"parameters: {properties: {city: {type: string, default: Oslo}}}
capabilities:
  notes:
    include: [read, write]
    bindings: {owner: context.user.id}
    before:
      - {assert: "c.cap.notes_read.count_successful < 1", match: read}
      - {assert: "review('boss')", match: write}
"#;

/// A session of the legacy era.
struct Session<'s> {
    served: &'s Served,
    id: String,
}

impl<'s> Session<'s> {
    async fn open(served: &'s Served) -> Self {
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }});
        let accept = [("accept", "application/json, text/event-stream")];
        let url = served.mcp_url();
        let response = served
            .send(Method::POST, &url, &accept, body.to_string())
            .await;
        let id = response.header("mcp-session-id").unwrap().to_owned();
        let told = json_of(response).await;
        assert_eq!(told["result"]["serverInfo"]["name"], "clerk");
        let session = Self { served, id };
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        session.post(&note).await;
        session
    }

    async fn post(&self, body: &Value) -> proofhouse_wire::client::StreamedResponse {
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", self.id.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let url = self.served.mcp_url();
        self.served
            .send(Method::POST, &url, &headers, body.to_string())
            .await
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let response = self.post(&body).await;
        if response.is_event_stream() {
            all(response).await.pop().unwrap()
        } else {
            json_of(response).await
        }
    }

    async fn call(&self, name: &str, arguments: Value) -> Value {
        let answer = self
            .ask("tools/call", json!({"name": name, "arguments": arguments}))
            .await;
        answer["result"].clone()
    }
}

async fn modern(served: &Served, method: &str, mut params: Value) -> Value {
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let version = "2026-07-28";
    let mut headers = vec![
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", version),
        ("mcp-method", method),
    ];
    if !name.is_empty() {
        headers.push(("mcp-name", &name));
    }
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let response = served
        .send(Method::POST, &served.mcp_url(), &headers, body.to_string())
        .await;
    json_of(response).await
}

#[tokio::test]
async fn the_agent_and_its_capabilities_are_tools() {
    let model = Puppet::new(|request| Ok(say(&format!("{} messages", request.messages.len()))));
    let served = Served::start(&agent(RULES), model).await;
    let session = Session::open(&served).await;
    let tools = session.ask("tools/list", json!({})).await["result"]["tools"].clone();
    let names: Vec<&str> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["clerk", "notes_read", "notes_write"]);
    let schema = &tools[0]["inputSchema"];
    assert_eq!(schema["required"], json!(["message"]));
    assert_eq!(schema["properties"]["city"]["default"], "Oslo");
    assert!(tools[1]["inputSchema"]["properties"].get("owner").is_none());
    // Each message to the agent is a conversation of its own.
    for _ in 0..2 {
        let said = session
            .call("clerk", json!({"message": "hi", "city": "Rome"}))
            .await;
        assert_eq!(said["content"][0]["text"], "1 messages");
    }
    let wrong = session
        .call("clerk", json!({"message": "hi", "city": 3}))
        .await;
    assert_eq!(wrong["isError"], true);
    assert_eq!(
        session.call("clerk", json!({"message": 3})).await["isError"],
        true
    );
    // The rules of the capability hold, in the session.
    let attempt = json!({"path": "a", "owner": "mallory"});
    let read = session.call("notes_read", attempt.clone()).await;
    assert_eq!(
        read["structuredContent"],
        json!({"owner": "local", "path": "a"})
    );
    let again = session.call("notes_read", attempt.clone()).await;
    assert_eq!(again["isError"], true);
    assert!(
        again["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("restricted")
    );
    // Nobody can be asked, so what needs an approval is denied.
    let write = session.call("notes_write", json!({"path": "a"})).await;
    assert!(
        write["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("restricted"),
        "{write}"
    );
    // What the agent may not use is not there.
    let hidden = session
        .ask("tools/call", json!({"name": "notes_fail", "arguments": {}}))
        .await;
    assert_eq!(hidden["error"]["code"], -32602);
    // Another session has its own count.
    let other = Session::open(&served).await;
    assert_eq!(other.call("notes_read", attempt).await.get("isError"), None);
    served.finish().await;
}

#[tokio::test]
async fn clients_of_the_modern_era_share_the_rules() {
    let served = Served::start(&agent(RULES), Puppet::new(|_| Ok(say("hi")))).await;
    let tools = modern(&served, "tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 3);
    let read = json!({"name": "notes_read", "arguments": {"path": "a"}});
    let first = modern(&served, "tools/call", read.clone()).await;
    assert_eq!(first["result"]["structuredContent"]["owner"], "local");
    let second = modern(&served, "tools/call", read).await;
    assert_eq!(second["result"]["isError"], true);
    let said = json!({"name": "clerk", "arguments": {"message": "hello"}});
    let said = modern(&served, "tools/call", said).await;
    assert_eq!(said["result"]["content"][0]["text"], "hi");
    served.finish().await;
}

#[tokio::test]
async fn a_review_inside_the_agent_is_denied_too() {
    let model = Puppet::calling(vec![("notes_write", json!({"path": "a"}))]);
    let served = Served::start(&agent(RULES), model.clone()).await;
    let session = Session::open(&served).await;
    let said = session.call("clerk", json!({"message": "write a"})).await;
    assert_eq!(said["content"][0]["text"], "done");
    let told = model.asked.lock().unwrap()[1].messages.clone();
    assert!(format!("{told:?}").contains("restricted"), "{told:?}");
    served.finish().await;
}

#[tokio::test]
async fn a_capability_named_like_the_agent_keeps_its_name() {
    // An agent may ask itself, in another task.
    let model = Puppet::new(|_| Ok(say("hi")));
    let served = Served::start(&agent("capabilities: {clerk: '*'}\n"), model).await;
    let tools = modern(&served, "tools/list", json!({})).await;
    let names: Vec<&Value> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, [&json!("ask_clerk"), &json!("clerk")]);
    served.finish().await;
}

#[tokio::test]
async fn a_client_over_lines_ends_the_server_when_it_goes() {
    let model = Arc::new(Patient::default());
    let host = host(&agent(""), model.clone());
    let places = ServeAddresses {
        a2a: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        ..ServeAddresses::default()
    };
    let server = AgentServer::bind(host, "demo", "clerk", &places, AgentLimits::default())
        .await
        .unwrap();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let server = server.with_mcp_lines(input, output);
    let serving = tokio::spawn(server.serve(CancellationToken::new()));
    let (reader, mut writer) = tokio::io::split(ours);
    let mut lines = BufReader::new(reader).lines();
    let start = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "clerk", "arguments": {"message": "hi"}}});
    let wait = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": {"name": "clerk", "arguments": {"message": "wait"}}});
    for message in [start, call, wait] {
        writer
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
        if message["id"] != 3 {
            let line = lines.next_line().await.unwrap().unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(answer["id"], message["id"]);
            assert!(answer["error"].is_null(), "{answer}");
        }
    }
    soon("the model waits", || {
        model.waiting.load(Ordering::SeqCst) == 1
    })
    .await;
    writer.shutdown().await.unwrap();
    drop((writer, lines));
    tokio::time::timeout(PATIENCE, serving)
        .await
        .expect("the server ends")
        .unwrap();
    assert_eq!(model.cancelled.load(Ordering::SeqCst), 1);
}
