//! MCP as clients speak it: sessions, calls, requests of the modern era, and leaving early.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Targets;
use crate::raw::{Answer, PATIENCE, Wire, enveloped, exchange, notification, post, request};

/// A session of the legacy era.
pub(crate) async fn start_session(targets: &Targets, capabilities: &Value) -> Option<String> {
    let hello = request(
        &json!(0),
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "soak", "version": "1"}}),
    );
    let bytes = post("/mcp", &[("Connection", "close")], &hello);
    let answer = exchange(targets.mcp, &bytes).await;
    let session = answer.header("mcp-session-id")?.to_owned();
    let ready = notification("notifications/initialized", &json!({}));
    let _ = say(targets, &session, &ready).await;
    Some(session)
}

/// One message of a session, and its answer.
pub(crate) async fn say(targets: &Targets, session: &str, body: &str) -> Answer {
    let headers = [("Mcp-Session-Id", session), ("Connection", "close")];
    exchange(targets.mcp, &post("/mcp", &headers, body)).await
}

pub(crate) fn call(id: usize, tool: &str) -> String {
    request(
        &json!(id),
        "tools/call",
        &json!({"name": tool, "arguments": {"text": "t"}}),
    )
}

/// A request of the modern era.
pub(crate) fn modern(method: &str, params: Value, client: &str) -> Vec<u8> {
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let body = request(&json!(1), method, &enveloped(params, client));
    let mut headers = vec![
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
        ("Connection", "close"),
    ];
    if !name.is_empty() {
        headers.push(("Mcp-Name", &name));
    }
    post("/mcp", &headers, &body)
}

/// Sends on a connection of its own and reads for a moment, for answers that keep it open.
pub(crate) async fn briefly(targets: &Targets, bytes: &[u8], time: Duration) -> Answer {
    targets.tally.request();
    match Wire::open(targets.mcp).await {
        Some(mut wire) => {
            wire.write(bytes).await;
            wire.read(time).await
        }
        None => Answer::default(),
    }
}

/// Starts a call in a session and goes away, which cancels nothing.
pub(crate) async fn leave(targets: &Targets, session: &str, body: &str) -> Answer {
    targets.tally.request();
    let Some(mut wire) = Wire::open(targets.mcp).await else {
        return Answer::default();
    };
    wire.write(&post("/mcp", &[("Mcp-Session-Id", session)], body))
        .await;
    // A request whose client is gone before it is handled is not handled.
    wire.first(PATIENCE).await
}
