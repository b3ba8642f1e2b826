//! The host of tasks: the manifests, the runtimes of tools and the models that all tasks share.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proofhouse_manifest::interpolate::Root;
use proofhouse_manifest::{Agent, Catalog, Referent};
use proofhouse_source::did_you_mean;
use proofhouse_tools::runtime::{Environment, Observer, Runtimes, ToolLimits};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value, json};

use super::guard;
use super::handle::Task;
use super::runner::{self, TaskStart};
use super::{Journal, Restored, TaskAllowList};
use crate::model::{BUILT_IN, ChatMessage, Model, ModelOptions};
use crate::remote::RemoteAgent;

/// How deep agents may ask agents.
pub(super) const MAX_DEPTH: usize = 5;

/// Calls of one turn that run side by side.
const MAX_PARALLEL: usize = 16;

/// Gives an agent's model by the name its manifest asks for.
pub type ModelSource = dyn Fn(&str) -> Result<Arc<dyn Model>, ModelUnavailable> + Send + Sync;

/// Why a [`ModelSource`] has no model of a name, in the words of whoever brings the source.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ModelUnavailable(Box<dyn Error + Send + Sync>);

impl ModelUnavailable {
    /// An error of the source.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }
}

/// Who talks to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Names the user.
    pub id: String,
    /// The user's address, if it is known.
    pub email: Option<String>,
}

impl Default for User {
    fn default() -> Self {
        Self {
            id: "local".to_owned(),
            email: None,
        }
    }
}

/// What is said about a task when it begins.
#[derive(Debug, Clone, Default)]
pub struct TaskOptions {
    /// Names the task; the host finds a name if this is empty.
    pub id: String,
    /// Who talks to the agent.
    pub user: User,
    /// Ends the task early.
    pub cancel: CancellationToken,
    /// What was said before the task began.
    pub history: Vec<ChatMessage>,
    /// Keeps what happens, so that the task can go on in another process. Results that whoever asks brings
    /// along ([`TaskInput::preceding`](super::TaskInput::preceding)) are not kept.
    pub journal: Option<Arc<dyn Journal>>,
    /// What the journal of an earlier part of the task kept.
    pub restored: Option<Restored>,
    /// The values that events may be about from the start.
    pub allowed: TaskAllowList,
}

/// Why a task cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No agent has that name.
    #[error("there is no agent `{agent}`{}", near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    NoAgent {
        /// The name that was asked for.
        agent: String,
        /// An agent with a name like it.
        near: Option<String>,
    },
    /// Agents that ask agents do not end.
    #[error("agents ask agents more than {MAX_DEPTH} deep")]
    TooDeep,
    /// The agent's manifest cannot be used as it is.
    #[error("{agent}: {message} ({code})")]
    Manifest {
        /// The agent.
        agent: String,
        /// What is wrong.
        message: String,
        /// The code of the rule.
        code: String,
    },
    /// The agent asks for something that no model here has built in.
    #[error(
        "{agent}: the model capability `{capability}` cannot be used here; use one of: {}",
        BUILT_IN.join(", ")
    )]
    ModelCapability {
        /// The agent.
        agent: String,
        /// What it asks for.
        capability: String,
    },
    /// There is no model for the agent.
    #[error(transparent)]
    Model(#[from] ModelUnavailable),
}

/// What all tasks share. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    pub(super) inner: Arc<HostShared>,
}

#[derive(Clone)]
pub(super) struct HostShared {
    pub(super) catalog: Catalog,
    pub(super) runtimes: Runtimes,
    pub(super) limits: ToolLimits,
    pub(super) environment: Environment,
    pub(super) runtime: Value,
    pub(super) model: Arc<dyn Model>,
    pub(super) models: Option<Arc<ModelSource>>,
    pub(super) options: ModelOptions,
    /// Parameters of the agents that are started here, whatever an input says.
    pub(super) parameters: Map<String, Value>,
    pub(super) files: Option<PathBuf>,
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// Calls of one turn that run side by side.
    pub(super) parallel: usize,
    /// Agents elsewhere, by the agent that may ask them.
    pub(super) remotes: Vec<(String, Arc<RemoteAgent>)>,
    count: Arc<AtomicU64>,
}

impl Host {
    /// A host. Every agent uses this model, unless [`Host::with_models`] says otherwise.
    #[must_use]
    pub fn new(
        catalog: Catalog,
        runtimes: Runtimes,
        limits: ToolLimits,
        environment: Environment,
        model: Arc<dyn Model>,
    ) -> Self {
        let runtime = environment.root(Root::Runtime).cloned();
        Self {
            inner: Arc::new(HostShared {
                catalog,
                runtimes,
                limits,
                environment,
                runtime: runtime.unwrap_or(json!({})),
                model,
                models: None,
                options: ModelOptions::default(),
                parameters: Map::new(),
                files: None,
                observer: None,
                parallel: MAX_PARALLEL,
                remotes: Vec::new(),
                count: Arc::default(),
            }),
        }
    }

    fn change(mut self, change: impl FnOnce(&mut HostShared)) -> Self {
        change(Arc::make_mut(&mut self.inner));
        self
    }

    /// The same; an agent whose manifest names a model gets it from here.
    #[must_use]
    pub fn with_models(self, models: Arc<ModelSource>) -> Self {
        self.change(|inner| inner.models = Some(models))
    }

    /// The same with these settings of every request to a model.
    #[must_use]
    pub fn with_options(self, options: ModelOptions) -> Self {
        self.change(|inner| inner.options = options)
    }

    /// The same with values of the agents' parameters that no input can change: whoever serves an agent
    /// says with them whom it is for. Agents that are asked by agents get theirs from bindings.
    #[must_use]
    pub fn with_parameters(self, parameters: Map<String, Value>) -> Self {
        self.change(|inner| inner.parameters = parameters)
    }

    /// The same with a directory for the mounts of agents.
    #[must_use]
    pub fn with_files(self, directory: PathBuf) -> Self {
        self.change(|inner| inner.files = Some(directory))
    }

    /// The same with someone who is told of every call of a tool.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        self.change(|inner| inner.observer = Some(observer))
    }

    /// The same with one call at a time, also where a model asks for several at once. What happens has
    /// one order then, which recordings need.
    #[must_use]
    pub fn one_call_at_a_time(self) -> Self {
        self.change(|inner| inner.parallel = 1)
    }

    /// The same; an agent, by its name, may also ask one that is elsewhere: the function `ask_NAME`.
    #[must_use]
    pub fn with_remote(self, agent: &str, remote: RemoteAgent) -> Self {
        self.change(|inner| {
            inner.remotes.push((agent.to_owned(), Arc::new(remote)));
        })
    }

    /// The agents that can be started.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.inner.catalog.agents()
    }

    /// What a capability of an agent is for, and whether another agent is behind it.
    pub(crate) fn describe(&self, namespace: &str, reference: &str) -> Option<(String, bool)> {
        Some(match self.inner.catalog.find(namespace, reference)? {
            Referent::Tool(tool) => (tool.description.clone(), false),
            Referent::Agent(agent) => (agent.description.clone(), true),
        })
    }

    /// An agent, by its name as an agent of the namespace would say it.
    #[must_use]
    pub fn find(&self, namespace: &str, agent: &str) -> Option<Arc<Agent>> {
        match self.inner.catalog.find(namespace, agent) {
            Some(Referent::Agent(found)) => Some(found),
            _ => None,
        }
    }

    /// What the bindings of an agent seal for a task that begins with this input.
    #[must_use]
    pub fn sealed(
        &self,
        agent: &Agent,
        task: &TaskOptions,
        first: &Map<String, Value>,
    ) -> TaskAllowList {
        guard::sealed_at_start(self, agent, task, first)
    }

    /// The tools and agents that are there.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.inner.catalog
    }

    /// Begins a task of an agent.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no such agent, when what it names is not there, or when its model
    /// cannot be had.
    pub fn start(
        &self,
        namespace: &str,
        agent: &str,
        options: TaskOptions,
    ) -> Result<Task, StartError> {
        let Some(found) = self.find(namespace, agent) else {
            let known = self.inner.catalog.agents().map(|agent| agent.name.as_str());
            return Err(StartError::NoAgent {
                agent: agent.to_owned(),
                near: did_you_mean(agent, known).map(str::to_owned),
            });
        };
        self.start_agent(found, options, 0)
    }

    pub(super) fn start_agent(
        &self,
        agent: Arc<Agent>,
        mut options: TaskOptions,
        depth: usize,
    ) -> Result<Task, StartError> {
        if depth > MAX_DEPTH {
            return Err(StartError::TooDeep);
        }
        let model = self.model_of(&agent)?;
        if options.id.is_empty() {
            let number = self.inner.count.fetch_add(1, Ordering::Relaxed) + 1;
            options.id = format!("{}-{number}", agent.name);
        }
        Ok(runner::start(TaskStart {
            host: self.clone(),
            agent,
            model,
            options,
            depth,
        }))
    }

    /// Whether a task of an agent could be begun.
    ///
    /// # Errors
    ///
    /// Returns an error when what it names is not there, or when its model cannot be had.
    pub fn can_start(&self, agent: &Agent) -> Result<(), StartError> {
        self.model_of(agent).map(drop)
    }

    /// The model of an agent that has everything it names.
    fn model_of(&self, agent: &Agent) -> Result<Arc<dyn Model>, StartError> {
        let findings = self.inner.catalog.check(agent);
        if let Some(finding) = findings.first() {
            return Err(StartError::Manifest {
                agent: agent.name.clone(),
                message: finding.message.clone(),
                code: finding.code.to_string(),
            });
        }
        let unknown = |name: &&String| !BUILT_IN.contains(&name.as_str());
        if let Some(name) = agent.model_capabilities.iter().find(unknown) {
            return Err(StartError::ModelCapability {
                agent: agent.name.clone(),
                capability: name.clone(),
            });
        }
        match (&agent.model, &self.inner.models) {
            (Some(name), Some(models)) => Ok(models(name)?),
            _ => Ok(Arc::clone(&self.inner.model)),
        }
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let agents: Vec<&str> = self.agents().map(|agent| agent.name.as_str()).collect();
        f.debug_struct("Host")
            .field("agents", &agents)
            .finish_non_exhaustive()
    }
}
