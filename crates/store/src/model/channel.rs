//! Channels: push subscriptions that a task has at platforms.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Millis;
use super::interest::ToolRef;
use super::lease::{HeldLease, Lease};

text_enum! {
    /// How far a channel is.
    ChannelState {
        /// The platform is being asked. Without a live lease, nobody knows whether it agreed.
        Subscribing = "subscribing",
        /// Events come through it.
        Active = "active",
        /// Its successor is active, so it is to be closed. Events may still come through it.
        Replaced = "replaced",
        /// It is to be closed.
        Closing = "closing",
        /// It is closed.
        Closed = "closed",
        /// It could not be opened or renewed, for good.
        Lost = "lost",
    }
}

/// A channel that is about to be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewChannel {
    /// Names the channel, also at the platform. The caller makes it up and makes it unguessable.
    pub id: String,
    /// What its callback address is told by. The caller makes it up and makes it unguessable; people are not shown it.
    pub callback: String,
    /// The task.
    pub task: String,
    /// The tool.
    pub tool: ToolRef,
    /// The name of the event in the tool's manifest.
    pub event: String,
    /// When it should expire, as it is asked for.
    pub expires_at: Option<Millis>,
    /// The channel whose successor it is.
    pub replaces: Option<String>,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChannelRecord {
    /// Names the channel.
    pub id: String,
    /// What its callback address is told by; none for a channel of an older version.
    pub callback: Option<String>,
    /// The task.
    pub task: String,
    /// The tool.
    pub tool: ToolRef,
    /// The name of the event in the tool's manifest.
    pub event: String,
    /// How far it is.
    pub state: ChannelState,
    /// When it expires.
    pub expires_at: Option<Millis>,
    /// When it is to be renewed.
    pub renew_at: Option<Millis>,
    /// What the platform answered to the subscribe call.
    pub response: Option<Value>,
    /// The channel whose successor it is.
    pub replaces: Option<String>,
    /// How often renewing or closing failed in a row.
    pub failures: i64,
    /// What the last failure was.
    pub last_error: Option<String>,
    /// When it was asked for.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
}

/// A change of a channel. What is `None` stays as it is, but for `last_error`.
///
/// A channel that becomes `Active` and replaces another makes that one `Replaced` in the same transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChannelUpdate {
    /// The channel.
    pub id: String,
    /// The lease the change depends on, if it does; `Fenced` if it has moved.
    pub held: Option<HeldLease>,
    /// The states it may be in now; any if this is empty. Otherwise it is a conflict.
    pub from: Vec<ChannelState>,
    /// The new state.
    pub to: Option<ChannelState>,
    /// When it expires.
    pub expires_at: Option<Millis>,
    /// When it is to be renewed, or closing is to be tried again.
    pub renew_at: Option<Millis>,
    /// What the platform answered to the subscribe call.
    pub response: Option<Value>,
    /// How often renewing or closing has failed in a row.
    pub failures: Option<i64>,
    /// What the last failure was; `None` forgets it.
    pub last_error: Option<String>,
    /// Whether the lease is released with it.
    pub release: bool,
}

/// Which channels to list, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelFilter {
    /// Only those of this task.
    pub task: Option<String>,
    /// Only those in this state.
    pub state: Option<ChannelState>,
    /// How many at most; more than `limits::MAX_PAGE` is cut.
    pub limit: usize,
}

/// A channel that this process may work on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedChannel {
    /// The channel.
    pub channel: ChannelRecord,
    /// The lease on it.
    pub lease: Lease,
}

text_enum! {
    /// Why a channel is to be swept.
    CloseReason {
        /// Its task has ended, or is not there any more.
        TaskEnded = "task_ended",
        /// Its task is interrupted.
        TaskInterrupted = "task_interrupted",
        /// Its successor is active.
        Replaced = "replaced",
        /// It was to be closed.
        Closing = "closing",
        /// It was being asked for when its process went away.
        Abandoned = "abandoned",
    }
}

/// A channel to close, with the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChannelToClose {
    /// The channel.
    pub channel: ChannelRecord,
    /// The lease on it.
    pub lease: Lease,
    /// Why.
    pub reason: CloseReason,
}
