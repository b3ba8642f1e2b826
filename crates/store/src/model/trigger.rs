//! Schedules and triggers: how often they began tasks, and what went wrong.

use serde::{Deserialize, Serialize};

use super::Millis;
use super::lease::HeldLease;
use super::task::NewTask;

text_enum! {
    /// What begins tasks by itself.
    TriggerKind {
        /// The clock.
        Schedule = "schedule",
        /// An event.
        Trigger = "trigger",
    }
}

/// Names a schedule or a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TriggerKey {
    /// Which of the two.
    pub kind: TriggerKind,
    /// The namespace of its manifest.
    pub namespace: String,
    /// Its name in it.
    pub name: String,
}

/// What is known about a schedule or a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerStatus {
    /// Which one.
    pub key: TriggerKey,
    /// When it last began a task; of a schedule, the tick.
    pub last_at: Option<Millis>,
    /// The task it last began.
    pub last_task: Option<String>,
    /// When it is due next; of a schedule.
    pub next_at: Option<Millis>,
    /// How many tasks it began.
    pub total: i64,
    /// How often it failed since it last worked.
    pub failures: i64,
    /// What the last failure was.
    pub last_error: Option<String>,
}

/// A tick of a schedule: the status, the task and its first input become true together, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleTick {
    /// The schedule.
    pub key: TriggerKey,
    /// The lease it depends on, if it does; `Fenced` if it has moved.
    pub held: Option<HeldLease>,
    /// The time the tick was due. A tick fires once, and none fires that is older than one that did.
    pub tick: Millis,
    /// When the next one is due.
    pub next_at: Option<Millis>,
    /// The task; none to skip the tick (a missed one) and only note when the next is due.
    pub task: Option<NewTask>,
}

/// What became of a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TickOutcome {
    /// It fired.
    Fired,
    /// It, or a later one, had fired before. Nothing happened.
    AlreadyFired,
}

/// A tick or a trigger that failed before there was a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerFailure {
    /// Which one.
    pub key: TriggerKey,
    /// What failed.
    pub error: String,
    /// The tick, which does not fire any more then; none for triggers.
    pub tick: Option<Millis>,
    /// When it is due next; of a schedule.
    pub next_at: Option<Millis>,
}
