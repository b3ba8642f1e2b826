//! Tools of manifests behind the server: sessions are tasks, errors are told, nothing stays behind.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use std::sync::{Arc, Mutex};

use proofhouse_manifest::Bundle;
use proofhouse_mcp_serve::OperatorNotes;
use proofhouse_test_support::wait::soon;
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{CallEvent, Environment, Observer, Runtimes, ToolLimits};
use proofhouse_tools::serve::ManifestTools;
use proofhouse_wire::{CancellationToken, Method};
use serde_json::{Value, json};

use crate::serve_support::{self, Stage, json_of, limits, server};
use crate::support::{self, Reply, Server, json_reply, reply};

/// A session service and some expressions; `PORT` is where the service is.
const MANIFEST: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: files
description: Files in a session.
settings: {properties: {api_key: {format: password}}}
actions:
  - name: read
    description: Reads a file.
    parameters: {properties: {path: {type: string}, lines: {type: integer, default: 10}}}
    execute:
      stateful_session:
        create: {method: POST, url: "http://127.0.0.1:PORT/sessions"}
        extract: {id: $.id}
        execute: {method: GET, url: "http://127.0.0.1:PORT/sessions/{session.id}/{parameters.path}"}
        destroy: {method: DELETE, url: "http://127.0.0.1:PORT/sessions/{session.id}"}
---
kind: commonagents.info/v1beta2/tool
namespace: demo
name: gone
description: Its server is not there.
actions:
  - name: ask
    description: Asks.
    execute: {stateless_http: {method: POST, url: "http://127.0.0.1:1/"}}
  - name: sing
    description: Makes no request.
    execute: {cel: {expression: "{'song': 'la'}"}}
---
kind: commonagents.info/v1beta2/tool
namespace: demo
name: pixel
description: A picture.
actions:
  - name: draw
    description: Draws.
    execute: {cel: {expression: "{'content_type': 'image/png', 'base64': 'AAAA'}"}}
---
kind: commonagents.info/v1beta2/tool
namespace: demo
name: album
description: Parts as the tools of MCP servers yield them.
actions:
  - name: open
    description: Opens it.
    execute:
      cel:
        expression: >-
          [{'type': 'text', 'text': 'two'}, {'type': 'image', 'mime_type': 'image/png', 'base64': 'AAAA'},
          {'type': 'resource', 'uri': 'a:b', 'base64': 'AAAA'}]
"#;

fn backend(port: u16, result_bytes: usize) -> ManifestTools {
    let (bundle, findings) = Bundle::read(&MANIFEST.replace("PORT", &port.to_string()));
    assert!(findings.is_empty(), "{findings:?}");
    let limits = ToolLimits {
        max_result_bytes: result_bytes,
        ..support::limits()
    };
    let egress = EgressPolicy::allowing(["127.0.0.0/8".parse().unwrap()]);
    let runtimes = Runtimes::new(&limits, egress).unwrap();
    let settings = json!({"api_key": "sk-secret-1"});
    let tools = bundle.tools().cloned().map(|tool| {
        let environment = Environment::new(settings.clone(), || "2026-01-01T00:00:00.000Z".into());
        (Arc::new(tool), environment)
    });
    ManifestTools::new(tools.collect(), runtimes, limits)
}

async fn service() -> Server {
    Server::start(|number, request| {
        let text = match request.split(' ').next() {
            Some("POST") => return json_reply(&json!({"id": format!("s{number}")})),
            Some("DELETE") => return reply("204 No Content", "", ""),
            _ => request.split(' ').nth(1).unwrap_or_default(),
        };
        if text.ends_with("/missing") {
            reply("404 Not Found", "", "there is no sk-secret-1")
        } else {
            reply(
                "200 OK",
                "content-type: text/plain\r\n",
                format!("read {text}"),
            )
        }
    })
    .await
}

fn requests(service: &Server) -> Vec<String> {
    let requests = service.requests.lock().unwrap();
    let lines = requests.iter().filter_map(|request| request.lines().next());
    lines
        .map(|line| line.trim_end_matches(" HTTP/1.1").to_owned())
        .collect()
}

fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_session_is_one_task_of_each_tool() {
    let service = service().await;
    let backend = backend(service.port, 1 << 20);
    let stage = Stage::with(Arc::new(backend), Arc::default(), limits()).await;
    let (one, two) = (stage.session().await, stage.session().await);
    let list = json_of(one.ask(1, "tools/list", json!({})).await).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["files", "gone_ask", "gone_sing", "pixel", "album"]);
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["path"]));
    assert!(requests(&service).is_empty(), "a list begins no session");
    for (session, id) in [(&one, 2), (&one, 3), (&two, 2)] {
        json_of(session.call(id, "files", json!({"path": "a"})).await).await;
    }
    assert_eq!(
        requests(&service),
        [
            "POST /sessions",
            "GET /sessions/s0/a",
            "GET /sessions/s0/a",
            "POST /sessions",
            "GET /sessions/s3/a"
        ]
    );
    one.send(Method::DELETE, "").await;
    soon("the session ends", || requests(&service).len() == 6).await;
    assert_eq!(requests(&service)[5], "DELETE /sessions/s0");
    let answer = json_of(
        stage
            .modern(
                "tools/call",
                json!({"name": "files", "arguments": {"path": "b"}}),
            )
            .await,
    )
    .await;
    assert_eq!(
        text_of(&answer),
        "read /sessions/s6/b",
        "the modern era has a task of its own"
    );
    stage.finish().await;
    let mut ended = requests(&service).split_off(8);
    ended.sort();
    assert_eq!(ended, ["DELETE /sessions/s3", "DELETE /sessions/s6"]);
}

#[tokio::test]
async fn errors_are_told_and_end_a_tool_for_its_session_only() {
    let service = service().await;
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes: OperatorNotes = {
        let heard = Arc::clone(&heard);
        Arc::new(move |note| heard.lock().unwrap().push(note.to_owned()))
    };
    let backend = backend(service.port, 1 << 20).with_notes(notes);
    let stage = Stage::with(Arc::new(backend), Arc::default(), limits()).await;
    let session = stage.session().await;
    let missing = json_of(session.call(1, "files", json!({"path": "missing"})).await).await;
    assert_eq!(missing["result"]["isError"], true);
    assert!(text_of(&missing).contains("http_status") && !text_of(&missing).contains("sk-secret"));
    let wrong = json_of(
        session
            .call(2, "files", json!({"lines": "x", "other": 1}))
            .await,
    )
    .await;
    assert_eq!(wrong["result"]["isError"], true);
    for named in ["bad_arguments", "path", "lines", "other"] {
        assert!(text_of(&wrong).contains(named), "{named}: {wrong}");
    }
    assert!(
        heard.lock().unwrap().is_empty(),
        "a model is told of these, an operator is not"
    );
    let sung = json_of(session.call(3, "gone_sing", json!({})).await).await;
    assert_eq!(sung["result"]["structuredContent"], json!({"song": "la"}));
    let gone = serve_support::all(session.call(4, "gone_ask", json!({})).await).await;
    let gone = gone.last().unwrap().clone();
    assert!(gone["result"]["isError"] == true && text_of(&gone).contains("unreachable"));
    let sung = json_of(session.call(5, "gone_sing", json!({})).await).await;
    assert_eq!(
        sung["result"]["structuredContent"],
        json!({"song": "la"}),
        "a host that does not answer is no reason for the rest of the tool not to work"
    );
    let alive = json_of(session.call(6, "pixel", json!({})).await).await;
    let picture = json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]);
    assert_eq!(alive["result"], json!({"content": picture}));
    let album = json_of(session.call(7, "album", json!({})).await).await;
    let parts = json!([
        {"type": "text", "text": "two"}, picture[0],
        {"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}},
    ]);
    assert_eq!(album["result"], json!({"content": parts}));
    let other = stage.session().await;
    let sung = json_of(other.call(1, "gone_sing", json!({})).await).await;
    assert_eq!(sung["result"]["structuredContent"], json!({"song": "la"}));
    {
        let heard = heard.lock().unwrap();
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert!(heard[0].contains("`gone` cannot go on"), "{heard:?}");
    }
    // Nobody can begin anew in the modern era, so there a tool does.
    for _ in 0..2 {
        let gone = json_of(
            stage
                .modern("tools/call", json!({"name": "gone_ask"}))
                .await,
        )
        .await;
        assert!(text_of(&gone).contains("unreachable"));
        let sung = json_of(
            stage
                .modern("tools/call", json!({"name": "gone_sing"}))
                .await,
        )
        .await;
        assert_eq!(sung["result"]["structuredContent"], json!({"song": "la"}));
    }
    stage.finish().await;
}

#[tokio::test]
async fn what_is_cut_says_so() {
    let service = service().await;
    let stage = Stage::with(
        Arc::new(backend(service.port, 10)),
        Arc::default(),
        limits(),
    )
    .await;
    let session = stage.session().await;
    let answer = json_of(session.call(1, "files", json!({"path": "long"})).await).await;
    assert_eq!(text_of(&answer), "read /sess");
    assert!(
        answer["result"]["content"][1]["text"]
            .as_str()
            .unwrap()
            .contains("cut after 10 bytes")
    );
    assert_eq!(
        answer["result"]["_meta"],
        json!({"proofhouse/truncated": true})
    );
    stage.finish().await;
}

/// Keeps the names of what was called.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn observe(&self, event: CallEvent<'_>) {
        if let CallEvent::Called { action, .. } = event {
            self.0.lock().unwrap().push(action.to_owned());
        }
    }
}

#[tokio::test]
async fn the_official_rust_client_uses_the_server() {
    use rmcp::ServiceExt;
    use rmcp::model::CallToolRequestParams;

    let service = Server::start(|_, _| Reply::Close).await;
    let heard = Arc::new(Heard::default());
    let backend = backend(service.port, 1 << 20).with_observer(Arc::clone(&heard) as Arc<_>);
    let (theirs, ours) = tokio::io::duplex(64 << 10);
    let (input, output) = tokio::io::split(ours);
    let serving = server(Arc::new(backend), limits());
    let serving = tokio::spawn(serving.serve_lines(input, output, CancellationToken::new()));
    let client = ().serve(tokio::io::split(theirs)).await.unwrap();
    let info = client.peer_info().unwrap();
    assert_eq!(info.protocol_version.to_string(), "2025-11-25");
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 5);
    let called = client
        .call_tool(CallToolRequestParams::new("gone_sing"))
        .await
        .unwrap();
    assert_eq!(called.structured_content, Some(json!({"song": "la"})));
    client.cancel().await.unwrap();
    serving.await.unwrap();
    assert_eq!(*heard.0.lock().unwrap(), ["sing"]);
}
