//! Traffic to detect in: messages of all three protocols, as agents under test send and receive them.

use proofhouse_detect::TraceMessage;
use proofhouse_oatf::Direction;
use serde_json::{Value, json};

/// One message of each kind that traces are made of; some of them match public documents.
pub(crate) fn messages() -> Vec<TraceMessage> {
    let prose = "The quarterly report lists revenue by region and names the open questions. ";
    let tools: Vec<Value> = (0..12)
        .map(|n| {
            json!({
                "name": format!("records_{n}"),
                "description": format!("Reads record set {n} and answers with its fields as text."),
                "inputSchema": {
                    "type": "object",
                    "properties": {"id": {"type": "string"}, "limit": {"type": "integer"}},
                    "required": ["id"],
                },
            })
        })
        .collect();
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let kinds: Vec<(&str, &str, Direction, Value)> = vec![
        ("mcp", "tools/list", Direction::Request, json!({})),
        (
            "mcp",
            "tools/list",
            Direction::Response,
            json!({"tools": tools}),
        ),
        (
            "mcp",
            "tools/call",
            Direction::Request,
            call("records_3", json!({"id": "record-42", "limit": 10})),
        ),
        (
            "mcp",
            "tools/call",
            Direction::Request,
            call(
                "read_file",
                json!({"path": "/home/user/project/src/main.rs"}),
            ),
        ),
        (
            "mcp",
            "tools/call",
            Direction::Request,
            call(
                "send_email",
                json!({"to": "team@example.com", "subject": "Report", "body": prose.repeat(8)}),
            ),
        ),
        (
            "mcp",
            "tools/call",
            Direction::Request,
            call("read_file", json!({"path": "/home/user/.ssh/id_rsa"})),
        ),
        (
            "mcp",
            "tools/call",
            Direction::Response,
            json!({"content": [{"type": "text", "text": prose.repeat(20)}], "isError": false}),
        ),
        (
            "mcp",
            "tools/call",
            Direction::Response,
            response_of(10_000),
        ),
        (
            "mcp",
            "resources/read",
            Direction::Response,
            json!({"contents": [{"uri": "file:///notes.md", "text": prose.repeat(10)}]}),
        ),
        (
            "mcp",
            "notifications/progress",
            Direction::Request,
            json!({"progressToken": 7, "progress": 3, "total": 10}),
        ),
        (
            "a2a",
            "message/send",
            Direction::Request,
            json!({"message": {"role": "user", "messageId": "m-1", "parts": [
                {"kind": "text", "text": "Summarise the report and send it to the team."}]}}),
        ),
        (
            "a2a",
            "message/send",
            Direction::Response,
            json!({"kind": "task", "id": "t-1", "status": {"state": "completed"}, "artifacts": [
                {"artifactId": "a-1", "parts": [{"kind": "text", "text": prose.repeat(6)}]}]}),
        ),
        (
            "ag_ui",
            "text_message_content",
            Direction::Response,
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m-2", "delta": "The report says "}),
        ),
        (
            "ag_ui",
            "tool_call_args",
            Direction::Response,
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c-1", "toolCallName": "records_3",
                   "delta": "{\"id\": \"record-42\"}"}),
        ),
    ];
    kinds
        .into_iter()
        .zip(1..)
        .map(
            |((protocol, operation, direction, content), sequence)| TraceMessage {
                sequence,
                direction: Some(direction),
                actor: Some("default".to_owned()),
                ..TraceMessage::new(protocol, operation, content)
            },
        )
        .collect()
}

/// Large messages for an inline guard: a plain tool result, one whose text stands where indicators of
/// the library look, and a call that most of them look at.
pub(crate) fn large(bytes: usize) -> Vec<(&'static str, TraceMessage)> {
    let text = response_of(bytes)["content"][0]["text"].clone();
    let message = |direction, content| TraceMessage {
        direction: Some(direction),
        ..TraceMessage::new("mcp", "tools/call", content)
    };
    vec![
        (
            "detect-inline",
            message(Direction::Response, response_of(bytes)),
        ),
        (
            "detect-inline-looked-at",
            message(Direction::Response, json!({"response": {"content": text}})),
        ),
        (
            "detect-inline-call",
            message(
                Direction::Request,
                json!({"name": "write_file", "arguments": {"path": "notes.md", "body": text}}),
            ),
        ),
    ]
}

/// A tool result of about so many bytes.
fn response_of(bytes: usize) -> Value {
    let line = "drwxr-xr-x 2 user group 4096 Jan 12 09:30 src/modules/report_builder.rs\n";
    json!({
        "content": [{"type": "text", "text": line.repeat(bytes / line.len())}],
        "isError": false,
    })
}
