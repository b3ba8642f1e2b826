//! Sets up an agent that runs by itself: its manifests, its model, the servers it may use, and what runs its tasks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofhouse_agent::model::RedactText;
use proofhouse_agent::remote::{GrantError, grant_servers};
use proofhouse_agent::task::{Host, StartError, Task, TaskInput, TaskOptions, User};
use proofhouse_manifest::{Agent, Bundle, Catalog, Tool, ToolAction};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value};

use crate::agent_models::{ModelChoice, Models, ModelsError, TaskClock};
use crate::bundles::{self, BundleError};
use crate::call_trace::{CallTrace, TraceError};
use crate::operator::Operator;
use crate::tool_manifests::functions;
use crate::{EnvironmentLookup, Notice};

/// Which agent, its model, and what it may use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentSetup {
    /// Manifests of the agent and of what it uses: files, or directories; none is the assistant.
    pub manifests: Vec<PathBuf>,
    /// Which agent, where there are several.
    pub agent: Option<String>,
    /// Parameters of the agent, as texts.
    pub parameters: Vec<(String, String)>,
    /// Its model.
    pub model: ModelChoice,
    /// MCP servers that it may use, too.
    pub servers: Vec<String>,
    /// The directory of its files.
    pub files: Option<PathBuf>,
    /// Who talks to it.
    pub user: String,
    /// The file that gets every call of a tool.
    pub trace: Option<PathBuf>,
}

/// Why an agent cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Its manifests cannot be used.
    #[error(transparent)]
    Bundles(#[from] BundleError),
    /// A server cannot be given to it.
    #[error("--mcp {0}")]
    Grant(#[from] GrantError),
    /// A setting would go to several tools.
    #[error("--setting: {0}")]
    Settings(String),
    /// Its models cannot be had.
    #[error(transparent)]
    Models(#[from] ModelsError),
    /// The directory of its files is none.
    #[error("--files {}: {reason}", path.display())]
    Files {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl SetupError {
    /// Whether something else has to be asked for, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Bundles(error) => error.is_usage(),
            Self::Models(error) => error.is_usage(),
            Self::Grant(_) | Self::Settings(_) | Self::Files { .. } => true,
            Self::Trace(_) => false,
        }
    }
}

/// What is wrong with an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// The agent has no such parameter.
    #[error("--param {name}: `{agent}` has no such parameter")]
    NoParameter {
        /// The parameter.
        name: String,
        /// The agent.
        agent: String,
    },
    /// It is not what the agent takes.
    #[error("the input does not fit: {}. Set the parameters of the agent with --param NAME=VALUE", .0.join("; "))]
    DoesNotFit(Vec<String>),
    /// There is no message.
    #[error("the agent needs a --message")]
    NoMessage,
}

/// An agent that is ready for tasks.
pub struct PreparedAgent {
    /// What runs its tasks.
    pub host: Host,
    /// The agent.
    pub agent: Agent,
    models: Models,
    trace: Option<CallTrace>,
    user: User,
    params: Map<String, Value>,
}

impl AgentSetup {
    /// Reads everything that is named and sets up what runs tasks.
    /// The operator is asked for after the manifests were read.
    ///
    /// # Errors
    ///
    /// Returns an error when something that is named cannot be used.
    pub fn prepare<E: From<SetupError>>(
        &self,
        operator: impl FnOnce() -> Result<Operator, E>,
        environment: &EnvironmentLookup,
        notify: &dyn Fn(Notice),
    ) -> Result<PreparedAgent, E> {
        let mut bundles = bundles::read(&self.manifests, notify).map_err(SetupError::from)?;
        let agent = bundles::chosen(&mut bundles, self.agent.as_deref());
        let agent = agent.map_err(SetupError::from)?;
        let servers = grant_servers(agent, &self.servers).map_err(SetupError::from)?;
        let agent = agent.clone();
        let catalog = catalog(&bundles, servers);
        let operator = operator()?;
        let checked = operator.check_settings(catalog.tools());
        checked.map_err(|error| SetupError::Settings(error.message))?;
        let secrets = operator.secrets(catalog.tools());
        let redactor: RedactText = Arc::new(move |text| secrets.redact(text));
        let models = self
            .model
            .open(agent.model.as_deref(), redactor, environment)
            .map_err(SetupError::from)?;
        let tools: Vec<Arc<Tool>> = catalog.tools().cloned().collect();
        let mut host = operator
            .host(catalog, &models.clock, Arc::clone(&models.main))
            .with_options(models.options.clone());
        if let Some(others) = &models.others {
            host = host.with_models(Arc::clone(others));
        }
        if models.in_order {
            host = host.one_call_at_a_time();
        }
        if let Some(files) = &self.files {
            host = host.with_files(directory(files)?);
        } else if !agent.mount.is_empty() {
            notify(Notice::MountWithoutFiles);
        }
        let trace = match &self.trace {
            Some(path) => Some(trace_to(path, tools, &models.clock).map_err(SetupError::from)?),
            None => None,
        };
        if let Some(trace) = &trace {
            host = host.with_observer(Arc::new(trace.clone()));
        }
        let declared = agent.parameters.properties();
        let params = self.parameters.iter();
        let params = params
            .map(|(name, text)| (name.clone(), typed(text, declared.get(name))))
            .collect::<Map<String, Value>>();
        let host = host.with_parameters(params.clone());
        Ok(PreparedAgent {
            host,
            agent,
            models,
            trace,
            user: User {
                id: self.user.clone(),
                email: None,
            },
            params,
        })
    }
}

fn catalog(bundles: &[Bundle], servers: Vec<Tool>) -> Catalog {
    let mut catalog = Catalog::default();
    for bundle in bundles {
        catalog.add(bundle);
    }
    for server in servers {
        catalog.add_tool(server);
    }
    catalog
}

/// The value of a text. What the schema wants otherwise stays a text, and the check of all arguments
/// says what is wrong with it.
#[must_use]
pub fn typed(text: &str, property: Option<&Value>) -> Value {
    let is_other = |name: &Value| {
        matches!(
            name.as_str(),
            Some("integer" | "number" | "boolean" | "array" | "object" | "null")
        )
    };
    let wants_json = match property.and_then(|property| property.get("type")) {
        Some(Value::Array(types)) => !types.is_empty() && types.iter().all(is_other),
        Some(name) => is_other(name),
        None => false,
    };
    match serde_json::from_str(text) {
        Ok(value) if wants_json => value,
        _ => Value::String(text.to_owned()),
    }
}

fn directory(path: &Path) -> Result<PathBuf, SetupError> {
    let wrong = |reason: String| SetupError::Files {
        path: path.to_owned(),
        reason,
    };
    let found = path.canonicalize();
    let found = found.map_err(|error| wrong(error.to_string()))?;
    if found.is_dir() {
        Ok(found)
    } else {
        Err(wrong("this is not a directory".to_owned()))
    }
}

/// A trace in which actions have the names of their functions.
fn trace_to(
    path: &Path,
    tools: Vec<Arc<Tool>>,
    clock: &TaskClock,
) -> Result<CallTrace, TraceError> {
    let clock = Arc::clone(clock);
    CallTrace::begin(
        path,
        "proofhouse agent",
        clock,
        move |namespace, name, action| {
            let mut tools = tools.iter();
            let tool = tools.find(|tool| tool.namespace == namespace && tool.name == name)?;
            let declared: Vec<Vec<Arc<ToolAction>>> = vec![tool.actions.clone()];
            let functions = functions(std::slice::from_ref(tool), &declared);
            Some(match functions.of(0, action) {
                Some(function) => function.name.clone(),
                // One that a server or a description has, of which there are usually several.
                None => format!("{}_{action}", name.replace('-', "_")),
            })
        },
    )
}

impl PreparedAgent {
    /// Begins a task.
    ///
    /// # Errors
    ///
    /// Returns an error when the agent is not there, or cannot be used.
    pub fn start(&self, cancel: &CancellationToken) -> Result<Task, StartError> {
        let options = TaskOptions {
            id: String::new(),
            user: self.user.clone(),
            cancel: cancel.clone(),
            ..TaskOptions::default()
        };
        let (namespace, name) = (&self.agent.namespace, &self.agent.name);
        // The name alone would do where no other namespace has it.
        let reference = format!("{namespace}/{name}");
        self.host.start(namespace, &reference, options)
    }

    /// The model, as it names itself, and whether it is a simulation.
    #[must_use]
    pub fn model(&self) -> (String, bool) {
        let model = &self.models.main;
        (model.name().to_owned(), model.is_simulation())
    }

    /// A message with the parameters of the command line.
    #[must_use]
    pub fn input(&self, message: Option<String>) -> TaskInput {
        TaskInput {
            message,
            parameters: self.params.clone(),
            ..TaskInput::default()
        }
    }

    /// Says what is wrong with an input before a task begins.
    ///
    /// # Errors
    ///
    /// Returns an error when it does not fit what the agent takes.
    pub fn check(&self, message: Option<&str>) -> Result<(), InputError> {
        let mut given = self.params.clone();
        let declared = self.agent.parameters.properties();
        let takes_message = declared.contains_key("message");
        if let (Some(message), true) = (message, takes_message) {
            given.insert("message".to_owned(), message.into());
        }
        let known = self
            .params
            .keys()
            .find(|name| !declared.contains_key(*name));
        if let Some(name) = known {
            return Err(InputError::NoParameter {
                name: name.clone(),
                agent: self.agent.name.clone(),
            });
        }
        match self.agent.parameters.complete(given) {
            Err(problems) => Err(InputError::DoesNotFit(problems)),
            Ok(whole) if message.is_none() && whole.get("message").is_none_or(Value::is_null) => {
                Err(InputError::NoMessage)
            }
            Ok(_) => Ok(()),
        }
    }

    /// Says whether everything was written.
    ///
    /// # Errors
    ///
    /// Returns an error when a recording or the trace is not whole.
    pub fn finish(&self) -> Result<(), SetupError> {
        self.models.finish()?;
        match &self.trace {
            Some(trace) => Ok(trace.finish()?),
            None => Ok(()),
        }
    }
}
