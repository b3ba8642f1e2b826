//! The model of triggers and schedules: what a document says, checked and compiled.

use proofhouse_source::Span;
use serde_json::{Map, Value};

use crate::MiddlewareStep;
use crate::interpolate::Template;
use crate::schedule::Cadence;

/// Starts a task of an agent for each event of a source that passes its assertions.
#[derive(Debug, Clone)]
pub struct EventTrigger {
    /// The namespace it belongs to.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The agent, in the same namespace.
    pub agent: String,
    /// Whose identity and tokens the tasks have; never those of who sent the event.
    pub owner: String,
    /// What it listens to.
    pub source: TriggerSource,
    /// What the task is told, with `{event.payload…}` filled in.
    pub message: Option<Template>,
    /// The rest of the task's input.
    pub inputs: Map<String, Value>,
    /// Whether it is active.
    pub enabled: bool,
    /// Where its agent is named in the file.
    pub agent_span: Span,
}

/// What a trigger listens to.
#[derive(Debug, Clone)]
pub struct TriggerSource {
    /// The name in the address that events are posted to: a tool, or a source of the operator's file.
    pub kind: String,
    /// What must hold for a task to start.
    pub before: Vec<MiddlewareStep>,
}

/// Starts tasks of an agent by the clock.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// The namespace it belongs to.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The agent, in the same namespace.
    pub agent: String,
    /// When.
    pub cadence: Cadence,
    /// The cron expression, as written.
    pub cron: String,
    /// The time zone, as written; UTC without one.
    pub timezone: Option<String>,
    /// Whose identity and tokens the tasks have.
    pub owner: String,
    /// The input of each task; `message` is what it is told.
    pub inputs: Map<String, Value>,
    /// Whether it is active.
    pub enabled: bool,
    /// Where its agent is named in the file.
    pub agent_span: Span,
}
