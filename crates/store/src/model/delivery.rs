//! Deliveries: what a task is to get as one input turn, exactly once.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Millis;
use super::interest::ToolRef;

text_enum! {
    /// What became of a delivery.
    DeliveryState {
        /// The task has not got it yet.
        Pending = "pending",
        /// It is a turn of the task.
        Delivered = "delivered",
        /// The task will not get it.
        Discarded = "discarded",
    }
}

/// What routing decided about one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryDecision {
    /// The task gets it.
    Deliver,
    /// The task does not get it, for this reason.
    Discard(String),
}

/// A delivery that routing makes. There is one per event, attempt, task and event name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewDelivery {
    /// The task.
    pub task: String,
    /// The tool.
    pub tool: ToolRef,
    /// The name of the event in the tool's manifest.
    pub name: String,
    /// The message, aliases and whatever else the task needs; the payload stays with the event.
    pub body: Value,
    /// Whether the task gets it.
    pub decision: DeliveryDecision,
}

/// A delivery that comes from no event: a message of a user, the first input of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DirectDelivery {
    /// A second delivery to the task with this key is a duplicate, or refused if it is another. Without a key, nothing is.
    pub key: Option<String>,
    /// What kind of input it is, in the caller's words.
    pub name: String,
    /// What the task gets.
    pub body: Value,
    /// What of the body a second delivery with the key repeats, beside the name; with anything else there, the key is refused.
    #[serde(default)]
    pub same: Vec<String>,
}

impl DirectDelivery {
    /// Whether a body that was kept says the same, as far as that matters.
    pub(crate) fn repeats(&self, kept: &Value) -> bool {
        // As it comes back from the store: the last digit of a number may differ from what was read first.
        let as_kept = |value: &Value| serde_json::from_str::<Value>(&value.to_string()).ok();
        let mut same = self.same.iter();
        same.all(|name| self.body.get(name).and_then(as_kept).as_ref() == kept.get(name))
    }
}

/// What a task is to be given next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskQueues {
    /// What people want of it, which comes first.
    pub commands: Vec<DeliveryRecord>,
    /// Its oldest pending input.
    pub input: Option<DeliveryRecord>,
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeliveryRecord {
    /// Names the delivery; a task gets them in the order of these numbers.
    pub id: i64,
    /// The task.
    pub task: String,
    /// The event it comes from, if it does.
    pub event: Option<i64>,
    /// The attempt of routing it comes from; 0 without an event.
    pub attempt: i64,
    /// The tool, if it comes from an event.
    pub tool: Option<ToolRef>,
    /// The name of the event in the manifest, or the kind of input.
    pub name: String,
    /// The key of a direct delivery.
    pub key: Option<String>,
    /// What the task gets.
    pub body: Value,
    /// What became of it.
    pub state: DeliveryState,
    /// Why it was discarded.
    pub reason: Option<String>,
    /// The number of the turn it became.
    pub turn_seq: Option<i64>,
    /// When it was made.
    pub created_at: Millis,
    /// When it was delivered or discarded.
    pub settled_at: Option<Millis>,
}
