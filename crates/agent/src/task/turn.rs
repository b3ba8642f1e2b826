//! Turns: what happened in a task, in order, and how it ended.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Review, TaskState};
use crate::model::{ToolCall, Usage};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "turn", rename_all = "snake_case")]
pub enum Turn {
    /// Someone said something to the agent.
    Input {
        /// When.
        time: String,
        /// What was said.
        message: String,
        /// The parameters of the agent.
        #[serde(default)]
        parameters: Map<String, Value>,
        /// The capability whose event it is, if it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
        /// The name of the event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<String>,
        /// The delivery that this is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivery: Option<String>,
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
        /// What the function gave, where steps changed it before the model was told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
        /// How it ended.
        status: CallStatus,
        /// The task of another agent, where one was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
    },
    /// The model could not be asked; the task waits for the next input.
    Failed {
        /// When.
        time: String,
        /// Why.
        message: String,
        /// How often the model was asked in this task so far.
        #[serde(default)]
        turns: u64,
    },
    /// An event came, and a rule of the agent kept it out.
    Discarded {
        /// When.
        time: String,
        /// The capability whose event it is.
        source: String,
        /// The name of the event.
        event: String,
        /// The delivery that this was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivery: Option<String>,
        /// Why.
        reason: String,
    },
    /// Somebody stopped what was under way; the task can go on from here.
    Interrupted {
        /// When.
        time: String,
    },
    /// A call is about to be made. Only journals have it: without a result, nobody knows what became of it.
    Calling {
        /// When.
        time: String,
        /// The id the model gave the call; of a step, the call around which it is taken.
        call: String,
        /// The function.
        function: String,
        /// What it is called with.
        arguments: Map<String, Value>,
        /// Whether a step makes it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        step: bool,
    },
    /// A step has made a call. Only journals have it.
    Invoked {
        /// When it came to its end.
        time: String,
        /// The function.
        function: String,
        /// What it was called with.
        arguments: Map<String, Value>,
        /// What it gave.
        output: Value,
        /// How it ended.
        status: CallStatus,
    },
    /// A person is asked. Only journals have it.
    Asked {
        /// When.
        time: String,
        /// The question.
        review: Review,
    },
    /// A person has answered a question that an agent had whom this one asked: the call goes on. Only journals have it.
    Decided {
        /// When.
        time: String,
        /// The number of the question.
        review: u64,
    },
    /// The agent has answered. Only journals have it: what it said is in the model's last turn, this is what
    /// the rules made of that.
    Output {
        /// When.
        time: String,
        /// What it says.
        message: String,
        /// What the manifest exposes beside that.
        #[serde(default)]
        exposes: Map<String, Value>,
    },
    /// The task is over. Only journals have it.
    Ended {
        /// When.
        time: String,
        /// How.
        end: TaskEnd,
    },
}

impl Turn {
    /// Whether it is part of what is shown as the history of a task.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        !matches!(
            self,
            Self::Calling { .. }
                | Self::Invoked { .. }
                | Self::Asked { .. }
                | Self::Decided { .. }
                | Self::Output { .. }
                | Self::Ended { .. }
        )
    }

    /// The word that names the kind of turn.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Input { .. } => "input",
            Self::Llm { .. } => "llm",
            Self::Capability { .. } => "capability",
            Self::Failed { .. } => "failed",
            Self::Discarded { .. } => "discarded",
            Self::Interrupted { .. } => "interrupted",
            Self::Calling { .. } => "calling",
            Self::Invoked { .. } => "invoked",
            Self::Asked { .. } => "asked",
            Self::Decided { .. } => "decided",
            Self::Output { .. } => "output",
            Self::Ended { .. } => "ended",
        }
    }

    /// What a task does after it.
    #[must_use]
    pub fn state(&self) -> TaskState {
        match self {
            Self::Input { .. }
            | Self::Llm { .. }
            | Self::Capability { .. }
            | Self::Calling { .. }
            | Self::Invoked { .. }
            | Self::Decided { .. } => TaskState::Running,
            Self::Asked { .. } => TaskState::Waiting,
            Self::Output { .. } | Self::Failed { .. } | Self::Discarded { .. } => TaskState::Idle,
            Self::Interrupted { .. } => TaskState::Interrupted,
            Self::Ended { .. } => TaskState::Ended,
        }
    }

    /// Whether the delivery that is under way is settled with it.
    pub(super) fn settles(&self) -> bool {
        matches!(
            self,
            Self::Input { .. } | Self::Failed { .. } | Self::Discarded { .. } | Self::Ended { .. }
        )
    }

    /// The word of `context._history.turns`, where the turn counts there.
    pub(super) fn word(&self) -> Option<&'static str> {
        match self {
            Self::Input { .. } => Some("input"),
            Self::Llm { .. } => Some("llm"),
            Self::Capability { .. } => Some("capability"),
            Self::Failed { .. }
            | Self::Discarded { .. }
            | Self::Interrupted { .. }
            | Self::Calling { .. }
            | Self::Invoked { .. }
            | Self::Asked { .. }
            | Self::Decided { .. }
            | Self::Output { .. }
            | Self::Ended { .. } => None,
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// Why.
    pub reason: EndReason,
    /// One sentence about it.
    pub message: String,
}

impl TaskEnd {
    pub(super) fn new(reason: EndReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}
