//! What the commands on agents take, and the host of tasks they make of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use proofhouse_agent::model::Redactor;
use proofhouse_agent::task::{Host, Input, Task, TaskOptions, User};
use proofhouse_manifest::{Action, Agent, Bundle, Catalog, MountScope, Tool};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value};

use super::bundles;
use super::models::{Clock, ModelArgs, Models};
use super::servers;
use crate::files::same_file;
use crate::output::{CommandError, shown_path, talk};
use crate::tools::arguments::{pair, typed};
use crate::tools::manifests;
use crate::tools::options::OperatorOptions;
use crate::tools::trace::CallTrace;

/// Which agent, its model, and what it may use.
#[derive(Debug, Args)]
pub(crate) struct AgentOptions {
    /// Manifests of the agent and of what it uses: files, or directories searched for .yaml and .yml; with
    /// --mcp, an assistant that needs none
    #[arg(value_name = "AGENT", required_unless_present = "mcp")]
    manifests: Vec<PathBuf>,

    /// Which agent, where there are several; without it the one that no other uses
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// A parameter of the agent, read as its schema says; may be given again
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    params: Vec<(String, String)>,

    #[command(flatten)]
    model: ModelArgs,

    /// An MCP server that the agent may use, too: a URL, or a command in
    /// quotes, with NAME= before it to name it; may be given again
    #[arg(long, value_name = "URL|COMMAND")]
    pub(crate) mcp: Vec<String>,

    /// A directory for the files of agents that have a mount
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,

    /// Who talks to the agent, as its rules see it
    #[arg(long, value_name = "ID", default_value = "local")]
    user: String,

    #[command(flatten)]
    operator: OperatorOptions,

    /// Write every call of a tool to this file, as a trace
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// An agent that is ready for tasks.
pub(crate) struct Prepared {
    pub(crate) host: Host,
    pub(crate) agent: Agent,
    models: Models,
    trace: Option<CallTrace>,
    user: User,
    params: Map<String, Value>,
}

impl AgentOptions {
    /// Whether stdin is already read by something else.
    pub(crate) fn read_stdin(&self) -> bool {
        self.manifests.iter().any(|path| path == Path::new("-")) || self.operator.read_stdin()
    }

    /// Reads everything that is named and sets up what runs tasks.
    pub(crate) fn prepare(&self) -> Result<Prepared, CommandError> {
        self.check_files()?;
        let mut bundles = bundles::read(&self.manifests)?;
        let agent = bundles::chosen(&mut bundles, self.agent.as_deref())?;
        let servers = servers::grant(agent, &self.mcp)?;
        let agent = agent.clone();
        let catalog = catalog(&bundles, servers);
        let operator = self.operator.operator()?;
        let secrets = operator.secrets(catalog.tools());
        let redactor: Redactor = Arc::new(move |text| secrets.redact(text));
        let models = self.model.models(agent.model.as_deref(), redactor)?;
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
        } else if agent.mount != MountScope::None {
            talk("warning: the agent has a mount, but no files; give it a directory with --files");
        }
        let trace = match &self.trace {
            Some(path) => Some(trace_to(path, tools, &models.clock)?),
            None => None,
        };
        if let Some(trace) = &trace {
            host = host.with_observer(Arc::new(trace.clone()));
        }
        let declared = agent.parameters.properties();
        let params = self.params.iter();
        let params = params
            .map(|(name, text)| (name.clone(), typed(text, declared.get(name))))
            .collect::<Map<String, Value>>();
        let host = host.with_parameters(params.clone());
        Ok(Prepared {
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

    /// What is read is not written over, and nothing is written twice.
    fn check_files(&self) -> Result<(), CommandError> {
        let (replay, record) = self.model.files();
        let mut known: Vec<&Path> = self.manifests.iter().map(PathBuf::as_path).collect();
        known.extend(self.operator.file());
        known.extend(replay);
        known.extend(record);
        match &self.trace {
            Some(trace) if known.iter().any(|path| same_file(path, trace)) => {
                let shown = shown_path(trace);
                Err(CommandError::usage(format!(
                    "--trace {shown}: this file is used for something else, too"
                )))
            }
            _ => Ok(()),
        }
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

fn directory(path: &Path) -> Result<PathBuf, CommandError> {
    let found = path.canonicalize();
    let wrong =
        |reason: String| CommandError::usage(format!("--files {}: {reason}", shown_path(path)));
    let found = found.map_err(|error| wrong(error.to_string()))?;
    match found.is_dir() {
        true => Ok(found),
        false => Err(wrong("this is not a directory".to_owned())),
    }
}

/// A trace in which actions have the names of their functions.
fn trace_to(path: &Path, tools: Vec<Arc<Tool>>, clock: &Clock) -> Result<CallTrace, CommandError> {
    let clock = Arc::clone(clock);
    CallTrace::begin(
        path,
        "proofhouse agent",
        clock,
        move |namespace, name, action| {
            let mut tools = tools.iter();
            let tool = tools.find(|tool| tool.namespace == namespace && tool.name == name)?;
            let declared: Vec<Vec<Arc<Action>>> = vec![tool.actions.clone()];
            let functions = manifests::functions(std::slice::from_ref(tool), &declared);
            Some(match functions.of(0, action) {
                Some(function) => function.name.clone(),
                // One that a server or a description has, of which there are usually several.
                None => format!("{}_{action}", name.replace('-', "_")),
            })
        },
    )
}

impl Prepared {
    /// Begins a task.
    pub(crate) fn start(&self, cancel: &CancellationToken) -> Result<Task, CommandError> {
        let options = TaskOptions {
            id: String::new(),
            user: self.user.clone(),
            cancel: cancel.clone(),
            ..TaskOptions::default()
        };
        let (namespace, name) = (&self.agent.namespace, &self.agent.name);
        // The name alone would do where no other namespace has it.
        let reference = format!("{namespace}/{name}");
        let started = self.host.start(namespace, &reference, options);
        started.map_err(|error| CommandError::cannot_run(error.to_string()))
    }

    /// The model, as it names itself, and whether it is a simulation.
    pub(crate) fn model(&self) -> (String, bool) {
        let model = &self.models.main;
        (model.name().to_owned(), model.is_simulation())
    }

    /// A message with the parameters of the command line.
    pub(crate) fn input(&self, message: Option<String>) -> Input {
        Input {
            message,
            parameters: self.params.clone(),
            ..Input::default()
        }
    }

    /// Says what is wrong with an input before a task begins.
    pub(crate) fn check(&self, message: Option<&str>) -> Result<(), CommandError> {
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
            return Err(CommandError::usage(format!(
                "--param {name}: `{}` has no such parameter",
                self.agent.name
            )));
        }
        match self.agent.parameters.complete(given) {
            Err(problems) => Err(CommandError::usage(format!(
                "the input does not fit: {}",
                problems.join("; ")
            ))),
            Ok(whole) if message.is_none() && whole.get("message").is_none_or(Value::is_null) => {
                Err(CommandError::usage("the agent needs a --message"))
            }
            Ok(_) => Ok(()),
        }
    }

    /// Says whether everything was written.
    pub(crate) fn finish(&self) -> Result<(), CommandError> {
        self.models.finish()?;
        match &self.trace {
            Some(trace) => trace.finish(),
            None => Ok(()),
        }
    }
}
