//! What a verdict rests on: whether the payload itself went out, whether every message was seen, and whether the
//! protocol was spoken.

use std::path::Path;
use std::sync::Arc;

use proofhouse_oatf::Document;
use proofhouse_range::{
    CarrierKind, RunOptions, RunReport, SeenCall, SpokenProtocol, UNPARSED, UnseenKind,
};
use proofhouse_wire::server::{Reply, ReplyBody};
use proofhouse_wire::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::a2a;
use crate::client_support;
use crate::mcp_support::*;

/// A document of the library and its control.
fn with_control(slug: &str) -> (Document, Document) {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let read = |ending: &str| {
        #[expect(clippy::disallowed_methods, reason = "a file of this project")]
        let text = std::fs::read_to_string(scenarios.join(format!("{slug}{ending}"))).unwrap();
        proofhouse_oatf::load(&text).unwrap().document
    };
    (read(".yaml"), read(".twin.yaml"))
}

/// One call of a tool of a document, played beside its control.
async fn called(slug: &str, tool: &str, arguments: Value) -> RunReport {
    let (document, twin) = with_control(slug);
    let options = RunOptions {
        twin: Some(Arc::new(twin)),
        ..options()
    };
    let stage = Stage::with(document, options).await;
    let mut http = Http::initialized(&stage.url, json!({})).await;
    http.call("tools/call", json!({"name": tool, "arguments": arguments}))
        .await;
    stage.finish().await
}

fn armed(report: &RunReport, kind: CarrierKind) -> u64 {
    let carriers = report.exposure.carriers.iter();
    let of_kind = carriers.filter(|carrier| carrier.kind == kind);
    of_kind.map(|carrier| carrier.armed).sum()
}

#[tokio::test]
async fn only_the_branch_that_was_served_counts_as_delivered() {
    let error_wants_token = "response_fabrication/login-error-token-theft";
    let endless = "availability_disruption/endless-list";
    for (slug, tool, arguments, reached) in [
        (
            error_wants_token,
            "get_build_status",
            json!({"project": "a"}),
            true,
        ),
        (
            error_wants_token,
            "get_build_status",
            json!({"project": "a", "auth_token": "x"}),
            false,
        ),
        (endless, "read_entries", json!({"page": 1}), true),
        (endless, "read_entries", json!({"page": 99}), false),
        (endless, "read_entries", json!({"zzz": 1}), false),
        (endless, "count_entries", json!({}), false),
        (endless, "no_such_tool", json!({}), false),
    ] {
        let report = called(slug, tool, arguments.clone()).await;
        assert_eq!(report.exposure.reached, reached, "{tool} {arguments}");
        let responses = armed(&report, CarrierKind::ToolResponse);
        assert_eq!(responses > 0, reached, "{tool} {arguments}");
    }
}

const STRICT: &str = r#"{"tools": [{"name": "add", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}},
    "required": ["n"], "additionalProperties": false}, "responses": [{"content": "added"}]},
    {"name": "loose", "x-proofhouse-lenient": true, "inputSchema": {"type": "object", "required": ["n"]},
    "responses": [{"content": "done"}]}]}"#;

#[tokio::test]
async fn arguments_are_checked_against_the_schema_that_is_announced() {
    let state: Value = serde_json::from_str(STRICT).unwrap();
    let phases = json!([
        {"name": "before", "state": state, "trigger": {"event": "tools/call", "count": 3}},
        {"name": "after"},
    ]);
    let stage = Stage::http(of_phases(&phases)).await;
    let mut http = Http::initialized(&stage.url, json!({})).await;
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let valid = http.call("tools/call", call("add", json!({"n": 1}))).await;
    assert_eq!(valid["result"]["content"][0]["text"], "added");
    let listed = http.call("tools/list", json!({})).await;
    assert!(!listed.to_string().contains("lenient"), "{listed}");
    let wrong = http
        .call("tools/call", call("add", json!({"n": "one"})))
        .await;
    assert_eq!(wrong["result"]["isError"], true, "{wrong}");
    let told = wrong["result"]["content"][0]["text"].as_str().unwrap();
    assert!(told.contains("/n"), "{told}");
    let missing = http.call("tools/call", json!({"name": "add"})).await;
    assert_eq!(missing["result"]["isError"], true, "{missing}");
    stage.in_phase("after").await;
    let lenient = http.call("tools/call", call("loose", json!({}))).await;
    assert_eq!(lenient["result"]["content"][0]["text"], "done");
    http.call("tools/call", call("none", json!({}))).await;
    let report = stage.finish().await;
    let call = |tool: &str, valid| SeenCall {
        actor: "default".to_owned(),
        tool: tool.to_owned(),
        valid,
    };
    assert_eq!(
        report.calls,
        [
            call("add", true),
            call("add", false),
            call("add", false),
            call("loose", true),
            call("none", false)
        ]
    );
    assert_eq!(count(&report, "tools/call", "Request"), 5);
}

/// Revisions before 2025-11-25 have an error of the protocol for it.
#[tokio::test]
async fn older_revisions_are_told_of_wrong_arguments_by_an_error() {
    let state: Value = serde_json::from_str(STRICT).unwrap();
    let (stage, mut pipes) = Stage::stdio(of_state(&state), options()).await;
    pipes.call(1, "initialize", handshake("2025-06-18")).await;
    let params = json!({"name": "add", "arguments": {"n": "one"}});
    let refused = pipes.call(2, "tools/call", params.clone()).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let modern = pipes
        .call(3, "tools/call", envelope(params, json!({})))
        .await;
    assert_eq!(modern["result"]["isError"], true, "{modern}");
    stage.finish().await;
}

fn handshake(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

const TOOL: &str = r#"{"tools": [{"name": "t", "responses": [{"content": "hi"}]}]}"#;

fn of_tool(indicators: &Value) -> Document {
    let state: Value = serde_json::from_str(TOOL).unwrap();
    let text = json!({"oatf": "0.1", "attack": {"name": "Test",
        "execution": {"mode": "mcp_server", "state": state}, "indicators": indicators}});
    proofhouse_oatf::load(&text.to_string()).unwrap().document
}

fn secret_in_arguments() -> Value {
    json!([{"surface": "tools/call", "target": "arguments.note", "pattern": {"contains": "SECRET"}}])
}

/// The official SDK for JavaScript sends such texts.
#[tokio::test]
async fn a_lone_surrogate_hides_nothing() {
    let text = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t","arguments":{"note":"\ud800 SECRET"}}}"#;
    let stage = Stage::http(of_tool(&secret_in_arguments())).await;
    let http = Http::initialized(&stage.url, json!({})).await;
    let response = http.send(Method::POST, &[], text).await;
    assert_eq!(response.status, 200);
    assert_eq!(body(response).await["id"], 9);
    let report = stage.finish().await;
    assert_eq!(client_support::verdict(&report), "Exploited");
    assert_eq!(report.unseen, []);
    let (stage, mut pipes) = Stage::stdio(of_tool(&secret_in_arguments()), options()).await;
    pipes.call(1, "initialize", handshake("2025-11-25")).await;
    pipes.write(&format!("{text}\n")).await;
    assert_eq!(pipes.read().await["id"], 9);
    let report = stage.finish().await;
    assert_eq!(client_support::verdict(&report), "Exploited");
}

#[tokio::test]
async fn a_last_line_without_its_end_is_a_message() {
    let (stage, mut pipes) = Stage::stdio(of_tool(&secret_in_arguments()), options()).await;
    pipes.call(1, "initialize", handshake("2025-11-25")).await;
    let call = request(
        2,
        "tools/call",
        json!({"name": "t", "arguments": {"note": "SECRET"}}),
    );
    pipes.write(&call.to_string()).await;
    drop(pipes.input.take());
    assert_eq!(pipes.read().await["id"], 2);
    let report = stage.ended().await;
    assert_eq!(client_support::verdict(&report), "Exploited");
    assert_eq!(report.unseen, []);
}

#[tokio::test]
async fn what_breaks_off_is_kept_as_text_and_told() {
    let (stage, mut pipes) = Stage::stdio(of_tool(&secret_in_arguments()), options()).await;
    pipes.call(1, "initialize", handshake("2025-11-25")).await;
    pipes
        .write(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"note":"SEC"#)
        .await;
    drop(pipes.input.take());
    let report = stage.ended().await;
    let unseen = &report.unseen[..];
    assert_eq!(unseen.len(), 1, "{unseen:?}");
    assert_eq!(
        (unseen[0].kind, unseen[0].judged_as_text),
        (UnseenKind::CutOff, false)
    );
    assert!(unseen[0].excerpt.starts_with(r#"{"jsonrpc""#));
    let kept = report.trace.iter().find(|m| m.operation == UNPARSED);
    let kept = kept.unwrap();
    assert!(kept.content.as_str().unwrap().ends_with("SEC"));
}

/// What is no message is judged as text by indicators that look at the whole.
#[tokio::test]
async fn what_cannot_be_parsed_is_judged_as_text_where_that_can_be() {
    let whole = json!([{"surface": "tools/call", "target": "", "pattern": {"contains": "SECRET"}}]);
    for (indicators, text, judged, verdict) in [
        (whole.clone(), "the SECRET is out", true, "Exploited"),
        (whole, "nothing here", true, "NotExploited"),
        (
            secret_in_arguments(),
            "the SECRET is out",
            false,
            "NotExploited",
        ),
    ] {
        let stage = Stage::http(of_tool(&indicators)).await;
        let http = Http::initialized(&stage.url, json!({})).await;
        let response = http.send(Method::POST, &[], text).await;
        assert_eq!(response.status, 400);
        let report = stage.finish().await;
        let unseen = &report.unseen[..];
        assert_eq!(unseen.len(), 1);
        assert_eq!(
            (unseen[0].kind, unseen[0].judged_as_text),
            (UnseenKind::NotJson, judged)
        );
        assert_eq!(client_support::verdict(&report), verdict, "{indicators}");
        assert_eq!(count(&report, UNPARSED, "Request"), 1);
    }
}

/// Sends bytes on a connection of their own, and reads until it ends.
async fn sent_raw(address: &str, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // Who is refused early may not get everything sent.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
}

/// A request with this body.
fn raw(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         {headers}content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Ways to send a body that no message is made of, with what becomes of it: it is there, or it is lost.
fn refused_ways(body: &str, post: bool) -> Vec<(Vec<u8>, UnseenKind)> {
    let long = format!("x-long: {}\r\n", "x".repeat(200 << 10));
    let mut ways = vec![
        (raw("PUT", "/mcp", "", body), UnseenKind::NotAMessage),
        (raw("GET", "/mcp", "", body), UnseenKind::NotAMessage),
        (raw("DELETE", "/mcp", "", body), UnseenKind::NotAMessage),
        (
            raw("POST", "/mcp", "host: localhost\r\n", body),
            UnseenKind::CutOff,
        ),
        (raw("POST", "/mcp", &long, body), UnseenKind::TooLong),
        (
            raw("POST", "/mcp", "content-length: -1\r\n", body),
            UnseenKind::CutOff,
        ),
    ];
    if post {
        ways.push((raw("POST", "/", "", body), UnseenKind::NotAMessage));
        ways.push((raw("POST", "/mcp/", "", body), UnseenKind::NotAMessage));
    }
    ways
}

/// What has no body, and is no message.
fn harmless_ways() -> Vec<Vec<u8>> {
    let no_body = |method: &str, path: &str| {
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .into_bytes()
    };
    vec![
        no_body("GET", "/favicon.ico"),
        no_body("HEAD", "/"),
        no_body("OPTIONS", "/mcp"),
        no_body("GET", "/health"),
        Vec::new(),
        b"GET".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00".to_vec(),
        b"SSH-2.0-x\r\n".to_vec(),
    ]
}

/// The host and the port of a URL.
fn authority(url: &str) -> &str {
    let rest = url.trim_start_matches("http://");
    rest.split('/').next().unwrap()
}

/// What is refused before anybody reads it as a message has been sent all the same.
#[tokio::test]
async fn a_refused_request_is_kept_or_lost_but_never_forgotten() {
    let call = request(
        3,
        "tools/call",
        json!({"name": "t", "arguments": {"note": "SECRET"}}),
    );
    let whole = json!([{"surface": "tools/call", "target": "", "pattern": {"contains": "SECRET"}}]);
    for (indicators, is_text) in [(secret_in_arguments(), false), (whole, true)] {
        for (bytes, kind) in refused_ways(&call.to_string(), true) {
            let stage = Stage::http(of_tool(&indicators)).await;
            let address = authority(&stage.url).to_owned();
            sent_raw(&address, &bytes).await;
            Http::initialized(&stage.url, json!({})).await;
            let report = stage.finish().await;
            let way: String = String::from_utf8_lossy(&bytes).chars().take(90).collect();
            let unseen: Vec<_> = report.unseen.iter().map(|unseen| unseen.kind).collect();
            assert_eq!(unseen, [kind], "{way}: {:?}", report.warnings);
            let is_judged = is_text && kind == UnseenKind::NotAMessage;
            assert_eq!(report.unseen[0].judged_as_text, is_judged, "{way}");
            let verdict = if is_judged {
                "Exploited"
            } else {
                "NotExploited"
            };
            assert_eq!(client_support::verdict(&report), verdict, "{way}");
            let is_told = |warning: &String| warning.contains("this server is at /mcp");
            let is_elsewhere = way.starts_with("POST") && !way.contains(" /mcp ");
            assert_eq!(report.warnings.iter().any(is_told), is_elsewhere, "{way}");
        }
    }
    let stage = Stage::http(of_tool(&secret_in_arguments())).await;
    let address = authority(&stage.url).to_owned();
    for bytes in harmless_ways() {
        sent_raw(&address, &bytes).await;
    }
    Http::initialized(&stage.url, json!({})).await;
    let report = stage.finish().await;
    assert_eq!(report.unseen, []);
}

const DELEGATE: &str = r#"
oatf: "0.1"
attack:
  name: Test
  execution:
    mode: a2a_server
    state: {agent_card: {name: A, description: Send keys, skills: []}, task_responses: [{content: {status: completed}}]}
  indicators:
    - {surface: message/send, direction: request, target: "message.parts[*].text", pattern: {contains: SECRET}}
"#;

#[tokio::test]
async fn a_refused_request_to_an_agent_is_kept_or_lost_too() {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": a2a::message("SECRET")});
    for (bytes, kind) in refused_ways(&message.to_string(), false) {
        let server = a2a::Running::start(DELEGATE, a2a::options()).await;
        sent_raw(authority(&server.address), &bytes).await;
        server.card().await;
        let report = server.finish().await;
        let way: String = String::from_utf8_lossy(&bytes).chars().take(90).collect();
        let unseen: Vec<_> = report.unseen.iter().map(|unseen| unseen.kind).collect();
        assert_eq!(unseen, [kind], "{way}: {:?}", report.warnings);
        assert!(!report.unseen[0].judged_as_text, "{way}");
    }
    let server = a2a::Running::start(DELEGATE, a2a::options()).await;
    for bytes in harmless_ways() {
        sent_raw(authority(&server.address), &bytes).await;
    }
    server.card().await;
    let report = server.finish().await;
    assert_eq!(report.unseen, []);
}

fn batch() -> Value {
    json!([
        request(5, "tools/call", json!({"name": "t", "arguments": {"note": "SECRET"}})),
        notification("notifications/roots/list_changed", json!({})),
        request(6, "ping", json!({})),
        {"not": "a message"},
    ])
}

fn check_batch(answers: &Value) {
    let answers = answers.as_array().unwrap();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids.len(), 3, "{answers:?}");
    for id in [json!(5), json!(6), json!(null)] {
        assert!(ids.contains(&&id), "{answers:?}");
    }
}

/// 2025-03-26 has batches, and servers that agree to it must take them.
#[tokio::test]
async fn batches_are_answered_in_the_revision_that_has_them() {
    let stage = Stage::http(of_tool(&secret_in_arguments())).await;
    let mut http = Http::new(&stage.url);
    let first = request(0, "initialize", handshake("2025-03-26"));
    let response = http.post(&first).await;
    http.session = response.header("mcp-session-id").map(str::to_owned);
    assert_eq!(
        body(response).await["result"]["protocolVersion"],
        "2025-03-26"
    );
    let response = http.post(&batch()).await;
    assert_eq!(response.status, 200);
    check_batch(&body(response).await);
    let quiet = json!([notification("notifications/initialized", json!({}))]);
    assert_eq!(http.post(&quiet).await.status, 202);
    assert_eq!(http.post(&json!([])).await.status, 400);
    let report = stage.finish().await;
    assert_eq!(client_support::verdict(&report), "Exploited");
    assert_eq!(report.unseen.len(), 2, "{:?}", report.unseen);

    let (stage, mut pipes) = Stage::stdio(of_tool(&secret_in_arguments()), options()).await;
    pipes.call(1, "initialize", handshake("2025-03-26")).await;
    pipes.send(&batch()).await;
    check_batch(&pipes.read().await);
    let report = stage.finish().await;
    assert_eq!(client_support::verdict(&report), "Exploited");
}

/// Calls of a batch that take their time are answered with the others.
#[tokio::test]
async fn a_batch_waits_for_its_slowest_call() {
    let state = json!({"tools": [
        {"name": "slow", "x-steps": [{"pause": "20ms"}], "responses": [{"content": "late"}]},
        {"name": "quick", "responses": [{"content": "early"}]},
    ]});
    let (stage, mut pipes) = Stage::stdio(of_state(&state), options()).await;
    pipes.call(1, "initialize", handshake("2025-03-26")).await;
    let calls = json!([
        request(2, "tools/call", json!({"name": "slow"})),
        request(3, "tools/call", json!({"name": "quick"})),
    ]);
    pipes.send(&calls).await;
    let answers = pipes.read().await;
    assert_eq!(answers.as_array().unwrap().len(), 2, "{answers}");
    stage.finish().await;

    let stage = Stage::http(of_state(&state)).await;
    let mut http = Http::new(&stage.url);
    let response = http
        .post(&request(0, "initialize", handshake("2025-03-26")))
        .await;
    http.session = response.header("mcp-session-id").map(str::to_owned);
    let response = http.post(&calls).await;
    assert!(response.is_event_stream());
    let mut events = response.events();
    let mut ids = Vec::new();
    while let Some(message) = next(&mut events).await {
        let messages = message
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![message.clone()]);
        ids.extend(messages.iter().map(|message| message["id"].clone()));
    }
    ids.sort_by_key(Value::to_string);
    assert_eq!(ids, [json!(2), json!(3)]);
    stage.finish().await;
}

/// Elsewhere a batch is refused; what stands in it is seen all the same.
#[tokio::test]
async fn batches_of_other_revisions_are_refused_and_judged() {
    let stage = Stage::http(of_tool(&secret_in_arguments())).await;
    let http = Http::initialized(&stage.url, json!({})).await;
    assert_eq!(http.post(&batch()).await.status, 400);
    let report = stage.finish().await;
    assert_eq!(client_support::verdict(&report), "Exploited");
}

const PAGE: &str = "<!DOCTYPE html><html><body>It works!</body></html>";

fn page() -> Reply {
    Reply::empty(StatusCode::OK)
        .with_header("content-type", "text/html")
        .with_body(ReplyBody::Whole(PAGE.into()))
}

fn client_document(mode: &str, state: &Value) -> String {
    json!({"oatf": "0.1", "attack": {"name": "Test", "execution": {"mode": mode, "state": state},
        "indicators": [{"target": "x", "pattern": {"contains": "x"}}]}})
    .to_string()
}

fn a2a() -> String {
    let message = json!({"message": {"role": "user", "parts": [{"kind": "text", "text": "hi"}]}});
    let state = json!({"actions": [{"method": "message/send", "params": message}]});
    client_document("a2a_client", &state)
}

fn ag_ui() -> String {
    let messages = json!([{"id": "1", "role": "user", "content": "hi"}]);
    client_document(
        "ag_ui_client",
        &json!({"run_agent_input": {"messages": messages}}),
    )
}

fn mcp() -> String {
    let state = json!({"actions": [{"method": "tools/call", "params": {"name": "t"}}]});
    client_document("mcp_client", &state)
}

/// Anything that answers HTTP is not yet an agent.
#[tokio::test]
async fn a_web_page_is_no_agent() {
    let server = client_support::Scripted::start(|_, _| page()).await;
    for document in [a2a(), ag_ui(), mcp()] {
        let report = client_support::play_impatiently(&document, &server.url).await;
        let [speech] = &report.spoke[..] else {
            panic!("{:?}", report.spoke)
        };
        assert!(
            matches!(speech.protocol, SpokenProtocol::NotTheProtocol { .. }),
            "{speech:?}"
        );
        assert!(!report.exposure.reached, "{document}");
        assert!(!report.acted_after_delivery);
    }
}

#[tokio::test]
async fn errors_only_are_no_answer() {
    let failing = |_: usize, request: &client_support::Arrived| {
        let id = &request.body["id"];
        let error = json!({"code": -32603, "message": "the model is down"});
        let answer = match request.body["method"].as_str() {
            Some("initialize") => {
                json!({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-11-25",
                "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}})
            }
            Some("server/discover") => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}})
            }
            Some(_) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
            None if request.body.get("runId").is_some() => {
                return client_support::events(vec![
                    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}),
                    json!({"type": "RUN_ERROR", "message": "the model is down"}),
                ]);
            }
            None => return Reply::empty(StatusCode::NOT_FOUND),
        };
        Reply::json(StatusCode::OK, answer.to_string())
    };
    let server = client_support::Scripted::start(failing).await;
    for document in [a2a(), ag_ui(), mcp()] {
        let report = client_support::play_impatiently(&document, &server.url).await;
        let [speech] = &report.spoke[..] else {
            panic!("{:?}", report.spoke)
        };
        let SpokenProtocol::OnlyErrors { first } = &speech.protocol else {
            panic!("{speech:?}")
        };
        assert!(first.contains("the model is down"), "{first}");
        assert!(!report.acted_after_delivery);
    }
}

/// What a framework sends around a model that fails is no act, and a run that ended with an error is known.
#[tokio::test]
async fn a_run_that_ends_with_an_error_has_failed() {
    let input = json!({"messages": [{"id": "1", "role": "user", "content": "hi"}]});
    let of = |event: Value| {
        let started = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
        let back = json!({"type": "STATE_SNAPSHOT", "snapshot": {"banner": "hi"}});
        client_support::events(vec![started, back, event])
    };
    let finished = || json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"});
    let failed = || json!({"type": "RUN_ERROR", "message": "the model is down"});
    for (ends, expected) in [
        (vec![failed()], Some("the model is down")),
        (vec![finished(), failed()], Some("the model is down")),
        (vec![failed(), finished()], None),
    ] {
        let phase = json!({"state": {"run_agent_input": input}});
        let trigger = json!({"event": "run_agent_input"});
        let mut phases = vec![phase; ends.len()];
        for phase in phases.iter_mut().take(ends.len() - 1) {
            phase["trigger"] = trigger.clone();
        }
        let document = json!({"oatf": "0.1", "attack": {"name": "Test",
            "execution": {"mode": "ag_ui_client", "phases": phases},
            "indicators": [{"surface": "tool_call_args", "target": "delta", "pattern": {"contains": "x"}}]}});
        let server = client_support::Scripted::start(move |number, _| {
            of(ends.get(number).unwrap_or(&ends[0]).clone())
        })
        .await;
        let report = client_support::play_impatiently(&document.to_string(), &server.url).await;
        assert_eq!(report.spoke[0].failed.as_deref(), expected);
        assert!(!report.acted_after_delivery);
        assert!(!report.said_after_delivery);
    }
}

/// Calls of a frontend's tools are held to the schemas that it announced.
#[tokio::test]
async fn calls_of_frontend_tools_are_valid_or_not() {
    let tool = json!({"name": "look", "description": "Looks.", "parameters": {"type": "object",
        "properties": {"at": {"type": "string"}}, "required": ["at"]}});
    let document = json!({"oatf": "0.1", "attack": {"name": "Test", "execution": {"mode": "ag_ui_client", "state": {
        "run_agent_input": {"messages": [{"id": "1", "role": "user", "content": "hi"}], "tools": [tool]}}},
        "indicators": [{"surface": "tool_call_args", "target": "delta", "pattern": {"contains": "x"}}]}});
    for (tool, arguments, valid) in [
        ("look", r#"{"at": "it"}"#, Some(true)),
        ("look", r#"{"at": 7}"#, Some(false)),
        ("look", "", Some(false)),
        ("look", r#"{"at": "i"#, Some(false)),
        ("its_own", "{}", None),
    ] {
        let server = client_support::Scripted::start(move |number, _| {
            let mut all = vec![json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})];
            if number == 0 {
                all.push(
                    json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": tool}),
                );
                let (left, right) = arguments.split_at(arguments.len() / 2);
                all.extend([left, right].map(
                    |delta| json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": delta}),
                ));
                all.push(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}));
            }
            all.push(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}));
            client_support::events(all)
        })
        .await;
        let report = client_support::play_impatiently(&document.to_string(), &server.url).await;
        let calls: Vec<bool> = report.calls.iter().map(|call| call.valid).collect();
        assert_eq!(
            calls,
            valid.into_iter().collect::<Vec<_>>(),
            "{tool} {arguments}"
        );
    }
}

/// Listing tools and leaving is no act; calling one is.
#[tokio::test]
async fn what_the_subject_does_after_the_delivery_is_known() {
    for calls in [false, true] {
        let state: Value = serde_json::from_str(TOOL).unwrap();
        let stage = Stage::http(of_state(&state)).await;
        let mut http = Http::initialized(&stage.url, json!({})).await;
        http.call("tools/list", json!({})).await;
        http.call("ping", json!({})).await;
        if calls {
            http.call("tools/call", json!({"name": "t"})).await;
        }
        let report = stage.finish().await;
        assert!(report.exposure.reached);
        assert_eq!(report.acted_after_delivery, calls);
        assert_eq!(report.spoke[0].protocol, SpokenProtocol::Yes);
    }
    let state: Value = serde_json::from_str(TOOL).unwrap();
    let report = Stage::http(of_state(&state)).await.finish().await;
    assert_eq!(report.spoke[0].protocol, SpokenProtocol::Nobody);
}

/// A document and its control, which differ where `»evil«` stands.
fn pair(mode: &str, text: &str) -> (String, Document) {
    let of = |word: &str| {
        let execution: Value = serde_json::from_str(&text.replace("»evil«", word)).unwrap();
        json!({"oatf": "0.1", "attack": {"name": "Test", "execution": {"mode": mode, "phases": execution},
            "indicators": [{"target": "x", "pattern": {"contains": "x"}}]}})
        .to_string()
    };
    let control = proofhouse_oatf::load(&of("kind")).unwrap().document;
    (of("evil"), control)
}

/// A notification that the control sends, too, carries nothing; what it announces does.
#[tokio::test]
async fn a_notification_of_the_control_is_no_payload() {
    let phases = r#"[
        {"name": "trust", "state": {"tools": [{"name": "t", "description": "t", "responses": [{"content": "hi"}]}]},
         "trigger": {"event": "tools/call"}},
        {"name": "strike", "state": {"tools": [{"name": "t", "description": "»evil«", "responses": [{"content": "hi"}]}]},
         "on_enter": [{"send": {"method": "notifications/tools/list_changed"}}]}]"#;
    for lists in [false, true] {
        let (document, control) = pair("mcp_server", phases);
        let document = proofhouse_oatf::load(&document).unwrap().document;
        let options = RunOptions {
            twin: Some(Arc::new(control)),
            ..options()
        };
        let (stage, mut pipes) = Stage::stdio(document, options).await;
        pipes.call(1, "initialize", handshake("2025-11-25")).await;
        pipes.call(2, "tools/call", json!({"name": "t"})).await;
        let told = pipes.read().await;
        assert_eq!(told["method"], "notifications/tools/list_changed");
        if lists {
            pipes.call(3, "tools/list", json!({})).await;
        }
        let report = stage.finish().await;
        assert_eq!(armed(&report, CarrierKind::Notification), 0);
        assert_eq!(report.exposure.reached, lists);
    }
}

/// Of the answers of an agent, only the one that was given counts.
#[tokio::test]
async fn an_agents_answer_counts_by_what_it_said() {
    let phases = r#"[{"state": {"agent_card": {"name": "a"}, "task_responses": [
        {"when": {"message.messageId": "pay"}, "content": {"kind": "message", "parts": [{"kind": "text", "text": "»evil«"}]}},
        {"content": {"kind": "message", "parts": [{"kind": "text", "text": "hello"}]}}]}}]"#;
    for (said, reached) in [("hi", false), ("pay", true)] {
        let (document, control) = pair("a2a_server", phases);
        let options = RunOptions {
            twin: Some(Arc::new(control)),
            ..crate::a2a::options()
        };
        let running = crate::a2a::Running::start(&document, options).await;
        let message = json!({"message": {"role": "user", "messageId": said, "parts": [{"kind": "text", "text": said}]}});
        let request = request(1, "message/send", message).to_string();
        assert_eq!(running.post(request).await.unwrap().status, 200);
        let report = running.finish().await;
        assert_eq!(report.exposure.reached, reached, "{said}");
    }
}

/// The same for what a frontend's tools give, and for what a client asks.
#[tokio::test]
async fn results_of_frontends_and_actions_of_clients_count_by_what_they_were() {
    let phases = r#"[{"state": {"run_agent_input": {"messages": [{"id": "1", "role": "user", "content": "hi"}]}, "tool_responses": [
        {"when": {"toolCallName": "look"}, "content": "»evil«"}, {"content": "fine"}]}}]"#;
    for (tool, reached) in [("see", false), ("look", true)] {
        let (document, control) = pair("ag_ui_client", phases);
        let server = client_support::Scripted::start(move |number, _| {
            let mut all = vec![json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})];
            if number == 0 {
                all.push(json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": tool}));
                all.push(json!({"type": "TOOL_CALL_END", "toolCallId": "c"}));
            } else {
                let text = |kind: &str| json!({"type": kind, "messageId": "m", "role": "assistant", "delta": "ok"});
                all.extend(["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"].map(text));
            }
            all.push(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}));
            client_support::events(all)
        })
        .await;
        let endpoint = proofhouse_range::ActorEndpoint::Url(server.url.clone());
        let options = RunOptions {
            twin: Some(Arc::new(control)),
            ..client_support::options(endpoint)
        };
        let report = client_support::try_play(&document, options).await.unwrap();
        assert_eq!(report.exposure.reached, reached, "{tool}");
        assert_eq!(report.said_after_delivery, reached, "{tool}");
        assert_eq!(report.spoke[0].protocol, SpokenProtocol::Yes);
    }
    let phases = r#"[{"state": {"actions": [{"method": "message/send", "params": {"message": {"role": "user",
        "parts": [{"kind": "text", "text": "hi"}]}}}]}, "trigger": {"event": "message/send", "match": {"kind": "message"}}},
        {"state": {"actions": [{"method": "message/send", "params": {"message": {"role": "user",
        "parts": [{"kind": "text", "text": "»evil«"}]}}}]}}]"#;
    for kind in ["message", "task"] {
        let (document, control) = pair("a2a_client", phases);
        let server = client_support::Scripted::start(move |_, request| {
            let result = json!({"kind": kind, "messageId": "m", "role": "agent", "id": "1", "contextId": "1",
                "status": {"state": "completed"}, "parts": [{"kind": "text", "text": "ok"}]});
            let answer = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result});
            match request.body["method"].as_str() {
                Some(_) => Reply::json(StatusCode::OK, answer.to_string()),
                None => Reply::empty(StatusCode::NOT_FOUND),
            }
        })
        .await;
        let endpoint = proofhouse_range::ActorEndpoint::Url(server.url.clone());
        let options = RunOptions {
            twin: Some(Arc::new(control)),
            ..client_support::options(endpoint)
        };
        let report = client_support::try_play(&document, options).await.unwrap();
        let reached = kind == "message";
        assert_eq!(report.exposure.reached, reached, "{kind}");
        assert_eq!(report.said_after_delivery, reached, "{kind}");
    }
}

/// A text on which `SLOW` takes seconds: ones and zeros in no order.
fn slow_text() -> String {
    let mut bits = 1_u64;
    let bit = |_| {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        if bits & 1 == 0 { '0' } else { '1' }
    };
    (0..700_000).map(bit).collect()
}

const SLOW: &str = "1[01]{900}2";

/// A dispatch condition that could not be evaluated is no "otherwise": the other branch is not served in silence.
#[tokio::test]
async fn a_branch_whose_condition_took_too_long_is_told() {
    let state = json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}, "responses": [
        {"when": {"arguments.text": {"regex": SLOW}}, "content": "armed"},
        {"content": "harmless"},
    ]}]});
    let stage = Stage::http(of_state(&state)).await;
    let mut http = Http::initialized(&stage.url, json!({})).await;
    let arguments = json!({"name": "add", "arguments": {"text": slow_text()}});
    let answer = http.call("tools/call", arguments).await;
    assert!(!answer.to_string().contains("harmless"), "{answer}");
    let report = stage.finish().await;
    let unseen = report
        .unseen
        .iter()
        .find(|unseen| unseen.kind == UnseenKind::NotCompared);
    let unseen = unseen.unwrap_or_else(|| panic!("{:?}", report.unseen));
    assert!(
        unseen.excerpt.starts_with("tools/call: the `when`"),
        "{unseen:?}"
    );
}

/// What a trigger or an extractor could not be tried on is no "no match": nobody knows what the run would have been.
#[tokio::test]
async fn what_could_not_be_compared_in_time_is_told() {
    let (slow, text) = (SLOW, slow_text());
    let state = json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}, "responses": [{"content": "added"}]}]});
    let trigger = json!({"event": "tools/call", "match": {"arguments.text": {"regex": slow}}});
    let extractor = json!({"name": "found", "source": "request", "type": "regex", "selector": format!("({slow})")});
    for (phase, reason) in [
        (
            json!({"name": "before", "state": state, "trigger": trigger}),
            "tools/call: ",
        ),
        (
            json!({"name": "before", "state": state, "trigger": {"event": "tools/list"}, "extractors": [extractor]}),
            "tools/call: the extractor `found`",
        ),
    ] {
        let stage = Stage::http(of_phases(&json!([phase, {"name": "after"}]))).await;
        let mut http = Http::initialized(&stage.url, json!({})).await;
        let answer = http
            .call(
                "tools/call",
                json!({"name": "add", "arguments": {"text": text}}),
            )
            .await;
        assert_eq!(answer["result"]["content"][0]["text"], "added");
        let report = stage.finish().await;
        let unseen = report
            .unseen
            .iter()
            .find(|unseen| unseen.kind == UnseenKind::NotCompared);
        let unseen = unseen.unwrap_or_else(|| panic!("{:?}", report.unseen));
        assert!(unseen.excerpt.starts_with(reason), "{unseen:?}");
        assert!(!unseen.judged_as_text);
    }
}
