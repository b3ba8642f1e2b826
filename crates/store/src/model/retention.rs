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
    /// Channels.
    pub channels: u64,
    /// Whether a kind had at least as many as one call removes: call again.
    pub more: bool,
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
