//! Events: what those who watch a task are told while it goes on.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{CallStatus, JournalError, Review, TaskEnd};

/// Something that happens in a task. None of it holds a secret.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskEvent {
    /// Input was taken.
    Started,
    /// The model says something; a piece of it.
    Text(String),
    /// The model has said all of one reply.
    TextEnd,
    /// A function is called.
    Call {
        /// The id the model gave the call.
        id: String,
        /// The function.
        function: String,
        /// What it is called with: what the model said and what is bound.
        arguments: Map<String, Value>,
    },
    /// The call came to its end.
    CallEnd {
        /// The id the model gave the call.
        id: String,
        /// The function.
        function: String,
        /// What the model is told.
        result: Value,
        /// How it ended.
        status: CallStatus,
        /// How long it took.
        took: Duration,
    },
    /// Someone is asked to approve something; the task waits.
    Review(Review),
    /// The model could not be asked.
    Failed(String),
    /// The agent has answered and waits for the next input.
    Idle {
        /// What it said.
        message: String,
    },
    /// The task stops here, though it is not over.
    Lost(JournalError),
    /// The task is over.
    Ended(TaskEnd),
}
