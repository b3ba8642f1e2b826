//! The rows of a store, as plain data. Times are Unix milliseconds; bodies are JSON that the store does not read.

#[macro_use]
mod text_enum;

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
pub mod start;
pub mod task;

pub use channel::{
    Channel, ChannelFilter, ChannelState, ChannelUpdate, ClaimedChannel, NewChannel, SweepReason,
    SweptChannel,
};
pub use delivery::{Delivery, DeliveryState, DirectDelivery, NewDelivery, Verdict};
pub use event::{
    Claim, ClaimedEvent, Event, EventDetail, EventFilter, EventKind, EventState, EventSummary,
    NewEvent, Received, Routing,
};
pub use interest::{AllowEntry, Interest, Interested, NewInterest, ToolRef};
pub use json_text::JsonText;
pub use lease::{Held, Lease, LeaseKind};
pub use poll::{ClaimedPoll, NewPoll, Poll, PollCommit};
pub use record::{ApiKey, NewApiKey, TraceEntry};
pub use retention::{Retention, Stats, Swept};
pub use start::{Fire, Fired, StartFailure, StartKey, StartKind, StartStatus};
pub use task::{
    Append, Appended, ClaimedTask, NewTask, NewTurn, StateChange, Task, TaskFilter, TaskState,
    Turn, Wake,
};

/// A time: Unix milliseconds.
pub type Millis = i64;
