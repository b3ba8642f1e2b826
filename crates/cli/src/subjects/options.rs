//! The flags that say who is attacked.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgGroup, Args};
use ipnet::IpNet;
use proofhouse_campaign::subject::Subject;
use proofhouse_tools::interpolate::Sealed;

use super::command::from_everywhere;
use super::open::{MODEL_PREFIX, SIMULATIONS, open};
use super::spec::{
    CommandSpec, Directory, EndpointSpec, ManifestSpec, McpConfigSpec, ModelSpec, Ready, Serves,
    SubjectKind, SubjectSpec, Urls,
};
use crate::duration::duration;
use crate::headers::Header;
use crate::input::parse_size;
use crate::output::CommandError;
use crate::tools::arguments::pair;
use crate::tools::options::network;

/// Who is attacked.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Subjects")]
// Headers need somebody who gets them.
#[command(group(ArgGroup::new("reached").multiple(true).args(["serves", "ag_ui_url", "a2a_url", "mcp_url"])))]
pub(crate) struct SubjectOptions {
    /// Who is attacked: sim:gullible, sim:careful, the file of an agent manifest, or model: and a model, such
    /// as model:openai:MODEL, for the model alone; may be given again, to compare [default: both simulations]
    #[arg(long = "subject", value_name = "SUBJECT")]
    subjects: Vec<String>,

    /// Which agent of a manifest, where there are several
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// The model of agents in manifests, such as openai:MODEL
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,

    /// Where the provider of models is, if not at its usual address
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// What a model alone is told first [default: You are a helpful assistant.]
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,

    /// A network that tools of manifests may reach beside this machine; may be given again
    #[arg(long, value_name = "CIDR", value_parser = network)]
    allow: Vec<IpNet>,

    /// Start this command for every run. It finds {mcp_url}, {a2a_url}, {prompt}, {port}, {mcp_config} and
    /// {directory} in its arguments and, as PROOFHOUSE_MCP_URL and so on, in its environment; the prompt is
    /// on its stdin, too. What it prints until it ends is its answer. May be given again, to compare
    #[arg(long = "command", value_name = "COMMAND")]
    commands: Vec<String>,

    /// The command serves this at {port} instead of doing one task
    #[arg(long, value_enum, requires = "commands")]
    serves: Option<Serves>,

    /// The command is ready when it prints a line with this text; otherwise when its port is open
    #[arg(long, value_name = "TEXT", requires = "serves")]
    ready_line: Option<String>,

    /// The command is ready when this path at its port, or this URL, answers with success
    #[arg(
        long,
        value_name = "PATH|URL",
        requires = "serves",
        conflicts_with = "ready_line"
    )]
    ready_url: Option<String>,

    /// A variable for the command; may be given again
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = pair, requires = "commands")]
    environment: Vec<(String, String)>,

    /// Run the command in a copy of this directory, made for every run
    #[arg(
        long,
        value_name = "DIR",
        requires = "commands",
        conflicts_with = "directory"
    )]
    copy: Option<PathBuf>,

    /// Run the command in this directory itself instead of one of the run's own
    #[arg(long, value_name = "DIR", requires = "commands")]
    directory: Option<PathBuf>,

    /// The MCP configuration of the command, such as .mcp.json: {mcp_config} is a copy that names the
    /// servers of the attack instead
    #[arg(long, value_name = "FILE", requires = "commands")]
    mcp_config: Option<PathBuf>,

    /// Rewrite that file itself, one run at a time, and put it back, for a command that reads no other
    #[arg(long, requires = "mcp_config")]
    mcp_config_in_place: bool,

    /// The most a run may write into its directory, in bytes, or with K, M or G [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "commands")]
    max_disk: Option<usize>,

    /// The agent runs already and speaks AG-UI here
    #[arg(long, value_name = "URL")]
    ag_ui_url: Option<String>,

    /// The agent runs already and speaks A2A here
    #[arg(long, value_name = "URL")]
    a2a_url: Option<String>,

    /// The agent runs already and serves MCP here
    #[arg(long, value_name = "URL")]
    mcp_url: Option<String>,

    /// Where that agent looks for its MCP server, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDR")]
    mcp_listen: Option<SocketAddr>,

    /// Where that agent looks for its A2A agent
    #[arg(long, value_name = "ADDR")]
    a2a_listen: Option<SocketAddr>,

    /// A header for requests to an agent that runs already, or to a command that serves; its value stays out
    /// of everything that is written. `Name: env:VARIABLE` takes it from the environment; may be given again
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "reached")]
    headers: Vec<String>,

    /// The same, with a value from the environment
    #[arg(long = "header-env", value_name = "NAME=VARIABLE", value_parser = pair, requires = "reached")]
    header_variables: Vec<(String, String)>,

    /// The longest a run against a subject of your own may take
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "3m")]
    deadline: Duration,
}

impl SubjectOptions {
    /// Whether nobody was named, so that the simulations show what the library does.
    pub(crate) fn is_demonstration(&self) -> bool {
        self.subjects.is_empty() && self.commands.is_empty() && self.urls().is_empty()
    }

    /// The subjects, ready to be attacked.
    pub(crate) fn open(&self) -> Result<Vec<Arc<dyn Subject>>, CommandError> {
        self.specs()?.iter().map(open).collect()
    }

    /// Who the subjects are.
    pub(crate) fn specs(&self) -> Result<Vec<SubjectSpec>, CommandError> {
        let mut kinds = Vec::new();
        if self.is_demonstration() {
            let names = SIMULATIONS.map(|(name, _)| name.to_owned());
            kinds.extend(names.map(|name| (None, SubjectKind::Simulation(name))));
        }
        kinds.extend(self.subjects.iter().map(|name| (None, self.named(name))));
        for (place, text) in self.commands.iter().enumerate() {
            let name = (place > 0).then(|| format!("command-{}", place + 1));
            kinds.push((name, SubjectKind::Command(self.command(text)?)));
        }
        if !self.urls().is_empty() {
            kinds.push((None, SubjectKind::Endpoint(self.endpoint()?)));
        }
        let spec = |(name, kind)| SubjectSpec {
            name,
            deadline: Some(self.deadline),
            kind,
        };
        Ok(kinds.into_iter().map(spec).collect())
    }

    /// What `--subject` says.
    fn named(&self, name: &str) -> SubjectKind {
        if let Some(model) = name.strip_prefix(MODEL_PREFIX) {
            return SubjectKind::Model(ModelSpec {
                model: model.to_owned(),
                base_url: self.base_url.clone(),
                instructions: self.system_prompt.clone(),
                directory: None,
            });
        }
        match [".yaml", ".yml"].iter().any(|end| name.ends_with(end)) {
            true => SubjectKind::Manifest(ManifestSpec {
                path: PathBuf::from(name),
                agent: self.agent.clone(),
                model: self.model.clone(),
                base_url: self.base_url.clone(),
                allow: self.allow.clone(),
            }),
            false => SubjectKind::Simulation(name.to_owned()),
        }
    }

    fn command(&self, text: &str) -> Result<CommandSpec, CommandError> {
        let words = shlex::split(text).unwrap_or_default();
        if words.first().is_none_or(String::is_empty) {
            return Err(CommandError::usage(
                "--command: write a command; quotes and backslashes must be closed",
            ));
        }
        let directory = match (&self.copy, &self.directory) {
            (Some(original), _) => Directory::CopyOf(original.clone()),
            (None, Some(fixed)) => Directory::Fixed(fixed.clone()),
            (None, None) => Directory::OfRun,
        };
        let ready = match (&self.ready_line, &self.ready_url) {
            (Some(line), _) => Ready::Line(line.clone()),
            (None, Some(url)) => Ready::Url(url.clone()),
            (None, None) => Ready::Port,
        };
        let variables = self.environment.iter();
        Ok(CommandSpec {
            // In a copy, names of files mean the copies.
            words: match directory {
                Directory::OfRun => words.iter().map(|word| from_everywhere(word)).collect(),
                _ => words,
            },
            directory,
            environment: variables
                .map(|(name, value)| (name.clone(), Sealed::new(value.clone())))
                .collect(),
            serves: self.serves,
            ready,
            headers: self.headers()?,
            mcp_config: self.mcp_config.as_ref().map(|file| McpConfigSpec {
                file: file.clone(),
                in_place: self.mcp_config_in_place,
            }),
            max_disk: self.max_disk.map(|bytes| bytes as u64),
        })
    }

    fn endpoint(&self) -> Result<EndpointSpec, CommandError> {
        Ok(EndpointSpec {
            urls: self.urls(),
            mcp_listen: self.mcp_listen,
            a2a_listen: self.a2a_listen,
            headers: self.headers()?,
        })
    }

    fn urls(&self) -> Urls {
        Urls {
            ag_ui: self.ag_ui_url.clone(),
            a2a: self.a2a_url.clone(),
            mcp: self.mcp_url.clone(),
        }
    }

    fn headers(&self) -> Result<Vec<Header>, CommandError> {
        let given = self.headers.iter().map(|text| Header::read(text));
        let given: Result<Vec<Header>, String> = given.collect();
        let mut headers =
            given.map_err(|error| CommandError::usage(format!("--header: {error}")))?;
        for (name, variable) in &self.header_variables {
            let header = Header::of_variable(name, variable);
            let header =
                header.map_err(|error| CommandError::usage(format!("--header-env: {error}")))?;
            headers.push(header);
        }
        Ok(headers)
    }
}
