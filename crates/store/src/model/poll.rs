//! Polls: what a task looks for at a platform, and how far it has looked.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Millis;
use super::event::NewEvent;
use super::interest::ToolRef;
use super::lease::{HeldLease, Lease};

/// A poll to make. Its key is the task, the tool and the event, so an edit of the manifest keeps its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewPoll {
    /// The tool.
    pub tool: ToolRef,
    /// The name of the event in the tool's manifest.
    pub event: String,
    /// In how many milliseconds it is due for the first time.
    pub due_in_ms: Millis,
}

/// A poll.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PollRecord {
    /// Names the poll; its lease has this number as its name.
    pub id: i64,
    /// The task.
    pub task: String,
    /// The tool.
    pub tool: ToolRef,
    /// The name of the event in the tool's manifest.
    pub event: String,
    /// How far it has looked, in the caller's words; none before the first commit.
    pub cursor: Option<Value>,
    /// The ids it has seen, oldest first; at most `limits::MAX_SEEN_IDS`.
    pub seen: Vec<String>,
    /// When it is due.
    pub next_due: Millis,
    /// How often it failed since it last worked.
    pub failures: i64,
    /// What the last failure was.
    pub last_error: Option<String>,
}

/// A poll that this process may make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedPoll {
    /// The poll.
    pub poll: PollRecord,
    /// The lease on it.
    pub lease: Lease,
}

/// The outcome of a poll: everything that becomes true together. The lease is released with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PollCommit {
    /// The lease on the poll; `Fenced` if it has moved.
    pub held: HeldLease,
    /// How far it has looked now.
    pub cursor: Option<Value>,
    /// The ids it has seen now, oldest first.
    pub seen: Vec<String>,
    /// In how many milliseconds it is due again.
    pub due_in_ms: Millis,
    /// How often it has failed in a row.
    pub failures: i64,
    /// What the last failure was.
    pub last_error: Option<String>,
    /// What it found.
    pub events: Vec<NewEvent>,
}
