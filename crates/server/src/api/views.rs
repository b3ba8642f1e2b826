//! What the API shows of the store's rows.

use jiff::Timestamp;
use proofhouse_store::model::{
    DeliveryRecord, EventDetail, EventSummary, Millis, TaskRecord, TriggerStatus, TurnRecord,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::engine::{Engine, LoadedFile};

/// The most of a payload that is shown.
const MAX_PAYLOAD_SHOWN: usize = 256 << 10;

/// A moment as text.
#[must_use]
pub(crate) fn moment(at: Millis) -> String {
    Timestamp::from_millisecond(at).map_or_else(|_| at.to_string(), |time| format!("{time:.3}"))
}

/// A task.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TaskView {
    /// Names it.
    pub id: String,
    /// The namespace of its agent.
    pub namespace: String,
    /// Its agent.
    pub agent: String,
    /// Its model, where the task says one.
    pub model: Option<String>,
    /// Who talks to the agent.
    pub user: String,
    /// `idle`, `running`, `waiting`, `interrupted` or `ended`.
    pub state: String,
    /// How it ended, or which questions it waits with.
    pub detail: Option<Value>,
    /// What began it.
    pub origin: Value,
    /// How many turns it has.
    pub turns: i64,
    /// When it began.
    pub created_at: String,
    /// When something last happened in it.
    pub last_activity: String,
}

impl From<TaskRecord> for TaskView {
    fn from(task: TaskRecord) -> Self {
        Self {
            id: task.id,
            namespace: task.agent_namespace,
            agent: task.agent_name,
            model: task.model,
            user: task.user_id,
            state: task.state.as_str().to_owned(),
            detail: task.detail,
            origin: task.origin,
            turns: task.next_seq,
            created_at: moment(task.created_at),
            last_activity: moment(task.last_activity),
        }
    }
}

/// Something that happened in a task.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TurnView {
    /// Its number in the task.
    pub number: i64,
    /// `input`, `llm`, `capability` or another word of the runtime.
    pub kind: String,
    /// What happened.
    pub body: Value,
    /// When.
    pub time: String,
}

impl From<TurnRecord> for TurnView {
    fn from(turn: TurnRecord) -> Self {
        Self {
            number: turn.seq,
            kind: turn.kind,
            body: turn.body,
            time: moment(turn.created_at),
        }
    }
}

/// An event.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct EventView {
    /// Names it.
    pub id: i64,
    /// The tool it came for.
    pub tool: String,
    /// `webhook`, `subscription` or `poll`.
    pub kind: String,
    /// `received` or `routed`.
    pub state: String,
    /// How many tasks it was for.
    pub matched: i64,
    /// What was decided about it, and why.
    #[serde(rename = "fate")]
    pub outcome: Option<Value>,
    /// How often it was routed.
    pub attempt: i64,
    /// When it came.
    pub received_at: String,
    /// When that was decided.
    pub routed_at: Option<String>,
    /// How large it is.
    pub bytes: i64,
}

impl From<EventSummary> for EventView {
    fn from(event: EventSummary) -> Self {
        Self {
            id: event.id,
            tool: event.tool.name,
            kind: event.kind.as_str().to_owned(),
            state: event.state.as_str().to_owned(),
            matched: event.matched,
            outcome: event.outcome,
            attempt: event.attempt,
            received_at: moment(event.received_at),
            routed_at: event.routed_at.map(moment),
            bytes: event.payload_bytes,
        }
    }
}

/// What a task gets, or got.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct DeliveryView {
    /// Names it.
    pub id: i64,
    /// The task.
    pub task: String,
    /// The event of the tool, or `message`.
    pub name: String,
    /// Which routing of the event made it.
    pub attempt: i64,
    /// `pending`, `delivered` or `discarded`.
    pub state: String,
    /// Why it was discarded.
    pub reason: Option<String>,
    /// The number of the turn that it became.
    pub turn: Option<i64>,
}

impl From<DeliveryRecord> for DeliveryView {
    fn from(delivery: DeliveryRecord) -> Self {
        Self {
            id: delivery.id,
            task: delivery.task,
            name: delivery.name,
            attempt: delivery.attempt,
            state: delivery.state.as_str().to_owned(),
            reason: delivery.reason,
            turn: delivery.turn_seq,
        }
    }
}

/// An event with everything about it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct EventDetailView {
    /// The event.
    #[serde(flatten)]
    pub event: EventView,
    /// The headers that were kept.
    pub headers: Value,
    /// The payload: JSON where it is, text otherwise; what is large is cut.
    pub payload: Value,
    /// What was decided before it was routed again.
    pub earlier: Vec<Value>,
    /// Whom it was given to.
    pub deliveries: Vec<DeliveryView>,
}

impl From<EventDetail> for EventDetailView {
    fn from(detail: EventDetail) -> Self {
        let payload = &detail.event.payload;
        let shown = if payload.len() <= MAX_PAYLOAD_SHOWN {
            serde_json::from_slice(payload)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(payload).into_owned()))
        } else {
            let head = payload.get(..MAX_PAYLOAD_SHOWN).unwrap_or_default();
            Value::String(format!("{}…", String::from_utf8_lossy(head)))
        };
        Self {
            headers: detail.event.headers,
            payload: shown,
            earlier: detail.earlier,
            deliveries: detail.deliveries.into_iter().map(Into::into).collect(),
            event: detail.event.summary.into(),
        }
    }
}

/// A schedule or trigger, and what it did.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TriggerView {
    /// `schedule` or `trigger`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When it last began a task.
    pub last_at: Option<String>,
    /// That task.
    pub last_task: Option<String>,
    /// When it is due.
    pub next_at: Option<String>,
    /// How many tasks it began.
    pub total: i64,
    /// How often it failed since it last did not.
    pub consecutive_failures: i64,
    /// Why, the last time.
    pub last_error: Option<String>,
    /// Whether its manifest is gone; it is not due then, and what it did stays known.
    pub removed: bool,
}

impl TriggerView {
    /// What is kept about one, beside what the manifests say now.
    pub(crate) fn of(status: TriggerStatus, engine: &Engine) -> Self {
        let removed = !engine.has_trigger(&status.key);
        Self {
            removed,
            kind: status.key.kind.as_str().to_owned(),
            namespace: status.key.namespace,
            name: status.key.name,
            last_at: status.last_at.map(moment),
            last_task: status.last_task,
            next_at: status.next_at.filter(|_| !removed).map(moment),
            total: status.total,
            consecutive_failures: status.failures,
            last_error: status.last_error,
        }
    }
}

/// A file of manifests.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ManifestView {
    /// Its path within the directory.
    pub path: String,
    /// Whether an earlier version is in use because this one is wrong.
    pub stale: bool,
    /// What is in it.
    pub holds: Vec<ManifestEntryView>,
    /// What is wrong with it.
    pub problems: Vec<ManifestProblemView>,
}

/// A manifest in a file.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ManifestEntryView {
    /// `tool`, `agent`, `trigger` or `schedule`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Something wrong in a manifest.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ManifestProblemView {
    /// The code; `proofhouse explain CODE` says more.
    pub code: String,
    /// `error` or `warning`.
    pub severity: String,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub line: usize,
    /// Where in the line.
    pub column: usize,
}

impl ManifestView {
    /// What is told of a file.
    pub(crate) fn of(file: &LoadedFile) -> Self {
        let holds = file
            .holds
            .iter()
            .map(|(kind, namespace, name)| ManifestEntryView {
                kind: kind.clone(),
                namespace: namespace.clone(),
                name: name.clone(),
            });
        let problems = file.problems.iter().map(|problem| ManifestProblemView {
            code: problem.code.clone(),
            severity: problem.severity.clone(),
            message: match &problem.help {
                Some(help) => format!("{}; {help}", problem.message),
                None => problem.message.clone(),
            },
            line: problem.line,
            column: problem.column,
        });
        Self {
            path: file.path.clone(),
            stale: file.stale,
            holds: holds.collect(),
            problems: problems.collect(),
        }
    }
}
