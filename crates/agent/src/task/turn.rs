//! Turns: what happened in a task, in order, and how it ended.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::{ToolCall, Usage};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "turn", rename_all = "snake_case")]
pub enum Turn {
    /// Someone said something to the agent.
    Input {
        /// When.
        time: String,
        /// What was said.
        message: String,
        /// The parameters of the agent.
        parameters: Map<String, Value>,
    },
    /// The model said something.
    Llm {
        /// When.
        time: String,
        /// The model, as it names itself.
        model: String,
        /// Whether it is a simulation.
        simulation: bool,
        /// What it said.
        text: String,
        /// What it wants to have done.
        calls: Vec<ToolCall>,
        /// What it cost.
        usage: Usage,
    },
    /// Something was done for the model, or refused.
    Capability {
        /// When it came to its end.
        time: String,
        /// The id the model gave the call.
        call: String,
        /// The function.
        function: String,
        /// What it was called with: what the model said and what is bound.
        arguments: Map<String, Value>,
        /// What the model was told.
        result: Value,
        /// How it ended.
        status: CallStatus,
        /// The task of another agent, where one was asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        task: Option<String>,
    },
    /// The model could not be asked; the task waits for the next input.
    Failed {
        /// When.
        time: String,
        /// Why.
        message: String,
    },
}

impl Turn {
    /// The word of `context._history.turns`, where the turn counts there.
    pub(super) fn word(&self) -> Option<&'static str> {
        match self {
            Self::Input { .. } => Some("input"),
            Self::Llm { .. } => Some("llm"),
            Self::Capability { .. } => Some("capability"),
            Self::Failed { .. } => None,
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It was done.
    Successful,
    /// It came to nothing.
    Errored,
    /// A rule of the agent forbade it.
    Restricted,
}

/// Why a task is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Somebody ended it.
    Closed,
    /// Somebody cancelled it.
    Cancelled,
    /// A limit of the manifest is used up.
    LimitExceeded,
    /// A rule ended it for good.
    Locked,
    /// A tool cannot be used at all.
    UnrecoverableError,
    /// The model cannot be used at all.
    ModelError,
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct End {
    /// Why.
    pub reason: EndReason,
    /// One sentence about it.
    pub message: String,
}

impl End {
    pub(super) fn new(reason: EndReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}
