//! A small MCP server of the newest revision with a handshake, over HTTP and over stdio: no sessions, no
//! streams, three tools.

use proofhouse_protocol::mcp::{McpMethod, McpRevision};
use proofhouse_protocol::rpc::{self, RpcMessage};
use proofhouse_wire::server::{Reply, Request};
use proofhouse_wire::{LineReader, StatusCode, WireLine};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt};

use super::router::error;

const REVISION: McpRevision = McpRevision::LATEST_WITH_SESSIONS;

/// The longest message that is read.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Answers one message over HTTP.
pub(super) fn answer_http(request: &Request) -> Reply {
    // A web page may not reach the service through a visitor's browser.
    if request
        .header("origin")
        .is_some_and(|origin| !is_local(origin))
    {
        return error(StatusCode::FORBIDDEN, "this origin may not ask");
    }
    let bytes = request.body.as_deref().unwrap_or_default();
    match rpc::parse(bytes) {
        Err(invalid) => Reply::json(
            StatusCode::BAD_REQUEST,
            rpc::to_text(&invalid.to_response()),
        ),
        Ok(message) => match answer(message) {
            Some(answer) => Reply::json(StatusCode::OK, rpc::to_text(&answer)),
            None => Reply::empty(StatusCode::ACCEPTED),
        },
    }
}

fn is_local(origin: &str) -> bool {
    let host = origin.split_once("://").map_or("", |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(host) => host.split(']').next(),
        None => host.split(':').next(),
    };
    matches!(host, Some("localhost" | "127.0.0.1" | "::1"))
}

/// Answers messages, one per line, until the input ends.
pub async fn serve_stdio(
    input: impl AsyncBufRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    let mut lines = LineReader::new(input, MAX_LINE_BYTES);
    while let Some(line) = lines.next().await? {
        let answer = match line {
            WireLine::Whole(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => None,
            WireLine::Whole(bytes) => match rpc::parse(&bytes) {
                Ok(message) => answer(message),
                Err(invalid) => Some(invalid.to_response()),
            },
            _ => Some(rpc::error(
                &Value::Null,
                rpc::PARSE_ERROR,
                "not a whole message",
                None,
            )),
        };
        if let Some(answer) = answer {
            let line = rpc::to_text(&answer);
            output.write_all(format!("{line}\n").as_bytes()).await?;
            output.flush().await?;
        }
    }
    Ok(())
}

fn answer(message: RpcMessage) -> Option<Value> {
    let RpcMessage::Request { id, method, params } = message else {
        return None;
    };
    let result = match McpMethod::parse(&method) {
        Some(McpMethod::Initialize) => Ok(json!({
            "protocolVersion": REVISION.as_str(),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "proofhouse demo-service", "version": env!("CARGO_PKG_VERSION")},
        })),
        Some(McpMethod::Ping) => Ok(json!({})),
        Some(McpMethod::ToolsList) => Ok(json!({"tools": tools()})),
        Some(McpMethod::ToolsCall) => call(&params),
        _ => Err((
            rpc::METHOD_NOT_FOUND,
            format!("there is no method `{method}`"),
        )),
    };
    Some(match result {
        Ok(result) => rpc::response(&id, result),
        Err((code, message)) => rpc::error(&id, code, &message, None),
    })
}

fn tools() -> Value {
    json!([
        {
            "name": "echo",
            "description": "Says the same again.",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string", "description": "What to say."}},
                "required": ["text"],
            },
        },
        {
            "name": "add",
            "description": "Adds two numbers.",
            "inputSchema": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
            "outputSchema": {
                "type": "object",
                "properties": {"sum": {"type": "number"}},
                "required": ["sum"],
            },
        },
        {
            "name": "fail",
            "description": "Fails, to show what becomes of it.",
            "inputSchema": {"type": "object", "properties": {}},
        },
    ])
}

fn call(params: &Value) -> Result<Value, (i64, String)> {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let argument = |key: &str| params.get("arguments").and_then(|given| given.get(key));
    let text = |text: String, is_error: bool| json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    match name {
        "echo" => match argument("text").and_then(Value::as_str) {
            Some(said) => Ok(text(said.to_owned(), false)),
            None => Ok(text("`text` must be a text".to_owned(), true)),
        },
        "add" => {
            let number = |key| argument(key).and_then(Value::as_f64);
            let (Some(a), Some(b)) = (number("a"), number("b")) else {
                return Ok(text("`a` and `b` must be numbers".to_owned(), true));
            };
            let sum = json!({"sum": a + b});
            let mut result = text(sum.to_string(), false);
            result["structuredContent"] = sum;
            Ok(result)
        }
        "fail" => Ok(text("it failed, as it was asked to".to_owned(), true)),
        _ => Err((rpc::INVALID_PARAMS, format!("there is no tool `{name}`"))),
    }
}
