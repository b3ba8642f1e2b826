//! Observers: who is told of every call, for traces and displays.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{ActionError, ActionResult};

/// What happens to a call. Nothing in it holds a secret of the task.
#[derive(Debug, Clone, Copy)]
pub enum CallEvent<'a> {
    /// An action is called.
    Called {
        /// Names the invocation.
        invocation: &'a str,
        /// The namespace and the name of the tool.
        tool: (&'a str, &'a str),
        /// The action.
        action: &'a str,
        /// What it was called with, before defaults.
        arguments: &'a Map<String, Value>,
    },
    /// It came to an end.
    Returned {
        /// Names the invocation.
        invocation: &'a str,
        /// The action.
        action: &'a str,
        /// How it ended.
        result: Result<&'a ActionResult, &'a ActionError>,
        /// How long it took.
        took: Duration,
    },
}

/// Someone who is told of every call.
pub trait Observer: Send + Sync {
    /// Hears of an event; must not block.
    fn observe(&self, event: CallEvent<'_>);
}
