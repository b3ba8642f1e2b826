//! An agent of ours as a subject: the simulations, and any agent manifest with any model. It runs in this
//! process and meets the attack only over sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use proofhouse_agent::model::{Model, ModelOptions};
use proofhouse_agent::remote::{RemoteAgent, grant_mcp};
use proofhouse_agent::serve::{AgentLimits, AgentServer, ServeAddresses};
use proofhouse_agent::task::{Host, Task, TaskInput, TaskOptions, Turn};
use proofhouse_manifest::{Agent, Bundle, Catalog};
use proofhouse_oatf::{Mode, Protocol};
use proofhouse_range::{ActorEndpoint, BoxFuture};
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{Environment, Runtimes, ToolLimits};
use proofhouse_wire::CancellationToken;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::models::SubjectModelError;
use crate::open::SubjectOpenError;
use crate::reply_watch::{ReplyWatch, WatchedModel};
use crate::subject::{
    LiveSubject, Pace, RunContext, Shutdown, Subject, SubjectAnswer, SubjectError, SubjectInfo,
};

/// Gives every run its model.
pub(crate) type ModelOfRun =
    Box<dyn Fn() -> Result<Arc<dyn Model>, SubjectModelError> + Send + Sync>;

/// An agent of ours.
pub(crate) struct AgentSubject {
    info: SubjectInfo,
    bundles: Vec<Bundle>,
    namespace: String,
    agent: String,
    model: ModelOfRun,
    runtimes: Runtimes,
    egress: Arc<EgressPolicy>,
    limits: ToolLimits,
    pace: Pace,
}

impl AgentSubject {
    /// The patience with simulations.
    pub(crate) const PACE_OF_SIMULATIONS: Pace = Pace {
        // A simulation is done when it says so.
        grace: Duration::ZERO,
        quiet: Duration::from_millis(300),
        start: Duration::from_secs(10),
        deadline: Duration::from_secs(30),
        end: Duration::from_secs(2),
    };

    /// This agent of the manifests, or the first, with this model. It reaches nothing but this machine and the
    /// networks that are allowed: what a document makes it do must not reach real systems.
    pub(crate) fn new(
        info: SubjectInfo,
        bundles: Vec<Bundle>,
        agent: Option<&Agent>,
        model: ModelOfRun,
        allow: &[IpNet],
    ) -> Result<Self, SubjectOpenError> {
        let first = || bundles.iter().flat_map(Bundle::agents).next();
        let agent = agent.or_else(first);
        let agent = agent.ok_or(SubjectOpenError::NoAgent)?;
        let (namespace, name) = (agent.namespace.clone(), agent.name.clone());
        let limits = ToolLimits::default();
        let egress = EgressPolicy::only(allow.iter().copied());
        let runtimes =
            Runtimes::new(&limits, egress.clone()).map_err(SubjectOpenError::Runtimes)?;
        Ok(Self {
            info,
            namespace,
            agent: name,
            bundles,
            model,
            runtimes,
            egress: Arc::new(egress),
            limits,
            pace: Pace::default(),
        })
    }

    /// The same, with another patience.
    pub(crate) fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// The agent, with the servers of a run as its capabilities.
    fn host(&self, run: &RunContext, watch: &Arc<ReplyWatch>) -> Result<Host, SubjectError> {
        let mut bundles = self.bundles.clone();
        let own = bundles
            .iter_mut()
            .find(|bundle| bundle.agents().any(|agent| agent.name == self.agent));
        let own = own.ok_or_else(|| SubjectError::new("the agent is gone"))?;
        let mut remotes = Vec::new();
        for server in &run.servers {
            match server.mode {
                Mode::McpServer => {
                    let name = plain_name(&server.actor);
                    let target = format!("{name}={}", server.address);
                    grant_mcp(own, &self.agent, &target).map_err(SubjectError::of)?;
                }
                Mode::A2aServer => {
                    let remote = RemoteAgent::new(&server.address, Arc::clone(&self.egress) as _);
                    remotes.push(remote.map_err(SubjectError::of)?);
                }
                // It has no place for servers of other kinds.
                _ => {}
            }
        }
        let mut catalog = Catalog::default();
        for bundle in &bundles {
            catalog.add(bundle);
        }
        let environment = Environment::new(json!({}), || jiff::Timestamp::now().to_string());
        let mut host = Host::new(
            catalog,
            self.runtimes.clone(),
            self.limits.clone(),
            environment,
            Arc::new(WatchedModel::new(
                (self.model)().map_err(SubjectError::of)?,
                Arc::clone(watch),
                Arc::clone(&run.gates),
            )),
        );
        for remote in remotes {
            host = host.with_remote(&self.agent, remote);
        }
        let options = ModelOptions {
            seed: Some(run.seed),
            ..ModelOptions::default()
        };
        Ok(host.with_options(options).with_files(run.directory.clone()))
    }

    async fn start_now(&self, run: &RunContext) -> Result<Box<dyn LiveSubject>, SubjectError> {
        let watch = Arc::new(ReplyWatch::default());
        let host = self.host(run, &watch)?;
        let here = |protocol: Protocol| {
            let mut clients = run.clients.iter();
            let wanted = clients.any(|mode| mode.protocol() == protocol);
            wanted.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        };
        let places = ServeAddresses {
            ag_ui: here(Protocol::AgUi),
            a2a: here(Protocol::A2a),
            mcp: here(Protocol::Mcp),
        };
        let stop = CancellationToken::new();
        let mut served = None;
        let mut found = ServeAddresses::default();
        if places != ServeAddresses::default() {
            let limits = AgentLimits {
                close: self.pace.end,
                ..AgentLimits::default()
            };
            let server =
                AgentServer::bind(host.clone(), &self.namespace, &self.agent, &places, limits);
            let server = server.await;
            let server = server.map_err(SubjectError::of)?;
            found = server.places();
            served = Some(tokio::spawn(server.serve(stop.clone())));
        }
        Ok(Box::new(LiveAgent {
            host,
            namespace: self.namespace.clone(),
            agent: self.agent.clone(),
            task: None,
            places: found,
            served,
            stop,
            watch,
        }))
    }
}

/// A name of a tool made from the name that an actor has.
fn plain_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars().take(40) {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let name = name.trim_end_matches('-');
    if name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.to_owned()
    } else {
        format!("mcp-{name}").trim_end_matches('-').to_owned()
    }
}

impl Subject for AgentSubject {
    fn info(&self) -> SubjectInfo {
        self.info.clone()
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn start<'a>(
        &'a self,
        run: &'a RunContext,
    ) -> BoxFuture<'a, Result<Box<dyn LiveSubject>, SubjectError>> {
        Box::pin(self.start_now(run))
    }
}

struct LiveAgent {
    host: Host,
    namespace: String,
    agent: String,
    /// The conversation with the user.
    task: Option<Task>,
    places: ServeAddresses,
    served: Option<JoinHandle<()>>,
    stop: CancellationToken,
    /// What was wrong with what its model replied.
    watch: Arc<ReplyWatch>,
}

impl LiveAgent {
    async fn say(&mut self, text: &str) -> Result<SubjectAnswer, SubjectError> {
        let task = match &self.task {
            Some(task) => task.clone(),
            None => {
                let started = self
                    .host
                    .start(&self.namespace, &self.agent, TaskOptions::default());
                let task = started.map_err(SubjectError::of)?;
                self.task.insert(task).clone()
            }
        };
        let output = task.send(TaskInput::message(text)).await;
        let failed = output.failed.or_else(|| {
            let ended = output.ended?;
            Some(format!("the agent's task has ended: {}", ended.message))
        });
        match failed {
            Some(message) => Err(SubjectError(message)),
            None => Ok(SubjectAnswer {
                said_at: None,
                text: Some(output.message),
            }),
        }
    }
}

impl LiveSubject for LiveAgent {
    fn endpoint(&self, mode: &Mode) -> Option<ActorEndpoint> {
        if !mode.is_client() {
            return None;
        }
        let (place, path) = match mode.protocol() {
            Protocol::AgUi => (self.places.ag_ui, ""),
            Protocol::A2a => (self.places.a2a, ""),
            Protocol::Mcp => (self.places.mcp, "mcp"),
            Protocol::Other(_) => return None,
        };
        place.map(|address| ActorEndpoint::Url(format!("http://{address}/{path}")))
    }

    fn prompt<'a>(
        &'a mut self,
        text: &'a str,
    ) -> BoxFuture<'a, Result<SubjectAnswer, SubjectError>> {
        Box::pin(self.say(text))
    }

    fn end(mut self: Box<Self>) -> BoxFuture<'static, Shutdown> {
        Box::pin(async move {
            let mut tokens = None;
            if let Some(task) = self.task.take() {
                for turn in task.history() {
                    if let Turn::Llm { usage, .. } = turn {
                        *tokens.get_or_insert(0) += usage.prompt + usage.completion;
                    }
                }
                task.cancel();
                task.end().await;
            }
            self.stop.cancel();
            if let Some(served) = self.served.take() {
                let _ = served.await;
            }
            Shutdown {
                failure: self.watch.failure(),
                tokens,
                ..Shutdown::default()
            }
        })
    }
}

impl Drop for LiveAgent {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(task) = &self.task {
            task.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_become_tools() {
        assert_eq!(plain_name("Data_Server"), "data-server");
        assert_eq!(plain_name("9 lives"), "mcp-9-lives");
        assert_eq!(plain_name("…"), "mcp");
    }
}
