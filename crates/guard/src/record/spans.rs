//! Requests as spans, and findings as their events, for whoever exports spans to an OpenTelemetry collector.
//!
//! The names are those of the conventions for MCP; what is ours begins with `proofhouse.`. Without somebody who
//! exports, nothing of this is made.

use proofhouse_protocol::mcp::McpMethod;
use proofhouse_wire::trace::{Span, TRACEPARENT, TraceParent, TraceScope};
use serde_json::Value;

use crate::finding::{GuardDecision, GuardFinding};

/// How many characters of a name a span shows.
const SHOWN: usize = 200;

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// The span of a request, below the one that the client says in `_meta`.
pub(crate) fn of_request(server: &str, method: &str, params: &Value) -> Span {
    let key = McpMethod::parse(method).and_then(McpMethod::item_param);
    let item = key.and_then(|key| params.get(key)?.as_str());
    let name = || match item {
        Some(item) => format!("{} {}", shown(method), shown(item)),
        None => shown(method),
    };
    let span = tracing::info_span!(
        "guard",
        otel.name = name(),
        otel.kind = "server",
        otel.status_code = tracing::field::Empty,
        "error.type" = tracing::field::Empty,
        mcp.method.name = shown(method),
        mcp.item.name = item.map(shown),
        server.name = server,
        proofhouse.guard.decision = tracing::field::Empty,
    );
    if !span.is_disabled() {
        let said = params.get("_meta").and_then(|meta| meta.get(TRACEPARENT));
        let parent: Option<TraceParent> = said
            .and_then(Value::as_str)
            .and_then(|said| said.parse().ok());
        drop(TraceScope::below(span.clone(), parent));
    }
    span
}

/// Tells of a finding in the span of its request, or in one of its own.
pub(crate) fn of_finding(span: &Span, finding: &GuardFinding) {
    let own;
    let span = if span.is_none() {
        own = tracing::info_span!(
            "guard finding",
            otel.status_code = tracing::field::Empty,
            "error.type" = tracing::field::Empty,
            server.name = finding.server,
            proofhouse.guard.decision = tracing::field::Empty,
        );
        &own
    } else {
        span
    };
    match finding.decision {
        GuardDecision::Allow | GuardDecision::Log => {}
        GuardDecision::Redact | GuardDecision::Ask | GuardDecision::Block => {
            span.record("proofhouse.guard.decision", finding.decision.as_str());
        }
    }
    if finding.decision == GuardDecision::Block {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", finding.code.as_str());
    }
    span.in_scope(|| {
        tracing::info!(
            proofhouse.finding.code = finding.code.as_str(),
            proofhouse.finding.severity = finding.severity.as_str(),
            proofhouse.finding.decision = finding.decision.as_str(),
            proofhouse.finding.item = finding.item,
            proofhouse.finding.path = finding.path,
            proofhouse.finding.rule = finding.rule,
            "{}",
            finding.message
        );
    });
}
