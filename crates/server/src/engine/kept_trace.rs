//! The trace that something belongs to, kept beside it in the store: a task, an input, an event.

use proofhouse_wire::trace::TraceParent;
use serde_json::Value;

/// The name it is kept under.
pub(super) const TRACE: &str = "trace";

/// Notes what something is done for, if that is known.
pub(super) fn note(kept: &mut Value, parent: Option<TraceParent>) {
    if let (Some(parent), Some(kept)) = (parent, kept.as_object_mut()) {
        kept.insert(TRACE.to_owned(), parent.to_string().into());
    }
}

/// What something was done for.
pub(super) fn of(kept: &Value) -> Option<TraceParent> {
    kept.get(TRACE)?.as_str()?.parse().ok()
}
