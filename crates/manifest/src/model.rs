//! The model of a tool manifest: what a document says, checked and compiled.

use std::sync::Arc;
use std::time::Duration;

use proofhouse_expr::Program;
use serde_json_path::JsonPath;

use super::parameters::ParameterSchema;
use crate::interpolate::{BodyTemplate, HeaderTemplate, Template, UrlTemplate};

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
    /// What the operator configures, if the tool says.
    pub settings: Option<ParameterSchema>,
    /// Parameters of every action and event.
    pub parameters: ParameterSchema,
    /// What an agent can do.
    pub actions: Vec<Arc<Action>>,
    /// What can reach it.
    pub events: Vec<Event>,
    /// Blocks that actions inherit from.
    pub shared: Shared,
}

/// The blocks at the top level of a tool.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    /// For HTTP actions.
    pub stateless_http: Option<HttpCall>,
    /// For session actions.
    pub stateful_session: Option<Session>,
    /// A specification whose operations are all actions.
    pub openapi: Option<OpenApi>,
    /// A server whose tools are all actions.
    pub mcp: Option<Mcp>,
}

/// Something an agent can do.
#[derive(Debug, Clone)]
pub struct Action {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// Its parameters and those of the tool.
    pub parameters: ParameterSchema,
    /// How it is done, with what it inherits.
    pub execute: Execute,
}

/// How an action is done.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one per action, read once")]
pub enum Execute {
    /// By an expression.
    Cel(CelCall),
    /// By one HTTP request.
    StatelessHttp(HttpCall),
    /// By a request in a remote session.
    StatefulSession(Session),
    /// By an operation of an OpenAPI specification.
    OpenApi(OpenApi),
    /// By a tool of an MCP server.
    Mcp(Mcp),
    /// By a Kubernetes Job.
    KubernetesJob(KubernetesJob),
}

/// The kinds of backend that an action can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendKind {
    /// An expression.
    Cel,
    /// One HTTP request.
    StatelessHttp,
    /// A request in a remote session.
    StatefulSession,
    /// An operation of a description.
    OpenApi,
    /// A tool of an MCP server.
    Mcp,
    /// A Kubernetes Job.
    KubernetesJob,
}

impl BackendKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Cel,
        Self::StatelessHttp,
        Self::StatefulSession,
        Self::OpenApi,
        Self::Mcp,
        Self::KubernetesJob,
    ];

    /// The key of the block in the manifest.
    ///
    /// ```
    /// use proofhouse_manifest::BackendKind;
    ///
    /// assert_eq!(BackendKind::StatelessHttp.key(), "stateless_http");
    /// assert_eq!(BackendKind::from_key("mcp"), Some(BackendKind::Mcp));
    /// assert_eq!(BackendKind::from_key("smtp"), None);
    /// ```
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Cel => "cel",
            Self::StatelessHttp => "stateless_http",
            Self::StatefulSession => "stateful_session",
            Self::OpenApi => "openapi",
            Self::Mcp => "mcp",
            Self::KubernetesJob => "kubernetes_job",
        }
    }

    /// The kind of a key.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.key() == key)
    }

    /// Whether the backend knows the arguments better than the manifest does: a description or a server tells.
    #[must_use]
    pub fn is_described_by_backend(self) -> bool {
        match self {
            Self::OpenApi | Self::Mcp => true,
            Self::Cel | Self::StatelessHttp | Self::StatefulSession | Self::KubernetesJob => false,
        }
    }
}

impl Execute {
    /// The kind of backend.
    #[must_use]
    pub fn kind(&self) -> BackendKind {
        match self {
            Self::Cel(_) => BackendKind::Cel,
            Self::StatelessHttp(_) => BackendKind::StatelessHttp,
            Self::StatefulSession(_) => BackendKind::StatefulSession,
            Self::OpenApi(_) => BackendKind::OpenApi,
            Self::Mcp(_) => BackendKind::Mcp,
            Self::KubernetesJob(_) => BackendKind::KubernetesJob,
        }
    }

    /// The key of the block in the manifest.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.kind().key()
    }

    /// Whether both are served by one initialization: the same backend, and for descriptions and MCP
    /// servers the same one.
    #[must_use]
    pub fn shares_state(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::OpenApi(one), Self::OpenApi(other)) => one == other,
            (Self::Mcp(one), Self::Mcp(other)) => one == other,
            _ => self.kind() == other.kind(),
        }
    }
}

impl Tool {
    /// The shared blocks that derive actions: a description or an MCP server that no action of the
    /// manifest uses. Where actions do use it, they say which of its operations the tool has.
    #[must_use]
    pub fn deriving(&self) -> Vec<Execute> {
        let openapi = self.shared.openapi.clone();
        let openapi = openapi
            .filter(|api| api.url.is_some())
            .map(Execute::OpenApi);
        let mcp = self.shared.mcp.clone();
        let mcp = mcp.filter(|mcp| mcp.transport.is_some()).map(Execute::Mcp);
        let used = |block: &Execute| {
            let mut actions = self.actions.iter();
            actions.any(|action| action.execute.key() == block.key())
        };
        let blocks = openapi.into_iter().chain(mcp);
        blocks.filter(|block| !used(block)).collect()
    }
}

/// An expression whose result is the result of the action.
#[derive(Debug, Clone)]
pub struct CelCall {
    /// The compiled expression.
    pub expression: Program,
}

/// One HTTP request. In a shared block anything may be absent; in an action `method` and `url` are there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HttpCall {
    /// The method.
    pub method: Option<Template>,
    /// Where to.
    pub url: Option<UrlTemplate>,
    /// Headers.
    pub headers: Vec<HeaderTemplate>,
    /// What is sent.
    pub body: Option<BodyTemplate>,
    /// What to take from the response.
    pub response_path: Option<JsonPath>,
}

/// A remote session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// The call that makes it.
    pub create: Option<HttpCall>,
    /// A call after that.
    pub initialize: Option<HttpCall>,
    /// What to keep of the answer.
    pub extract: Vec<(String, JsonPath)>,
    /// The call of each action.
    pub execute: Option<HttpCall>,
    /// The call that ends it.
    pub destroy: Option<HttpCall>,
}

impl Session {
    /// Whether both make, keep and end the session in the same way.
    pub(super) fn is_same_session(&self, other: &Self) -> bool {
        self.create == other.create
            && self.initialize == other.initialize
            && self.extract == other.extract
            && self.destroy == other.destroy
    }
}

/// An OpenAPI specification.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpenApi {
    /// Where it is.
    pub url: Option<DescriptionPlace>,
    /// Headers of every request.
    pub headers: Vec<HeaderTemplate>,
}

/// Where an OpenAPI description is.
#[derive(Debug, Clone, PartialEq)]
pub enum DescriptionPlace {
    /// On a server.
    Url(UrlTemplate),
    /// In a file, by its path from the manifest's directory.
    File(String),
}

/// How to talk to an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpTransport {
    /// A child process.
    Stdio,
    /// Streamable HTTP, then the legacy transport.
    Sse,
    /// Streamable HTTP.
    StreamableHttp,
}

/// An MCP server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mcp {
    /// How to talk to it.
    pub transport: Option<McpTransport>,
    /// What to start.
    pub command: Option<Template>,
    /// Its arguments.
    pub args: Option<Vec<Template>>,
    /// Where it is.
    pub url: Option<UrlTemplate>,
    /// Headers of every request.
    pub headers: Vec<HeaderTemplate>,
    /// Environment of the command.
    pub env: Vec<(String, Template)>,
}

/// A Kubernetes Job.
#[derive(Debug, Clone)]
pub struct KubernetesJob {
    /// The namespace.
    pub namespace: Template,
    /// A JobSpec, or a whole Job.
    pub spec: BodyTemplate,
}

/// Something that can reach the agent.
#[derive(Debug, Clone)]
pub struct Event {
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
    /// How often.
    pub interval: Duration,
}
