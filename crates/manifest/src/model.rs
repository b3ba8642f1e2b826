//! The model of a tool manifest: what a document says, checked and compiled.

use std::sync::Arc;
use std::time::Duration;

use proofhouse_expr::Program;

use super::execute::{Execute, HttpCall, SharedBlocks};
use super::parameters::ParameterSchema;
use crate::interpolate::Template;

/// A tool: actions an agent can take, and events that can reach it.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The namespace it belongs to.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Whether actions run while the task waits.
    pub synchronous: bool,
    /// Whether its sessions and servers stay while a task sleeps, however long that is.
    pub is_never_evicted: bool,
    /// What the operator configures, if the tool says.
    pub settings: Option<ParameterSchema>,
    /// Parameters of every action and event.
    pub parameters: ParameterSchema,
    /// What an agent can do.
    pub actions: Vec<Arc<ToolAction>>,
    /// What can reach it.
    pub events: Vec<ToolEvent>,
    /// Blocks that actions inherit from.
    pub shared: SharedBlocks,
}

/// Something an agent can do.
#[derive(Debug, Clone)]
pub struct ToolAction {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// Its parameters and those of the tool.
    pub parameters: ParameterSchema,
    /// How it is done, with what it inherits.
    pub execute: Execute,
}

impl Tool {
    /// The shared blocks that derive actions: a description or an MCP server that no action of the
    /// manifest uses. Where actions do use it, they say which of its operations the tool has.
    #[must_use]
    pub fn deriving(&self) -> Vec<Execute> {
        let used = |block: &&Execute| {
            let mut actions = self.actions.iter();
            actions.any(|action| action.execute.kind() == block.kind())
        };
        let blocks = self.shared.blocks().filter(|block| block.derives_actions());
        blocks.filter(|block| !used(block)).cloned().collect()
    }
}

/// Something that can reach the agent.
#[derive(Debug, Clone)]
pub struct ToolEvent {
    /// Its name.
    pub name: String,
    /// What it is, for people.
    pub description: Option<String>,
    /// What the agent is told.
    pub message: Template,
    /// How long a task stays subscribed.
    pub timeout: Option<Duration>,
    /// The longest an agent may ask for.
    pub max_timeout: Option<Duration>,
    /// Aliases or parameters.
    pub parameters: EventParameters,
    /// How it arrives.
    pub receive: Receive,
}

/// The `parameters` of an event, told apart by shape.
#[derive(Debug, Clone)]
pub enum EventParameters {
    /// Names for parts of the payload.
    Aliases(Vec<(String, Program)>),
    /// Parameters of the filter.
    Schema(ParameterSchema),
}

/// How an event arrives.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one per event, read once")]
pub enum Receive {
    /// The platform posts it.
    Webhook(Webhook),
    /// A push channel.
    Subscription(Subscription),
    /// An endpoint that is asked again and again.
    Poll(Poll),
}

/// The platform posts events.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// Which payloads belong to the event.
    pub filter: Option<Program>,
    /// The signing secret.
    pub secret: Option<Template>,
}

/// A push channel.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// Which payloads belong to the event.
    pub filter: Option<Program>,
    /// The call that registers the channel.
    pub subscribe: HttpCall,
    /// The call that removes it.
    pub unsubscribe: Option<HttpCall>,
}

/// An endpoint that is asked again and again.
#[derive(Debug, Clone)]
pub struct Poll {
    /// Which items belong to the event.
    pub filter: Option<Program>,
    /// The request.
    pub call: HttpCall,
    /// Which items are new.
    pub detect: Program,
    /// What an item is told from others by; without it, each that `detect` gives fires.
    pub key: Option<Program>,
    /// How often.
    pub interval: Duration,
}
