//! How long things are kept, and how much there is.

use serde::{Deserialize, Serialize};

use super::Millis;
use super::limits::DEDUPE_MS;

/// How long to keep what is done. `None` keeps it for ever. Nothing that is still needed is ever removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// How long a dedupe key keeps duplicates out.
    pub dedupe_ms: Millis,
    /// Routed events without pending deliveries, since they were received. Not shorter than `dedupe_ms`.
    pub events_ms: Option<Millis>,
    /// Ended tasks with all that is theirs, since their last activity.
    pub ended_tasks_ms: Option<Millis>,
    /// Turns of ended tasks, since the task's last activity. The task stays, with how it ended.
    pub turns_ms: Option<Millis>,
    /// Entries of traces, since they were written.
    pub traces_ms: Option<Millis>,
    /// Keys of the API that were revoked or have expired, since then.
    pub keys_ms: Option<Millis>,
    /// Closed and lost channels, since they changed.
    pub channels_ms: Option<Millis>,
    /// How many rows of a kind one call removes at most, so that it does not hold up others.
    pub batch: usize,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: Millis = 24 * 60 * 60 * 1000;
        Self {
            dedupe_ms: DEDUPE_MS,
            events_ms: Some(30 * DAY),
            ended_tasks_ms: Some(90 * DAY),
            turns_ms: None,
            traces_ms: Some(90 * DAY),
            keys_ms: Some(90 * DAY),
            channels_ms: Some(30 * DAY),
            batch: 500,
        }
    }
}

/// What a sweep removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepReport {
    /// Keys that no longer keep duplicates out.
    pub dedupe_keys: u64,
    /// Events.
    pub events: u64,
    /// Tasks.
    pub tasks: u64,
    /// Turns of tasks that stay.
    pub turns: u64,
    /// Entries of traces.
    pub traces: u64,
    /// Keys of the API.
    pub keys: u64,
    /// Channels.
    pub channels: u64,
    /// Whether a kind had at least as many as one call removes: call again.
    pub more: bool,
}

impl SweepReport {
    /// Whether nothing was removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what a further call removed.
    pub fn add(&mut self, other: &Self) {
        self.dedupe_keys += other.dedupe_keys;
        self.events += other.events;
        self.tasks += other.tasks;
        self.turns += other.turns;
        self.traces += other.traces;
        self.keys += other.keys;
        self.channels += other.channels;
        self.more = other.more;
    }
}

/// Whether work goes on: how long the oldest has waited, in milliseconds, and what an owner holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreProgress {
    /// The oldest event or input that was acknowledged and that no task has got, though one could have.
    pub oldest_event_ms: Option<Millis>,
    /// The oldest command that nobody has obeyed.
    pub oldest_command_ms: Option<Millis>,
    /// Leases that the owner holds.
    pub leases: u64,
}

/// How much there is, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStats {
    /// Tasks by state, in the words of `TaskState`.
    pub tasks: std::collections::BTreeMap<String, i64>,
    /// Events that are not routed yet.
    pub unrouted_events: i64,
    /// Deliveries that are not settled yet.
    pub pending_deliveries: i64,
    /// Channels by state, in the words of `ChannelState`.
    pub channels: std::collections::BTreeMap<String, i64>,
}
