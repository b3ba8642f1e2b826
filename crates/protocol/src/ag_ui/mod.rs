//! The Agent-User Interaction protocol: the events of a run, and what a run is asked for with.

mod event;
mod input;
mod run_end;

use serde_json::Value;

pub use event::{AgUiChunk, AgUiEventType, THINKING_ALIASES, is_aside, operation_of};
pub use input::complete_input;
pub use run_end::AgUiRunEnd;

/// The name of the input of a run, as traces and threat documents call it.
pub const INPUT_EVENT: &str = "run_agent_input";

/// Whether the agent itself says a message that begins with this event; without a role, it does.
#[must_use]
pub fn is_of_agent(start: &Value) -> bool {
    let role = start.get("role").and_then(Value::as_str);
    !matches!(role, Some("user" | "system" | "developer" | "tool"))
}
