//! A document for MCP servers, and the answers that servers of both eras give.

use proofhouse_wire::StatusCode;
use proofhouse_wire::server::Reply;
use serde_json::{Value, json};

use super::Arrived;

/// Calls a tool, and answers whatever is asked back.
pub(crate) const DOCUMENT: &str = r#"
oatf: "0.1"
attack:
  execution:
    mode: mcp_client
    state:
      client_info: {name: tester, version: "1"}
      actions:
        - {method: tools/list}
        - {method: tools/call, params: {name: transfer, arguments: {to: mallory, region: é}}}
      sampling_responses:
        - when: {maxTokens: {gt: 100}}
          content: {role: assistant, content: {type: text, text: long}, model: m}
        - content: "short, {{request.maxTokens}}"
      elicitation_responses:
        - when: {message: {contains: password}}
          action: decline
        - content: {confirmed: true}
      roots: [{uri: "file:///etc", name: etc}]
  indicators:
    - surface: tools/call
      direction: response
      target: ""
      expression:
        cel: message.name == 'transfer' && has(message.content) && message.content[0].text.contains('done')
"#;

pub(crate) fn result(arrived: &Arrived, result: &Value) -> Reply {
    let answer = json!({"jsonrpc": "2.0", "id": arrived.body["id"], "result": result});
    Reply::json(StatusCode::OK, answer.to_string())
}

pub(crate) fn error(arrived: &Arrived, status: StatusCode, code: i64, data: &Value) -> Reply {
    let error = json!({"code": code, "message": "no", "data": data});
    let answer = json!({"jsonrpc": "2.0", "id": arrived.body["id"], "error": error});
    Reply::json(status, answer.to_string())
}

pub(crate) fn discovered(arrived: &Arrived) -> Reply {
    let info = json!({"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "1"}});
    result(
        arrived,
        &json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
            "instructions": "be kind", "ttlMs": 0, "cacheScope": "private", "_meta": info,
        }),
    )
}

pub(crate) fn initialized(arrived: &Arrived) -> Reply {
    let info = json!({"name": "legacy", "version": "1"});
    let answer = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info});
    result(arrived, &answer).with_header("mcp-session-id", "s1")
}

pub(crate) fn tools() -> Value {
    json!({"tools": [{"name": "transfer", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"}, "to": {"type": "string"},
    }}}]})
}

pub(crate) fn method(arrived: &Arrived) -> &str {
    match arrived.method.as_str() {
        "POST" => arrived.body["method"].as_str().unwrap_or("response"),
        other => other,
    }
}

/// What a legacy server answers besides its tools.
pub(crate) fn legacy(arrived: &Arrived) -> Reply {
    match method(arrived) {
        "server/discover" => Reply::empty(StatusCode::BAD_REQUEST),
        "initialize" => initialized(arrived),
        "GET" | "DELETE" => Reply::empty(StatusCode::METHOD_NOT_ALLOWED),
        "tools/list" => result(arrived, &tools()),
        "tools/call" => result(
            arrived,
            &json!({"content": [{"type": "text", "text": "done"}]}),
        ),
        _ => Reply::empty(StatusCode::ACCEPTED),
    }
}
