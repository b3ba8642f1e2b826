//! Events from outside: received once, routed once per attempt.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Millis;
use super::delivery::{DeliveryRecord, NewDelivery};
use super::interest::ToolRef;
use super::json_text::JsonText;
use super::task::NewTask;
use super::trigger::TriggerKey;

text_enum! {
    /// How an event came in.
    EventKind {
        /// A platform posted it.
        Webhook = "webhook",
        /// A platform posted it to a channel of one task.
        Subscription = "subscription",
        /// A poll found it for one task.
        Poll = "poll",
    }
}

text_enum! {
    /// How far an event is.
    EventState {
        /// It is stored and nobody has decided about it yet.
        ReceiveOutcome = "received",
        /// It is decided who gets it.
        Routed = "routed",
    }
}

/// An event to store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewEvent {
    /// Where it came from; keys are unique within a source.
    pub source: String,
    /// The tool it is for. The namespace may be empty where the sender does not say it.
    pub tool: ToolRef,
    /// The name of the event in the manifest, where it is known before routing (polls and channels).
    pub name: Option<String>,
    /// How it came in.
    pub kind: EventKind,
    /// A second event with this key is a duplicate, for as long as `repeats` says. Without a key, nothing is.
    pub dedupe_key: Option<String>,
    /// What counts as the same event again.
    pub repeats: RepeatRule,
    /// The headers worth keeping; never those with secrets.
    pub headers: JsonText,
    /// What was sent.
    pub payload: Vec<u8>,
    /// The one task it is for, for polls and channels.
    pub target_task: Option<String>,
}

/// What counts as the same event again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RepeatRule {
    /// The same key, for as long as keys are kept: 7 days.
    #[default]
    Kept,
    /// The same key within so many milliseconds.
    Within(Millis),
    /// It came through a channel. While a channel and its successor are both open, the platform tells both: what came
    /// through the one is what came through the other before, one for one. It has no key.
    AcrossChannels {
        /// The channel.
        channel: String,
        /// What is the same about it in either channel, in hexadecimal digits.
        digest: String,
    },
}

/// What became of an event that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReceiveOutcome {
    /// It is stored durably under this id.
    Stored(i64),
    /// It was stored before, under this id.
    Duplicate(i64),
}

impl ReceiveOutcome {
    /// The id of the event, be it new or old.
    #[must_use]
    pub fn id(self) -> i64 {
        match self {
            Self::Stored(id) | Self::Duplicate(id) => id,
        }
    }
}

/// An event without what was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventSummary {
    /// Names the event; newer ones have higher numbers.
    pub id: i64,
    /// Where it came from.
    pub source: String,
    /// The tool it is for.
    pub tool: ToolRef,
    /// The name of the event in the manifest, where it was known before routing.
    pub name: Option<String>,
    /// How it came in.
    pub kind: EventKind,
    /// The key that keeps duplicates out; none once that time is over.
    pub dedupe_key: Option<String>,
    /// The one task it is for.
    pub target_task: Option<String>,
    /// How far it is.
    pub state: EventState,
    /// Which routing this is: 1, and one more for each replay.
    pub attempt: i64,
    /// What the last routing decided, and why.
    pub outcome: Option<Value>,
    /// How many deliveries the last routing made, without the discarded ones.
    pub matched: i64,
    /// When it was received.
    pub received_at: Millis,
    /// When it was last routed.
    pub routed_at: Option<Millis>,
    /// How many bytes were sent.
    pub payload_bytes: i64,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// What is known about it.
    pub summary: EventSummary,
    /// The headers that were kept.
    pub headers: Value,
    /// What was sent.
    pub payload: Vec<u8>,
}

/// An event with everything that became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventDetail {
    /// The event.
    pub event: EventRecord,
    /// What earlier attempts decided: `{attempt, fate, routed_at}` each.
    pub earlier: Vec<Value>,
    /// Its deliveries, of all attempts: the newest, as many as a page has, in their order.
    pub deliveries: Vec<DeliveryRecord>,
}

/// The right to route an event. It is good until somebody else claims the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventClaim {
    /// The event.
    pub event: i64,
    /// The attempt that is to be routed.
    pub attempt: i64,
    /// Grows with every claim.
    pub fence: i64,
}

/// An event that this process may route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedEvent {
    /// The right to do so.
    pub claim: EventClaim,
    /// The event.
    pub event: EventRecord,
}

/// What was decided about an event: everything that becomes true together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRouting {
    /// The right to decide; `Fenced` if another process has claimed the event.
    pub claim: EventClaim,
    /// What was decided and why, for people.
    pub outcome: Value,
    /// What the tasks get. A task that has ended meanwhile gets nothing: its delivery is stored as discarded.
    pub deliveries: Vec<NewDelivery>,
    /// Tasks that triggers begin, with the status row to count them in. Their deliveries can be among `deliveries`.
    pub tasks: Vec<(TriggerKey, NewTask)>,
}

/// Which events to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventFilter {
    /// Only those for tools in these namespaces, and those that a task of an agent in one of them got: what whoever asks
    /// may see.
    pub namespaces: Option<Vec<String>>,
    /// Only from this source.
    pub source: Option<String>,
    /// Only for tools of this name.
    pub tool: Option<String>,
    /// Only of this kind.
    pub kind: Option<EventKind>,
    /// Only in this state.
    pub state: Option<EventState>,
    /// Only those of which a delivery was made for this task.
    pub task: Option<String>,
    /// Only routed ones that nobody got (true), or that somebody got (false).
    pub discarded: Option<bool>,
    /// Only those before this one: the last id of the page before.
    pub before: Option<i64>,
    /// How many at most; more than `limits::MAX_PAGE` is cut.
    pub limit: usize,
}
