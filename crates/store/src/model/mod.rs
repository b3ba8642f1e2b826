//! The rows of a store, as plain data. Times are Unix milliseconds; bodies are JSON that the store does not read.

#[macro_use]
mod text_enum;

pub mod audit;
pub mod campaign;
pub mod channel;
pub mod delivery;
pub mod event;
pub mod interest;
pub mod json_text;
pub mod lease;
pub mod limits;
pub mod poll;
pub mod record;
pub mod retention;
pub mod session;
pub mod task;
pub mod trigger;

pub use audit::{AuditCheckpoint, AuditFilter, AuditHead, AuditRecord, NewAuditEntry};
pub use campaign::{
    CampaignBlob, CampaignFilter, CampaignPulse, CampaignRow, CampaignState, ClaimedRun, CountRow,
    FinishedRun, LanePrice, LaneRow, NewCampaign, NewLane, NewRun, PlannedKind, PrunedCampaigns,
    RequestPermit, ResultRow, RunClaim, RunCounted, RunGate, RunsByState, WorkerRow,
};
pub use channel::{
    ChannelFilter, ChannelRecord, ChannelState, ChannelToClose, ChannelUpdate, ClaimedChannel,
    CloseReason, NewChannel,
};
pub use delivery::{
    DeliveryDecision, DeliveryRecord, DeliveryState, DirectDelivery, NewDelivery, TaskQueues,
};
pub use event::{
    ClaimedEvent, EventClaim, EventDetail, EventFilter, EventKind, EventRecord, EventRouting,
    EventState, EventSummary, NewEvent, ReceiveOutcome, RepeatRule,
};
pub use interest::{AllowEntry, Interest, InterestedTask, NewInterest, ToolRef};
pub use json_text::JsonText;
pub use lease::{HeldLease, Lease, LeaseKind, LeaseRenewal};
pub use poll::{ClaimedPoll, NewPoll, PollCommit, PollRecord};
pub use record::{ApiKey, NewApiKey, TraceEntry};
pub use retention::{Retention, StoreProgress, StoreStats, SweepReport};
pub use session::{AttemptQuota, SessionKind};
pub use task::{
    AppendTurns, AppendedTurns, ClaimedTask, FailureFilter, FailureRecord, NewTask, NewTurn,
    SEARCHED_TASKS, StateChange, TaskFilter, TaskRecord, TaskState, TaskWait, TurnRecord,
    WakeRules,
};
pub use trigger::{
    ScheduleTick, TickOutcome, TriggerFailure, TriggerKey, TriggerKind, TriggerStatus,
};

/// A time: Unix milliseconds.
pub type Millis = i64;
