//! The importers as a whole: lines in, messages out.

use proofhouse_oatf::Direction;
use serde_json::{Value, json};

use super::*;
use crate::trace::{LineErrorKind, ReadSummary, TraceItem, TraceMessage};

type ReadResult = (
    Vec<(u64, TraceMessage)>,
    Vec<(u64, LineErrorKind)>,
    ReadSummary,
);

type Row = (u64, &'static str, &'static str, &'static str, Value);

/// Reads and splits into messages and `(line, kind)` of the problems.
fn read(text: &str, format: Option<Format>, options: &ImportOptions) -> ReadResult {
    let (_, mut source) = open(text.as_bytes(), format, options);
    let (mut messages, mut problems) = (Vec::new(), Vec::new());
    for item in &mut source {
        match item.unwrap() {
            TraceItem::Message { line, message, .. } => messages.push((line, message)),
            TraceItem::Problem(error) => problems.push((error.line, error.kind)),
        }
    }
    let summary = source.summary().clone();
    assert_eq!(summary.messages, messages.len() as u64);
    assert_eq!(
        summary.skipped() + summary.warnings(),
        problems.len() as u64
    );
    for (index, (_, message)) in messages.iter().enumerate() {
        assert_eq!(message.sequence, index as u64 + 1);
    }
    (messages, problems, summary)
}

fn check(
    text: &str,
    options: &ImportOptions,
    expected: &[Row],
    expected_problems: &[(u64, LineErrorKind)],
) {
    let (messages, problems, _) = read(text, None, options);
    let found: Vec<_> = messages
        .iter()
        .map(|(line, message)| {
            let direction = message.direction.map_or("", Direction::as_str);
            (
                *line,
                message.protocol.as_str(),
                &*message.operation,
                direction,
                message.content.clone(),
            )
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(problems, expected_problems);
}

#[test]
fn a_log_of_mcp() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
{"jsonrpc":"2.0","id":1,"result":{"capabilities":{}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"a","arguments":{"x":1},"content":"mine"}}
[{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p"}},{"jsonrpc":"2.0","id":"1","result":{"content":[]}}]
{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}
"#,
        &ImportOptions::default(),
        &[
            (
                1,
                "mcp",
                "initialize",
                "request",
                json!({"protocolVersion": "2025-11-25"}),
            ),
            (
                2,
                "mcp",
                "initialize",
                "response",
                json!({"capabilities": {}}),
            ),
            (3, "mcp", "notifications/initialized", "request", json!({})),
            (
                4,
                "mcp",
                "tools/call",
                "request",
                json!({"name": "a", "arguments": {"x": 1}, "content": "mine"}),
            ),
            (5, "mcp", "prompts/get", "request", json!({"name": "p"})),
            (
                5,
                "mcp",
                "tools/call",
                "response",
                json!({"content": [], "name": "a", "arguments": {"x": 1}}),
            ),
            (
                6,
                "mcp",
                "prompts/get",
                "response",
                json!({"code": -32602, "message": "no", "name": "p"}),
            ),
        ],
        &[],
    );
}

#[test]
fn ids_of_two_directions_do_not_meet() {
    check(
        r#"{"direction":"out","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
{"direction":"in","message":{"jsonrpc":"2.0","id":1,"method":"roots/list"}}
{"direction":"out","message":{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}}
{"direction":"in","message":{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}}
{"from":"a","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}
{"from":"b","msg":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
{"from":"b","msg":{"jsonrpc":"2.0","id":1,"result":{}}}
{"from":"a","to":"b","msg":{"jsonrpc":"2.0","id":1,"result":{}}}
"#,
        &ImportOptions::default(),
        &[
            (1, "mcp", "tools/list", "request", json!({})),
            (2, "mcp", "roots/list", "request", json!({})),
            (3, "mcp", "roots/list", "response", json!({"roots": []})),
            (4, "mcp", "tools/list", "response", json!({"tools": []})),
            (5, "mcp", "ping", "request", json!({})),
            (6, "mcp", "tools/list", "request", json!({})),
            (7, "mcp", "ping", "response", json!({})),
            (8, "mcp", "tools/list", "response", json!({})),
        ],
        &[],
    );
}

#[test]
fn a2a_of_both_generations() {
    let text = |text: &str| json!({"kind": "text", "text": text});
    let log = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage",
            "params": {"message": {"role": "ROLE_USER", "parts": [{"text": "hi"}]}}}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_WORKING"}}}}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"artifactUpdate": {"taskId": "t", "artifact": {"parts": [{"text": "x"}]}}}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": {"id": "t"}}),
        json!({"jsonrpc": "2.0", "id": 2, "result": {"kind": "task", "id": "t"}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tasks/list"}),
    ];
    let log: Vec<_> = log.iter().map(Value::to_string).collect();
    let status = json!({"taskId": "t", "status": {"state": "working"}, "kind": "status-update", "final": false});
    let mut part = json!({"text": "x"});
    part["kind"] = "text".into();
    let artifact = json!({"taskId": "t", "artifact": {"parts": [part]}, "kind": "artifact-update"});
    check(
        &log.join("\n"),
        &ImportOptions::default(),
        &[
            (
                1,
                "a2a",
                "message/stream",
                "request",
                json!({"message": {"role": "user", "parts": [text("hi")], "kind": "message"}}),
            ),
            (2, "a2a", "message/stream", "response", status.clone()),
            (2, "a2a", "task/status", "response", status),
            (3, "a2a", "message/stream", "response", artifact.clone()),
            (3, "a2a", "task/artifact", "response", artifact),
            (4, "a2a", "tasks/get", "request", json!({"id": "t"})),
            (
                5,
                "a2a",
                "tasks/get",
                "response",
                json!({"kind": "task", "id": "t"}),
            ),
            (6, "a2a", "tasks/list", "request", json!({})),
        ],
        &[],
    );
    let (messages, ..) = read(&log.join("\n"), None, &ImportOptions::default());
    assert_eq!(
        messages[0].1.raw,
        Some(json!({"message": {"role": "ROLE_USER", "parts": [{"text": "hi"}]}})),
    );
    assert_eq!(messages[5].1.raw, None);
}

#[test]
fn bad_lines_of_a_log_cost_only_themselves() {
    check(
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{\"tools\":[]}}\nnoise\n{\"level\":\"info\"}\n[]\n[1]\n\
         {\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}\n{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\n{\"jsonrpc\":",
        &ImportOptions::default(),
        &[
            (1, "mcp", "tools/list", "response", json!({"tools": []})),
            (7, "mcp", "unknown", "response", json!({})),
            (8, "mcp", "ping", "request", json!({})),
        ],
        &[
            (1, LineErrorKind::Unrequested),
            (2, LineErrorKind::NotJson),
            (3, LineErrorKind::NotAMessage),
            (4, LineErrorKind::NotAMessage),
            (5, LineErrorKind::NotAMessage),
            (6, LineErrorKind::NotAMessage),
            (7, LineErrorKind::Unrequested),
            (9, LineErrorKind::Truncated),
        ],
    );
}

#[test]
fn options_override_what_the_log_suggests() {
    let options = ImportOptions {
        protocol: Some("own".into()),
        actor: Some("default".into()),
        enrich: false,
        ..ImportOptions::default()
    };
    let log = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}\n\
               {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
    let (messages, ..) = read(log, None, &options);
    for (_, message) in &messages {
        assert_eq!(
            (message.protocol.as_str(), message.actor.as_deref()),
            ("own", Some("default"))
        );
    }
    assert_eq!(messages[1].1.content, json!({}));
}

#[test]
fn open_requests_are_bounded() {
    let mut options = ImportOptions::default();
    options.limits.max_open_requests = 2;
    let mut log = String::new();
    for id in 0..5 {
        log.push_str(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n"
        ));
    }
    log.push_str("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}\n");
    let (_, problems, summary) = read(&log, None, &options);
    assert_eq!(summary.forgotten_requests, 3);
    assert_eq!(problems, [(6, LineErrorKind::Unrequested)]);
}

fn attribute(key: &str, value: Value) -> Value {
    let value = match value {
        Value::String(_) => json!({"stringValue": value}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Array(items) => {
            let values: Vec<_> = items
                .into_iter()
                .map(|item| attribute("", item)["value"].clone())
                .collect();
            json!({"arrayValue": {"values": values}})
        }
        Value::Object(map) => {
            let values: Vec<_> = map
                .into_iter()
                .map(|(key, value)| attribute(&key, value))
                .collect();
            json!({"kvlistValue": {"values": values}})
        }
        other => json!({"boolValue": other}),
    };
    json!({"key": key, "value": value})
}

fn span(name: &str, attributes: &[(&str, Value)], more: &Value) -> Value {
    let attributes: Vec<_> = attributes
        .iter()
        .map(|(key, value)| attribute(key, value.clone()))
        .collect();
    let mut span = json!({"name": name, "attributes": attributes,
        "startTimeUnixNano": "1767323045000000000", "endTimeUnixNano": "1767323046000000000"});
    for (key, value) in more.as_object().unwrap() {
        span[key] = value.clone();
    }
    span
}

fn document(spans: &[Value]) -> Value {
    json!({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": spans}]}]})
}

#[test]
fn spans_of_tools() {
    let spans = [
        span(
            "execute_tool weather",
            &[
                ("gen_ai.operation.name", json!("execute_tool")),
                ("gen_ai.tool.name", json!("weather")),
                (
                    "gen_ai.tool.call.arguments",
                    json!({"city": "Oslo", "days": 3}),
                ),
                ("gen_ai.tool.call.result", json!("{\"temp\":3}")),
            ],
            &json!({}),
        ),
        span(
            "GET /",
            &[("http.request.method", json!("GET"))],
            &json!({}),
        ),
        span(
            "tools/call mail",
            &[
                ("mcp.method.name", json!("tools/call")),
                ("gen_ai.tool.name", json!("mail")),
            ],
            &json!({"status": {"code": 2, "message": "refused"}}),
        ),
        span(
            "resources/read",
            &[
                ("mcp.method.name", json!("resources/read")),
                ("mcp.resource.uri", json!("file:///x")),
            ],
            &json!({}),
        ),
    ];
    let text = document(&spans);
    let expected = [
        (
            1,
            "mcp",
            "tools/call",
            "request",
            json!({"name": "weather", "arguments": {"city": "Oslo", "days": 3}}),
        ),
        (
            1,
            "mcp",
            "tools/call",
            "response",
            json!({
            "content": [{"type": "text", "text": "{\"temp\":3}"}], "structuredContent": {"temp": 3},
            "name": "weather", "arguments": {"city": "Oslo", "days": 3}}),
        ),
        (1, "mcp", "tools/call", "request", json!({"name": "mail"})),
        (
            1,
            "mcp",
            "tools/call",
            "response",
            json!({
            "content": [{"type": "text", "text": "refused"}], "isError": true, "name": "mail"}),
        ),
        (
            1,
            "mcp",
            "resources/read",
            "request",
            json!({"uri": "file:///x"}),
        ),
    ];
    let options = ImportOptions::default();
    check(&text.to_string(), &options, &expected, &[]);
    check(&format!("{text:#}"), &options, &expected, &[]);
    let (messages, _, summary) = read(&text.to_string(), None, &options);
    assert_eq!(summary.ignored, 1);
    assert_eq!(messages[0].1.time.as_deref(), Some("2026-01-02T03:04:05Z"));
    assert_eq!(messages[1].1.time.as_deref(), Some("2026-01-02T03:04:06Z"));
}

#[test]
fn spans_of_models_and_agents() {
    let call =
        json!({"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Oslo"}});
    let answer = json!({"type": "tool_call_response", "id": "c1", "response": "cold"});
    let user = json!({"role": "user", "parts": [{"type": "text", "content": "hi"}]});
    let first = span(
        "chat m",
        &[
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.request.model", json!("m")),
            (
                "gen_ai.tool.definitions",
                json!("[{\"type\":\"function\",\"name\":\"weather\",\"parameters\":{}}]"),
            ),
            ("gen_ai.input.messages", json!(json!([user]).to_string())),
            (
                "gen_ai.output.messages",
                json!([{"role": "assistant", "parts": [call]}]),
            ),
        ],
        &json!({}),
    );
    let executed = span(
        "execute_tool weather",
        &[
            ("gen_ai.operation.name", json!("execute_tool")),
            ("gen_ai.tool.name", json!("weather")),
            ("gen_ai.tool.call.id", json!("c1")),
            ("gen_ai.tool.call.arguments", json!("{\"city\":\"Oslo\"}")),
            ("gen_ai.tool.call.result", json!("cold")),
        ],
        &json!({}),
    );
    let history =
        json!([user, {"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [answer]}]);
    let second = span(
        "chat m",
        &[
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.output.messages", json!([])),
        ],
        &json!({"events": [{"name": "gen_ai.client.inference.operation.details",
            "attributes": [attribute("gen_ai.input.messages", json!(history.to_string()))]}]}),
    );
    let agent = span(
        "invoke_agent helper",
        &[
            ("gen_ai.operation.name", json!("invoke_agent")),
            ("gen_ai.conversation.id", json!("k")),
            ("gen_ai.input.messages", json!([user])),
            (
                "gen_ai.output.messages",
                json!([{"role": "assistant", "parts": [{"type": "text", "content": "ok"}]}]),
            ),
        ],
        &json!({}),
    );
    let tools = json!([{"type": "function", "name": "weather", "parameters": {}}]);
    let arguments = json!({"city": "Oslo"});
    check(
        // JSON Lines.
        &[first, executed, second, agent]
            .map(|span| document(&[span]).to_string())
            .join("\n"),
        &ImportOptions::default(),
        &[
            (
                1,
                "mcp",
                "tools/list",
                "response",
                json!({"tools": [{"name": "weather", "inputSchema": {}}]}),
            ),
            (
                1,
                "gen_ai",
                "chat",
                "request",
                json!({"messages": [user], "tools": tools, "model": "m"}),
            ),
            (
                1,
                "mcp",
                "tools/call",
                "request",
                json!({"name": "weather", "arguments": arguments}),
            ),
            (
                1,
                "gen_ai",
                "chat",
                "response",
                json!({"messages": [{"role": "assistant", "parts": [call]}]}),
            ),
            // The request was told by the chat; the result is new.
            (
                2,
                "mcp",
                "tools/call",
                "response",
                json!({
                "content": [{"type": "text", "text": "cold"}], "name": "weather", "arguments": arguments}),
            ),
            // The history repeats both.
            (3, "gen_ai", "chat", "request", json!({"messages": history})),
            (
                4,
                "a2a",
                "message/send",
                "request",
                json!({"message": {
                "kind": "message", "role": "user", "parts": [{"kind": "text", "text": "hi"}], "contextId": "k"}}),
            ),
            (
                4,
                "a2a",
                "message/send",
                "response",
                json!({
                "kind": "message", "role": "agent", "parts": [{"kind": "text", "text": "ok"}]}),
            ),
        ],
        &[],
    );
}

#[test]
fn events_of_before_and_log_records() {
    let old = span(
        "chat",
        &[("gen_ai.operation.name", json!("chat"))],
        &json!({"events": [
            {"name": "gen_ai.user.message", "attributes": [attribute("content", json!("hi"))]},
            {"name": "gen_ai.choice", "attributes": [attribute("message", json!("{\"content\":\"yo\"}"))]},
        ]}),
    );
    let message = |role: &str, text: &str| json!({"messages": [{"role": role, "parts": [{"type": "text", "content": text}]}]});
    let expected = [
        (1, "gen_ai", "chat", "request", message("user", "hi")),
        (1, "gen_ai", "chat", "response", message("assistant", "yo")),
    ];
    check(
        &document(&[old]).to_string(),
        &ImportOptions::default(),
        &expected,
        &[],
    );
    let record = json!({"eventName": "gen_ai.client.inference.operation.details", "attributes": [
        attribute("gen_ai.input.messages", message("user", "hi")["messages"].clone()),
        attribute("gen_ai.output.messages", message("assistant", "yo")["messages"].clone()),
    ]});
    let logs = |records: Value| {
        json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).to_string()
    };
    let options = ImportOptions::default();
    check(&logs(json!([record])), &options, &expected, &[]);
    // The older events as log records, named by either of the two fields, with a body.
    let body = |body: Value| attribute("", body)["value"].clone();
    let records = json!([
        {"eventName": "gen_ai.user.message", "body": body(json!({"content": "hi"}))},
        {
            "attributes": [attribute("event.name", json!("gen_ai.choice"))],
            "body": body(json!({"index": 0, "message": {"content": "yo", "tool_calls": [
                {"id": "c", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}},
            ]}})),
        },
        {"eventName": "gen_ai.tool.message", "body": body(json!({"id": "c", "content": "rain"}))},
        {"eventName": "app.started", "body": body(json!({"content": "hi"}))},
    ]);
    let (messages, problems, summary) = read(&logs(records), None, &options);
    assert!(problems.is_empty());
    assert_eq!(summary.ignored, 1);
    let found: Vec<_> = messages
        .iter()
        .map(|(_, message)| (&*message.operation, message.content.to_string()))
        .collect();
    for (operation, part) in [
        ("chat", "hi"),
        ("tools/call", "Oslo"),
        ("chat", "yo"),
        ("tools/call", "rain"),
    ] {
        assert!(
            found
                .iter()
                .any(|(of, content)| *of == operation && content.contains(part)),
            "{operation} {part}: {found:?}"
        );
    }
}

#[test]
fn bad_documents_cost_only_themselves() {
    let tool = |name: &str| {
        span(
            name,
            &[("gen_ai.operation.name", json!("execute_tool"))],
            &json!({}),
        )
    };
    let good = document(&[tool("execute_tool a")]).to_string();
    let row = |line, name: &str| (line, "mcp", "tools/call", "request", json!({"name": name}));
    let options = ImportOptions::default();
    // The first line cut off, and good ones after it.
    check(
        &format!("{}\n{good}\nnoise\n{{}}\n{good}", &good[..40]),
        &options,
        &[row(2, "a"), row(5, "a")],
        &[
            (1, LineErrorKind::NotJson),
            (3, LineErrorKind::NotJson),
            (4, LineErrorKind::NotAMessage),
        ],
    );
    // What follows may have to be mended.
    let odd = good.replace("\"execute_tool a\"", "\"execute_tool a\",\"n\":NaN");
    check(
        &format!("{}\n{odd}\n", &good[..40]),
        &options,
        &[row(2, "a")],
        &[(1, LineErrorKind::NotJson), (2, LineErrorKind::Repaired)],
    );
    // One document, cut off after its first span.
    let pretty = format!(
        "{:#}",
        document(&[tool("execute_tool a"), tool("execute_tool b")])
    );
    let cut = pretty.find("execute_tool b").unwrap();
    check(
        &pretty[..cut],
        &options,
        &[row(1, "a")],
        &[(1, LineErrorKind::Truncated)],
    );
    let lines = pretty.lines().count() as u64;
    // Two documents over several lines, one after the other.
    check(
        &format!("{pretty}\n{pretty}\n"),
        &options,
        &[
            row(1, "a"),
            row(1, "b"),
            row(lines + 1, "a"),
            row(lines + 1, "b"),
        ],
        &[],
    );
    // One that breaks in the middle costs no other, and is told once.
    let middle = pretty.find("execute_tool b").unwrap() - 20;
    for broken in [
        format!("{}\n    @@@\n{}", &pretty[..middle], &pretty[middle..]),
        format!(
            "{}\n    }}}}}}}}}}}}\n{}",
            &pretty[..middle],
            &pretty[middle..]
        ),
        pretty[..middle].to_owned(),
    ] {
        let next = broken.lines().count() as u64 + 1;
        check(
            &format!("{broken}\n{pretty}\n{good}\n"),
            &options,
            &[
                row(1, "a"),
                row(next, "a"),
                row(next, "b"),
                row(next + lines, "a"),
            ],
            &[(1, LineErrorKind::NotJson)],
        );
    }
    // A list of documents, on one line and on many.
    for list in [
        format!("[{good},{good}]"),
        format!("[\n  {good},\n  {good}\n]"),
    ] {
        check(&list, &options, &[row(1, "a"), row(1, "a")], &[]);
    }
    // Larger than allowed.
    let mut small = ImportOptions::default();
    small.limits.max_document_bytes = good.len() + 10;
    check(
        &format!(
            "{good}\n{}\n{good}",
            document(&[tool("execute_tool a"), tool("b")])
        ),
        &small,
        &[row(1, "a"), row(3, "a")],
        &[(2, LineErrorKind::TooLong)],
    );
}

#[test]
fn what_is_not_recognised_is_reported_line_by_line() {
    let (messages, problems, _) = read("hello\n{\"a\":1}\n", None, &ImportOptions::default());
    assert!(messages.is_empty());
    assert_eq!(
        problems,
        [(1, LineErrorKind::NotJson), (2, LineErrorKind::NotAMessage)]
    );
    assert_eq!(
        "x".parse::<Format>().unwrap_err().to_string(),
        "no such format; there are trace, otlp, json-rpc"
    );
    for row in FORMATS {
        assert_eq!(row.name.parse(), Ok(row.format));
        assert_eq!(row.format.to_string(), row.name);
    }
}

proptest::proptest! {
    /// No importer panics, and every line is either blank, read or reported.
    #[test]
    fn importers_survive_anything(
        lines in proptest::collection::vec(
            proptest::prop_oneof![
                proptest::collection::vec(proptest::num::u8::ANY, 0..60),
                proptest::sample::select(vec![
                    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":[1]}",
                    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}",
                    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":5,\"attributes\":{},\"status\":1}]}]}]}",
                    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"execute_tool x\"},3]}]}]}",
                    "{\"resourceSpans\":7}",
                    "{\"resourceSpans\":[",
                ]).prop_map(|line| line.as_bytes().to_vec()),
            ],
            0..8,
        ),
    ) {
        let input = lines.join(&b'\n');
        for row in FORMATS {
            let (_, source) = open(&input[..], Some(row.format), &ImportOptions::default());
            for item in source {
                let Ok(_) = item else { break };
            }
        }
    }
}

use proptest::strategy::Strategy as _;
