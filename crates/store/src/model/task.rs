//! Tasks and their turns.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Millis;
use super::delivery::{DeliveryRecord, DirectDelivery};
use super::interest::{AllowEntry, NewInterest};
use super::lease::{HeldLease, Lease};
use super::poll::NewPoll;

text_enum! {
    /// What a task is doing.
    TaskState {
        /// It waits for input.
        Idle = "idle",
        /// It is working. Without a live lease, its process is gone and somebody must take it up.
        Running = "running",
        /// It waits for a person's review.
        Waiting = "waiting",
        /// It was stopped and can be resumed. It has no interests meanwhile.
        Interrupted = "interrupted",
        /// It is over, for good.
        Ended = "ended",
    }
}

/// A task to create, with everything that belongs to its beginning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewTask {
    /// Names the task. The caller makes it up and makes it unguessable.
    pub id: String,
    /// The namespace of its agent.
    pub agent_namespace: String,
    /// The name of its agent.
    pub agent_name: String,
    /// The model, if it was chosen.
    pub model: Option<String>,
    /// Who talks to it.
    pub user_id: String,
    /// The user's address, if it is known.
    pub user_email: Option<String>,
    /// The parameters it was created with.
    pub params: Value,
    /// What began it: a call of the API, a trigger, a schedule, another task.
    pub origin: Value,
    /// The events it wants.
    pub interests: Vec<NewInterest>,
    /// The allow-list entries that its bindings seal.
    pub sealed: Vec<AllowEntry>,
    /// The polls to make for it.
    pub polls: Vec<NewPoll>,
    /// Its first input, which is a delivery like every other.
    pub first: Option<DirectDelivery>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Names the task.
    pub id: String,
    /// The namespace of its agent.
    pub agent_namespace: String,
    /// The name of its agent.
    pub agent_name: String,
    /// The model, if it was chosen.
    pub model: Option<String>,
    /// Who talks to it.
    pub user_id: String,
    /// The user's address, if it is known.
    pub user_email: Option<String>,
    /// The parameters it was created with.
    pub params: Value,
    /// What began it.
    pub origin: Value,
    /// What it is doing.
    pub state: TaskState,
    /// About the state: why it ended, what it waits for.
    pub detail: Option<Value>,
    /// The number the next turn will have; as many turns are there.
    pub next_seq: i64,
    /// When it was created.
    pub created_at: Millis,
    /// When it last did something.
    pub last_activity: Millis,
}

/// Which tasks to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFilter {
    /// Only those in this state.
    pub state: Option<TaskState>,
    /// Only those of agents in these namespaces: what whoever asks may see.
    pub namespaces: Option<Vec<String>>,
    /// Only those of agents in this namespace.
    pub agent_namespace: Option<String>,
    /// Only those of agents of this name.
    pub agent_name: Option<String>,
    /// Only those of this user.
    pub user_id: Option<String>,
    /// Only those that last did something at this time or later.
    pub active_since: Option<Millis>,
    /// Only those that last did something before this time.
    pub active_before: Option<Millis>,
    /// Only those whose model could not be asked the last time.
    pub failed: bool,
    /// Only those that have had something to do for longer than so many milliseconds while nobody works on them.
    pub stuck_ms: Option<Millis>,
    /// With `stuck_ms`, also those that have something to do and an agent that is not among these, each as `namespace/name`.
    pub agents: Option<Vec<String>>,
    /// Only those after this one in the list: the last id of the page before.
    pub after: Option<String>,
    /// How many at most; more than `limits::MAX_PAGE` is cut.
    pub limit: usize,
}

/// How many tasks a search for text looks through: the newest of those that the filter lets through.
pub const SEARCHED_TASKS: usize = 2_000;

/// Work that a task has and that nobody does at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWait {
    /// The task.
    pub task: String,
    /// How long it has waited, in milliseconds.
    pub waited_ms: Millis,
}

/// Which failures to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureFilter {
    /// Only those of agents in these namespaces: what whoever asks may see.
    pub namespaces: Option<Vec<String>>,
    /// Only those of agents in this namespace.
    pub agent_namespace: Option<String>,
    /// Only those of agents of this name.
    pub agent_name: Option<String>,
    /// Only those at this time or later.
    pub since: Option<Millis>,
    /// How many at most; more than `limits::MAX_PAGE` is cut.
    pub limit: usize,
}

/// A turn that tells of something that went wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureRecord {
    /// The task.
    pub task: String,
    /// The namespace of its agent.
    pub agent_namespace: String,
    /// The name of its agent.
    pub agent_name: String,
    /// The turn.
    pub turn: TurnRecord,
}

/// A turn to append.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewTurn {
    /// What kind of turn it is, in the caller's words.
    pub kind: String,
    /// The turn.
    pub body: Value,
}

/// A turn of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// Its number, from 0, without gaps.
    pub seq: i64,
    /// What kind of turn it is.
    pub kind: String,
    /// The turn.
    pub body: Value,
    /// When it was appended.
    pub created_at: Millis,
}

/// A change of a task's state.
///
/// `Interrupted` and `Ended` make the task's interests inactive, every other state makes them active. `Ended` also
/// discards the deliveries that are still pending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateChange {
    /// The task.
    pub task: String,
    /// The lease the change depends on, if it does.
    pub held: Option<HeldLease>,
    /// The states the task may be in now; any but `ended` if this is empty. Otherwise it is a conflict.
    pub from: Vec<TaskState>,
    /// The new state.
    pub to: TaskState,
    /// About the state: why it ended, what it waits for.
    pub detail: Option<Value>,
}

/// One step of a task: everything that becomes true together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AppendTurns {
    /// The task.
    pub task: String,
    /// The lease on the task (`LeaseKind::Task`); `Fenced` if it has moved.
    pub held: HeldLease,
    /// The number of the first of these turns; `Conflict` if it is not the next one.
    pub expected_seq: i64,
    /// The turns.
    pub turns: Vec<NewTurn>,
    /// Values that the allow list gains. Those of sealed parameters are left out.
    pub allow: Vec<AllowEntry>,
    /// The states the task may be in now; any but `ended` if this is empty. Otherwise it is a conflict.
    pub from: Vec<TaskState>,
    /// The new state with its detail, if it changes.
    pub state: Option<(TaskState, Option<Value>)>,
    /// The delivery that the first of these turns is; `Conflict` if it is not pending any more.
    pub delivered: Option<i64>,
}

/// What an append came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendedTurns {
    /// The number the next turn will have.
    pub next_seq: i64,
    /// When it was appended.
    pub at: Millis,
    /// Whether the task has something to do after it.
    pub has_work: bool,
}

/// Which tasks are worth waking, besides those that are `running` and whose process is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeRules {
    /// Wakes waiting tasks for commands. No other delivery wakes one that waits for a person.
    pub waiting: bool,
    /// Wakes interrupted tasks for pending deliveries.
    pub interrupted: bool,
}

/// A task that this process may work on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedTask {
    /// The task.
    pub task: TaskRecord,
    /// The lease on it.
    pub lease: Lease,
    /// Its oldest command, or else its oldest pending delivery; none if only its process was gone.
    pub next: Option<DeliveryRecord>,
    /// Whether that is a command.
    pub is_command: bool,
    /// Its allow list, for all tools.
    pub allow: Vec<AllowEntry>,
}
