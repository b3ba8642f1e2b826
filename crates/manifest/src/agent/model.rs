//! The model of an agent manifest: what a document says, checked and compiled.

use std::time::Duration;

use proofhouse_expr::Program;
use proofhouse_source::Span;

use crate::ParameterSchema;
use crate::interpolate::Template;

/// An agent: a prompt, what it may use, and the rules around that.
#[derive(Debug, Clone)]
pub struct Agent {
    /// The namespace it belongs to.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What the model is told. `{context…}`, `{runtime…}` and `{now}` are filled in.
    pub prompt: Template,
    /// The model it asks for.
    pub model: Option<String>,
    /// Which tasks go first.
    pub priority: Option<u64>,
    /// Which files it may use; none if empty.
    pub mount: Vec<MountScope>,
    /// What a task may use up.
    pub limits: TaskLimits,
    /// What an input holds beside the message.
    pub parameters: ParameterSchema,
    /// Tools and agents by the reference the manifest uses, in order.
    pub capabilities: Vec<(String, Grant)>,
    /// What the provider of the model offers by itself.
    pub model_capabilities: Vec<String>,
    /// Steps around inputs and outputs.
    pub guardrails: Guardrails,
    /// What an output holds beside the message.
    pub exposes: Vec<(String, Program)>,
}

/// Which files an agent may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountScope {
    /// Those of the task.
    Task,
    /// Those of the agent, in all its tasks.
    Agent,
    /// Those of all agents.
    Workspace,
}

impl MountScope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Task, Self::Agent, Self::Workspace];

    /// The word for it, which is the scheme of its files, too.
    ///
    /// ```
    /// use proofhouse_manifest::MountScope;
    /// assert_eq!(MountScope::named("task"), Some(MountScope::Task));
    /// assert_eq!(MountScope::Task.name(), "task");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Agent => "agent",
            Self::Workspace => "workspace",
        }
    }

    /// The scope of a word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == word)
    }
}

/// What a task may use up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskLimits {
    /// Turns of the model.
    pub max_turns: Option<u64>,
    /// Tokens sent, in all.
    pub max_prompt_tokens: Option<u64>,
    /// Tokens made, in all.
    pub max_completion_tokens: Option<u64>,
    /// Time.
    pub max_age: Option<Duration>,
    /// Calls of capabilities.
    pub max_tool_calls: Option<u64>,
}

/// What an agent may do with a tool or another agent.
#[derive(Debug, Clone)]
pub struct Grant {
    /// `None` for `"*"`: everything, without rules.
    pub capability: Option<Capability>,
    /// Where it stands in the file.
    pub span: Span,
}

/// The rules of a capability.
#[derive(Debug, Clone, Default)]
pub struct Capability {
    /// Which actions and events; all when absent.
    pub include: Option<Vec<String>>,
    /// Parameters that the model neither sees nor sets.
    pub bindings: Vec<(String, Binding)>,
    /// How long events are awaited.
    pub event_timeout: Option<Duration>,
    /// Steps before the first call.
    pub before_first: Vec<MiddlewareStep>,
    /// Steps before each call and each event.
    pub before: Vec<MiddlewareStep>,
    /// Steps after each call and each event.
    pub after: Vec<MiddlewareStep>,
}

/// Where the value of a bound parameter comes from.
#[derive(Debug, Clone)]
pub enum Binding {
    /// An expression over `context`, `runtime` and `now`.
    Cel(Program),
    /// The text itself.
    Literal(String),
    /// A text with references.
    Template(Template),
}

/// Steps around the inputs and outputs of an agent.
#[derive(Debug, Clone, Default)]
pub struct Guardrails {
    /// When input comes.
    pub before: Vec<MiddlewareStep>,
    /// Before the agent responds.
    pub after: Vec<MiddlewareStep>,
}

/// One step of middleware.
#[derive(Debug, Clone)]
pub struct MiddlewareStep {
    /// What it does.
    pub action: StepAction,
    /// Only for the action or event of this name.
    pub matches: Option<String>,
    /// Only if this holds.
    pub condition: Option<Program>,
    /// What is told when it fails.
    pub error_message: Option<Template>,
    /// What becomes of the call or the task when it fails.
    pub on_fail: OnFail,
    /// Where it stands in the file.
    pub span: Span,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum StepAction {
    /// Something must hold.
    Assert(Program),
    /// Another action is carried out.
    Invoke {
        /// The reference of the tool.
        tool: String,
        /// Its action; the only one when absent.
        action: Option<String>,
        /// Its parameters.
        bindings: Vec<(String, Binding)>,
    },
    /// The result is replaced.
    Transform(Program),
}

/// What a failed step leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFail {
    /// The model is told an error; the call does not happen.
    Block,
    /// The step is passed over.
    Continue,
    /// The task ends for good.
    LockTask,
}
