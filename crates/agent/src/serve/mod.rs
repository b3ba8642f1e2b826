//! Serving: the agent over AG-UI, A2A and MCP, for whoever speaks one of them.
//!
//! An [`AgentServer`] is bound first, so that its addresses are known, and then serves until it is told to
//! stop. Each conversation of a client is a task of the agent; all are ended before it returns. A [`ModelServer`]
//! serves a bare model instead, to agents of others.
//!
//! ```
//! # use std::sync::Arc;
//! # use proofhouse_agent::model::{self, ModelConfig};
//! # use proofhouse_agent::task::Host;
//! use proofhouse_agent::serve::{AgentLimits, AgentServer, ServeAddresses};
//! # use proofhouse_tools::http::EgressPolicy;
//! # use proofhouse_manifest::{Bundle, Catalog};
//! # use proofhouse_tools::runtime::{Environment, ToolLimits, Runtimes};
//! use proofhouse_wire::CancellationToken;
//! # use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (bundle, _) = Bundle::read(r#"
//! # kind: commonagents.info/v1beta2/agent
//! # namespace: demo
//! # name: clerk
//! # description: Answers.
//! # prompt: You answer questions.
//! # "#);
//! # let mut catalog = Catalog::default();
//! # catalog.add(&bundle);
//! # let limits = ToolLimits::default();
//! # let host = Host::new(
//! #     catalog,
//! #     Runtimes::new(&limits, EgressPolicy::default())?,
//! #     limits,
//! #     Environment::new(json!({}), || "2026-01-01T00:00:00.000Z".to_owned()),
//! #     model::open("sim:careful", &ModelConfig::default())?,
//! # );
//! let places = ServeAddresses { a2a: Some("127.0.0.1:0".parse()?), ..ServeAddresses::default() };
//! let server = AgentServer::bind(host, "demo", "clerk", &places, AgentLimits::default()).await?;
//! assert!(server.places().a2a.is_some());
//! let stop = CancellationToken::new();
//! stop.cancel();
//! server.serve(stop).await;
//! # Ok(())
//! # }
//! ```

mod a2a;
mod ag_ui;
mod completions;
mod conversations;
mod limits;
mod mcp;
mod run;
mod texts;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_manifest::Agent;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::server::BoundServer;
use proofhouse_wire::sync::lock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

pub use crate::remote::{grant_mcp, mcp_tool};
pub use completions::{ModelServer, ModelServerLimits};
pub use limits::AgentLimits;

pub(crate) use self::texts::fresh_id;

use crate::model::ChatMessage;
use crate::task::{Host, StartError, Task, TaskOptions};

/// How often conversations that nobody uses any more are looked for: ten times in the time they have,
/// within these bounds.
const SWEEP: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(30));

/// Where an agent is served, each protocol at an address of its own. Port 0 takes a free one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServeAddresses {
    /// AG-UI: any path.
    pub ag_ui: Option<SocketAddr>,
    /// A2A: the card at `/.well-known/agent-card.json`, JSON-RPC at any path.
    pub a2a: Option<SocketAddr>,
    /// MCP over HTTP: `/mcp`.
    pub mcp: Option<SocketAddr>,
}

/// Why an agent cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The address cannot be had.
    #[error("cannot serve {protocol} on {address}: {error}")]
    Bind {
        /// The protocol.
        protocol: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
}

/// A client of MCP at the other end of lines.
type StdioLines = (
    Box<dyn AsyncRead + Send + Unpin>,
    Box<dyn AsyncWrite + Send + Unpin>,
);

/// An agent that others can reach.
pub struct AgentServer {
    service: Arc<AgentService>,
    ag_ui: Option<BoundServer>,
    a2a: Option<BoundServer>,
    mcp: Option<BoundServer>,
    lines: Option<StdioLines>,
}

impl AgentServer {
    /// Takes the addresses. Connections wait until [`AgentServer::serve`].
    ///
    /// # Errors
    ///
    /// Returns an error when there is no such agent, when it cannot be started, or when an address cannot
    /// be had.
    pub async fn bind(
        host: Host,
        namespace: &str,
        agent: &str,
        places: &ServeAddresses,
        limits: AgentLimits,
    ) -> Result<Self, ServeError> {
        // A task that begins and goes at once shows what is wrong before anybody comes.
        drop(host.start(namespace, agent, TaskOptions::default())?);
        let missing = || StartError::NoAgent {
            agent: agent.to_owned(),
            near: None,
        };
        let agent = host.find(namespace, agent).ok_or_else(missing)?;
        Ok(Self {
            ag_ui: bound("AG-UI", places.ag_ui).await?,
            a2a: bound("A2A", places.a2a).await?,
            mcp: bound("MCP", places.mcp).await?,
            lines: None,
            service: Arc::new(AgentService {
                runs: Arc::new(Semaphore::new(limits.max_runs)),
                work: Mutex::default(),
                host,
                agent,
                limits,
            }),
        })
    }

    /// The same, and one client of MCP over lines, such as stdin and stdout. When it is gone, serving ends.
    #[must_use]
    pub fn with_mcp_lines(
        mut self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        self.lines = Some((Box::new(input), Box::new(output)));
        self
    }

    /// Where it listens.
    #[must_use]
    pub fn places(&self) -> ServeAddresses {
        let address = |bound: &Option<BoundServer>| bound.as_ref().map(BoundServer::address);
        ServeAddresses {
            ag_ui: address(&self.ag_ui),
            a2a: address(&self.a2a),
            mcp: address(&self.mcp),
        }
    }

    /// Serves until `stop` is cancelled. Then connections are closed, and all tasks are ended and their
    /// tools torn down before this returns.
    pub async fn serve(self, stop: CancellationToken) {
        let stop = stop.child_token();
        let service = self.service;
        let mut serving = JoinSet::new();
        if let Some(bound) = self.ag_ui {
            serving.spawn(ag_ui::serve(Arc::clone(&service), bound, stop.clone()));
        }
        if let Some(bound) = self.a2a {
            serving.spawn(a2a::serve(Arc::clone(&service), bound, stop.clone()));
        }
        if let Some(bound) = self.mcp {
            let server = mcp::server(&service);
            let stop = stop.clone();
            serving.spawn(async move { server.serve_http(bound, stop).await });
        }
        if let Some((input, output)) = self.lines {
            let server = mcp::server(&service);
            let stop = stop.clone();
            serving.spawn(async move {
                server.serve_lines(input, output, stop.child_token()).await;
                stop.cancel();
            });
        }
        while serving.join_next().await.is_some() {}
        service.close().await;
    }
}

impl std::fmt::Debug for AgentServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentServer")
            .field("agent", &self.service.agent.name)
            .field("places", &self.places())
            .finish_non_exhaustive()
    }
}

async fn bound(
    protocol: &'static str,
    address: Option<SocketAddr>,
) -> Result<Option<BoundServer>, ServeError> {
    let Some(address) = address else {
        return Ok(None);
    };
    let bound = BoundServer::new(address).await;
    bound.map(Some).map_err(|error| ServeError::Bind {
        protocol,
        address,
        error,
    })
}

/// What all protocols share.
struct AgentService {
    host: Host,
    agent: Arc<Agent>,
    limits: AgentLimits,
    runs: Arc<Semaphore>,
    work: Mutex<JoinSet<()>>,
}

impl AgentService {
    /// Begins a task of the agent.
    fn begin(&self, history: Vec<ChatMessage>) -> Result<Task, StartError> {
        let options = TaskOptions {
            history,
            ..TaskOptions::default()
        };
        let agent = &self.agent;
        self.host.start(&agent.namespace, &agent.name, options)
    }

    /// Whether answers are changed or refused by rules. What the model says is then told only after them:
    /// a word that was streamed cannot be taken back.
    fn is_guarded(&self) -> bool {
        !self.agent.guardrails.after.is_empty()
    }

    /// The names of parameters that are bound in any capability.
    fn bound_names(&self) -> Vec<&str> {
        let rules = self.agent.capabilities.iter();
        rules
            .filter_map(|(_, grant)| grant.capability.as_ref())
            .flat_map(|rules| rules.bindings.iter().map(|(name, _)| name.as_str()))
            .collect()
    }

    /// Room for one more answer.
    fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.runs).try_acquire_owned().ok()
    }

    /// Runs something that ends when its task does.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut running = lock(&self.work);
        while running.try_join_next().is_some() {}
        running.spawn(work);
    }

    /// Looks for what is idle, for ever.
    async fn sweeping(&self, sweep: impl Fn()) {
        loop {
            tokio::time::sleep((self.limits.idle / 10).clamp(SWEEP.0, SWEEP.1)).await;
            sweep();
        }
    }

    /// Waits for what was spawned, and ends what does not come to its end.
    async fn close(&self) {
        let mut running = std::mem::take(&mut *lock(&self.work));
        let ended = async { while running.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(self.limits.close, ended).await;
        running.shutdown().await;
    }
}
