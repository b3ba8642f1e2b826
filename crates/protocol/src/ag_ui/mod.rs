//! The Agent-User Interaction protocol: the events of a run, and what a run is asked for with.

mod event;
mod input;

pub use event::{AgUiChunk, AgUiEventType, THINKING_ALIASES, is_aside, operation_of};
pub use input::complete_input;

/// The name of the input of a run, as traces and threat documents call it.
pub const INPUT_EVENT: &str = "run_agent_input";
