//! The process under attack: serves the document with small limits until its input ends.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use proofhouse_oatf::Document;
use proofhouse_range::{RunEvent, RunHandle, RunOptions, TraceLimits, run};
use proofhouse_wire::WireLimits;
use serde_json::{Value, json};

use crate::Problem;

/// Notifications of one call, more than are kept for a client that comes back.
const TALK: usize = 60;
/// The resource that slow readers ask for: more than the system buffers for them.
pub(crate) const LARGE: usize = 3 << 20;

/// Smaller than the defaults, so that each is reached in seconds.
pub(crate) fn limits() -> WireLimits {
    WireLimits {
        max_message_bytes: 1 << 20,
        max_bytes_in_flight: 4 << 20,
        max_connections: 320,
        max_header_bytes: 16 << 10,
        header_timeout: Duration::from_secs(1),
        body_timeout: Duration::from_secs(1),
        stall_timeout: Duration::from_millis(200),
        response_timeout: Duration::from_secs(3),
        idle_timeout: Duration::from_secs(2),
        ..WireLimits::default()
    }
}

pub(crate) fn trace_limits() -> TraceLimits {
    TraceLimits {
        max_messages: 2_000,
        max_bytes: 4 << 20,
        max_warnings: 200,
    }
}

/// Tools that wait, ask, talk and say much, and an agent beside them.
fn document() -> Result<Document, Problem> {
    let notice = json!({"notify": {"method": "notifications/message", "params": {"level": "info", "data": "."}}});
    let question = json!({"request": {"key": "name", "method": "elicitation/create",
        "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}});
    let tool = |name: &str, steps: Vec<Value>| {
        json!({"name": name, "description": name, "x-steps": steps,
            "responses": [{"content": "{{request.arguments.text}}"}]})
    };
    let mcp = json!({
        "tools": [
            tool("plain", vec![]),
            tool("wait", vec![json!({"pause": "5s"})]),
            tool("stay", vec![json!({"pause": "30s"})]),
            tool("ask", vec![question]),
            tool("talk", vec![notice; TALK]),
        ],
        "resources": [{"uri": "large://one", "name": "large", "content": {"text": "x".repeat(LARGE)}}],
    });
    let card = json!({"name": "Helper", "description": "Helps.", "version": "1",
        "skills": [{"id": "help", "name": "Help", "description": "Helps."}]});
    let document = json!({"oatf": "0.1", "attack": {
        "name": "Soak",
        "execution": {"actors": [
            {"name": "mcp", "mode": "mcp_server", "phases": [{"name": "only", "state": mcp}]},
            {"name": "a2a", "mode": "a2a_server", "phases": [{"name": "only", "state": {"agent_card": card}}]},
        ]},
        "indicators": [
            {"protocol": "mcp", "surface": "tools/call", "direction": "request", "target": "arguments.text",
                "pattern": {"contains": "password"}},
            {"protocol": "a2a", "surface": "message/send", "target": "message.parts[*].text",
                "pattern": {"regex": "pass(word|phrase)"}},
        ],
    }});
    let loaded = proofhouse_oatf::load(&document.to_string());
    Ok(loaded.map_err(|errors| format!("{errors:?}"))?.document)
}

/// Serves until the input ends. Each actor's address and, at the end, a summary go to the output,
/// every warning to the error output.
pub(crate) async fn serve() -> Result<(), Problem> {
    let options = RunOptions {
        settle: Duration::from_secs(86_400),
        max_session: Duration::from_secs(86_400),
        grace: Duration::ZERO,
        limits: limits(),
        trace_limits: trace_limits(),
        observer: Some(Arc::new(|event| match event {
            RunEvent::Ready { actor, address } => {
                say(&format!(
                    "{actor} {}",
                    address.as_deref().unwrap_or_default()
                ));
            }
            RunEvent::Warning { message, .. } => {
                let start: String = message.chars().take(300).collect();
                let _ = writeln!(std::io::stderr(), "warning: {start}");
            }
            _ => {}
        })),
        ..RunOptions::default()
    };
    let handle = RunHandle::default();
    let ending = handle.clone();
    // Reading blocks, and nobody waits for this thread.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        ending.interrupt();
    });
    let report = run(&document()?, options, &handle).await?;
    say(&format!(
        "messages={} kept={} warnings={}",
        report.messages,
        report.trace.len(),
        report.warnings.len()
    ));
    Ok(())
}

fn say(line: &str) {
    let mut output = std::io::stdout();
    let _ = writeln!(output, "{line}");
    let _ = output.flush();
}
