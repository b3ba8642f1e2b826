//! Which events a task wants, and the values its filters may match.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Millis;
use super::task::TaskState;

/// Names a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ToolRef {
    /// The namespace of its manifest.
    pub namespace: String,
    /// Its name in it.
    pub name: String,
}

impl ToolRef {
    /// The tool of this name.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// A value that filters of one tool may match in one task. Entries are a set: adding one twice is adding it once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllowEntry {
    /// The tool.
    pub tool: ToolRef,
    /// The name of the parameter.
    pub name: String,
    /// The value.
    pub value: Value,
    /// Whether a binding fixed this parameter. The store adds nothing to a sealed parameter later.
    pub sealed: bool,
}

/// An event of a tool that a new task wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewInterest {
    /// The tool.
    pub tool: ToolRef,
    /// The name of the event in the tool's manifest.
    pub event: String,
    /// How long after the task's last activity the event still counts; none is for ever.
    pub timeout_ms: Option<Millis>,
}

/// An event of a tool that a task wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interest {
    /// The task.
    pub task: String,
    /// The tool.
    pub tool: ToolRef,
    /// The name of the event in the tool's manifest.
    pub event: String,
    /// How long after the task's last activity the event still counts; none is for ever.
    pub timeout_ms: Option<Millis>,
    /// False while the task is interrupted, and once it has ended.
    pub active: bool,
}

/// An active interest with what routing needs to judge it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterestedTask {
    /// The interest.
    pub interest: Interest,
    /// The namespace of the task's agent.
    pub agent_namespace: String,
    /// The name of the task's agent.
    pub agent_name: String,
    /// The state of the task.
    pub state: TaskState,
    /// When the task last did something.
    pub last_activity: Millis,
    /// The task's allow list for this tool, in the order of its growth.
    pub allow: Vec<AllowEntry>,
}
