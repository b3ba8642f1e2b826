//! What the attacking side does: actors, phases, actions, triggers, extractors, responses.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    DurationText, Extensions, ExtractorSource, ExtractorType, LogLevel, MatchPredicate, Mode,
    Selector, closed_enum,
};

/// The execution profile, in one of three forms that exclude each other: `state`, `phases` or
/// `actors`. Normalization turns the first two into the third.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Execution {
    /// The attacker's posture, `{protocol}_{server|client}`.
    pub mode: Option<Mode>,
    /// Single-phase form.
    pub state: Option<Value>,
    /// Multi-phase form.
    pub phases: Option<Vec<Phase>>,
    /// Multi-actor form.
    pub actors: Option<Vec<Actor>>,
    /// `x-` fields.
    pub extensions: Extensions,
}

impl Execution {
    /// The single-phase form: one posture, one state.
    ///
    /// ```
    /// use proofhouse_oatf::{Attack, Document, Execution, Indicator, MatchCondition, Mode, validate};
    /// use serde_json::json;
    /// let document = Document::new(Attack {
    ///     execution: Execution::single(Mode::McpServer, json!({"tools": []})),
    ///     indicators: Some(vec![Indicator::matching("arguments", MatchCondition::regex("id_rsa"))]),
    ///     ..Attack::default()
    /// });
    /// assert!(validate(&document).is_valid());
    /// ```
    #[must_use]
    pub fn single(mode: Mode, state: Value) -> Self {
        Self {
            mode: Some(mode),
            state: Some(state),
            ..Self::default()
        }
    }

    /// The actors, or none before normalization of a short form.
    #[must_use]
    pub fn actors(&self) -> &[Actor] {
        self.actors.as_deref().unwrap_or_default()
    }
}

/// One concurrent endpoint of the attacking side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Actor {
    /// A unique name.
    pub name: String,
    /// The posture of this actor.
    pub mode: Mode,
    /// What it does, in order.
    pub phases: Vec<Phase>,
    /// `x-` fields.
    pub extensions: Extensions,
}

/// A stage of an attack.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Phase {
    /// A label; `phase-{N}` when absent.
    pub name: Option<String>,
    /// What the phase is for.
    pub description: Option<String>,
    /// The posture, when it is not inherited; see [`Phase::mode_in`].
    pub mode: Option<Mode>,
    /// Protocol state; inherited whole from the phase before when absent.
    pub state: Option<Value>,
    /// Values to capture.
    pub extractors: Option<Vec<Extractor>>,
    /// Actions on entry.
    pub on_enter: Option<Vec<Action>>,
    /// When to go on; absent on the terminal phase.
    pub trigger: Option<Trigger>,
    /// `x-` fields.
    pub extensions: Extensions,
}

impl Phase {
    /// The posture that holds in this phase of `actor`.
    #[must_use]
    pub fn mode_in<'a>(&'a self, actor: &'a Actor) -> &'a Mode {
        self.mode.as_ref().unwrap_or(&actor.mode)
    }

    /// Whether the phase lasts until the end.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.trigger.is_none()
    }
}

/// An entry action.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// What to do, in the order written; exactly one in a valid document (V-041).
    pub kinds: Vec<ActionKind>,
    /// `x-` fields.
    pub extensions: Extensions,
}

impl Action {
    /// Sends a protocol message on entry.
    #[must_use]
    pub fn send(method: impl Into<String>, params: Option<Value>) -> Self {
        let method = method.into();
        Self::of(ActionKind::Send { method, params })
    }

    /// Logs a line on entry, at the level a tool takes when there is none.
    #[must_use]
    pub fn log(message: impl Into<String>) -> Self {
        Self::of(ActionKind::Log {
            message: message.into(),
            level: None,
        })
    }

    fn of(kind: ActionKind) -> Self {
        Self {
            kinds: vec![kind],
            extensions: Extensions::new(),
        }
    }

    /// The action, when it is the one a valid document has.
    #[must_use]
    pub fn kind(&self) -> Option<&ActionKind> {
        match self.kinds.as_slice() {
            [kind] => Some(kind),
            _ => None,
        }
    }
}

/// What an [`Action`] does.
#[derive(Debug, Clone, PartialEq)]
pub enum ActionKind {
    /// `send`: a protocol message.
    Send {
        /// The protocol method.
        method: String,
        /// Its parameters, passed through.
        params: Option<Value>,
    },
    /// `log`: a line for the operator.
    Log {
        /// The text; may hold templates.
        message: String,
        /// Its level.
        level: Option<LogLevel>,
    },
    /// An action a protocol binding defines, kept as written.
    Binding {
        /// The key.
        name: String,
        /// Whatever it holds.
        value: Value,
    },
}

impl ActionKind {
    /// The key the action is written with.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::Send { .. } => "send",
            Self::Log { .. } => "log",
            Self::Binding { name, .. } => name,
        }
    }
}

/// When a phase ends.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trigger {
    /// The protocol event to wait for.
    pub event: Option<String>,
    /// How many of them; 1 when absent.
    pub count: Option<i64>,
    /// What they must hold.
    pub r#match: Option<MatchPredicate>,
    /// When to go on regardless.
    pub after: Option<DurationText>,
}

impl Trigger {
    /// Waits for an event of this type; what it must hold, and how many of them, can be set on it.
    ///
    /// ```
    /// use proofhouse_oatf::Trigger;
    /// let twice = Trigger { count: Some(2), ..Trigger::event("tools/call") };
    /// assert_eq!(twice.event.as_deref(), Some("tools/call"));
    /// ```
    #[must_use]
    pub fn event(event: impl Into<String>) -> Self {
        Self {
            event: Some(event.into()),
            ..Self::default()
        }
    }

    /// Waits for a time such as `30s`.
    #[must_use]
    pub fn after(duration: impl Into<DurationText>) -> Self {
        Self {
            after: Some(duration.into()),
            ..Self::default()
        }
    }
}

/// Something that happened on the wire, as triggers see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProtocolEvent {
    /// The event, for example `tools/call`.
    pub event_type: String,
    /// Its payload.
    pub content: Value,
}

closed_enum! {
    /// Why a phase ended.
    pub enum AdvanceReason {
        /// Enough matching events were seen.
        EventMatched => "event_matched",
        /// The `after` duration elapsed.
        Timeout => "timeout",
    }
}

/// Whether a phase should end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerResult {
    /// Go on to the next phase.
    Advanced {
        /// Why.
        reason: AdvanceReason,
    },
    /// Stay.
    NotAdvanced,
}

/// What a trigger remembers within one phase of one actor.
///
/// Make a fresh one on phase entry and pass it to every [`evaluate_trigger`](crate::evaluate_trigger).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerState {
    /// Fully matched events so far.
    pub event_count: i64,
}

/// Captures a value from traffic for use in templates.
#[derive(Debug, Clone, PartialEq)]
pub struct Extractor {
    /// The variable.
    pub name: String,
    /// Which side to read.
    pub source: ExtractorSource,
    /// How to read it.
    pub r#type: ExtractorType,
    /// What to read.
    pub selector: Selector,
}

impl Extractor {
    /// An extractor that takes the first node of a JSONPath.
    #[must_use]
    pub fn json_path(name: impl Into<String>, source: ExtractorSource, selector: &str) -> Self {
        Self {
            name: name.into(),
            source,
            r#type: ExtractorType::JsonPath,
            selector: Selector::new(selector),
        }
    }

    /// An extractor that takes the first capture group of a regular expression.
    #[must_use]
    pub fn regex(name: impl Into<String>, source: ExtractorSource, selector: &str) -> Self {
        Self {
            r#type: ExtractorType::Regex,
            ..Self::json_path(name, source, selector)
        }
    }
}

/// An entry of a dispatch list: what to answer, and when.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResponseEntry {
    /// When to choose this entry; absent on the fallback.
    pub when: Option<MatchPredicate>,
    /// The answer, passed through.
    pub content: Option<Value>,
    /// Reserved: the answer is to be generated.
    pub synthesize: Option<SynthesizeBlock>,
    /// Fields of the binding, such as `messages` or `action`, passed through.
    pub fields: Extensions,
}

/// Reserved: asks for generated content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SynthesizeBlock {
    /// The prompt; may hold templates.
    pub prompt: Option<String>,
}
