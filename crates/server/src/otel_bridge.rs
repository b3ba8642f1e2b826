//! The numbers that spans have at an OpenTelemetry collector, for those who are told of them and for those who tell us theirs.

use opentelemetry::Context;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use proofhouse_wire::trace::{self, Span, TraceBridge, TraceParent};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Has spans of this process told to others by the numbers that they are exported with, from now on.
pub fn install() {
    trace::set_bridge(Box::new(OtelBridge));
}

struct OtelBridge;

impl TraceBridge for OtelBridge {
    fn context_of(&self, span: &Span) -> Option<TraceParent> {
        let context = span.context();
        let span = context.span().span_context().clone();
        span.is_valid().then(|| TraceParent {
            trace: u128::from_be_bytes(span.trace_id().to_bytes()),
            span: u64::from_be_bytes(span.span_id().to_bytes()),
            flags: span.trace_flags().to_u8(),
        })
    }

    fn adopt(&self, span: &Span, parent: TraceParent) {
        let parent = SpanContext::new(
            TraceId::from_bytes(parent.trace.to_be_bytes()),
            SpanId::from_bytes(parent.span.to_be_bytes()),
            TraceFlags::new(parent.flags),
            true,
            TraceState::NONE,
        );
        // A span that nobody exports has no parent to be told of.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}
