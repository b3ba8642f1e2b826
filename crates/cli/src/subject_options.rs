//! The flags that say who is attacked.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgGroup, Args};
use ipnet::IpNet;
use proofhouse_campaign::config::{FILE, looks_secret, positive_duration, sounds_secret};
use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_source::did_you_mean;
use proofhouse_subjects::discover::start_command;
use proofhouse_subjects::headers::{HeaderError, RequestHeader};
use proofhouse_subjects::spec::{
    self, CommandSpec, Directory, EndpointSpec, ManifestSpec, McpConfigSpec, ModelSpec, Ready,
    SubjectKind, SubjectSpec, Urls, from_everywhere, network,
};
use proofhouse_subjects::{
    MODEL_PREFIX, OpenContext, SIMULATIONS, Sealed, Subject, open, placeholders,
};

use crate::environment::environment;
use crate::input::parse_size;
use crate::notices;
use crate::output::{CommandError, printable_line};
use crate::tools::arguments::pair;
use proofhouse_wire::listen_address;

/// What a command serves once it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ServesFlag {
    /// AG-UI at http://127.0.0.1:PORT/
    #[value(alias = "ag_ui")]
    AgUi,
    /// A2A at http://127.0.0.1:PORT/
    A2a,
    /// MCP at http://127.0.0.1:PORT/mcp
    Mcp,
}

impl From<ServesFlag> for spec::Serves {
    fn from(serves: ServesFlag) -> Self {
        match serves {
            ServesFlag::AgUi => Self::AgUi,
            ServesFlag::A2a => Self::A2a,
            ServesFlag::Mcp => Self::Mcp,
        }
    }
}

/// Who is attacked.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Subjects")]
// Headers need somebody who gets them.
#[command(group(ArgGroup::new("reached").multiple(true).args(["serves", "ag_ui_url", "a2a_url", "mcp_url"])))]
pub(crate) struct SubjectOptions {
    /// The agent to attack: a name from proofhouse.yaml, a simulation (sim:gullible, sim:careful), the path of an agent
    /// manifest, or a model without an agent, such as model:openai:MODEL. Can be repeated [default: all subjects in
    /// proofhouse.yaml, or both simulations if there is no such file]
    #[arg(long = "subject", value_name = "SUBJECT")]
    subjects: Vec<String>,

    /// Which agent to attack, if the manifest has several
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// The model to use for agents from manifests, such as openai:MODEL
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,

    /// The base URL of the model provider, if it is not the usual one
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// The system prompt for a bare model [default: You are a helpful assistant.]
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,

    /// A network that tools from manifests may connect to, in addition to this machine; can be repeated
    #[arg(long, value_name = "CIDR", value_parser = network)]
    allow: Vec<IpNet>,

    /// Start the agent with this command for every run. The placeholders {mcp_url}, {a2a_url}, {prompt}, {port},
    /// {mcp_config} and {directory} are replaced in its arguments; the same values are in environment variables
    /// such as PROOFHOUSE_MCP_URL, and the prompt is also sent to stdin. What the command prints to stdout is the
    /// agent's answer. Can be repeated
    #[arg(long = "command", value_name = "COMMAND")]
    commands: Vec<String>,

    /// The command starts a server that speaks this protocol on {port}. Without this flag, it does one task and exits
    #[arg(long, value_enum, requires = "commands")]
    serves: Option<ServesFlag>,

    /// The server is ready when it prints a line with this text [default: when its port accepts connections]
    #[arg(long, value_name = "TEXT", requires = "serves")]
    ready_line: Option<String>,

    /// The server is ready when this path at its port, or this URL, returns a success status
    #[arg(
        long,
        value_name = "PATH|URL",
        requires = "serves",
        conflicts_with = "ready_line"
    )]
    ready_url: Option<String>,

    /// An environment variable for the command; can be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = pair, requires = "commands")]
    environment: Vec<(String, String)>,

    /// Run the command in a copy of this directory; every run gets a fresh copy
    #[arg(
        long,
        value_name = "DIR",
        requires = "commands",
        conflicts_with = "directory"
    )]
    copy: Option<PathBuf>,

    /// Run the command in this directory [default: a new, empty directory for every run; files that the command names,
    /// such as agent.py, are still found in the current directory]
    #[arg(long, value_name = "DIR", requires = "commands")]
    directory: Option<PathBuf>,

    /// The agent's MCP configuration file, such as .mcp.json. {mcp_config} becomes the path of a copy in which the
    /// attack's servers replace the original ones
    #[arg(long, value_name = "FILE", requires = "commands")]
    mcp_config: Option<PathBuf>,

    /// Change that file itself and restore it after each run, for agents that read no other path. Runs are made one
    /// at a time
    #[arg(long, requires = "mcp_config")]
    mcp_config_in_place: bool,

    /// How much a run may write to its directory, in bytes or with K, M or G [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "commands")]
    max_disk: Option<usize>,

    /// URL of a running agent that speaks AG-UI
    #[arg(long, value_name = "URL")]
    ag_ui_url: Option<String>,

    /// URL of a running agent that speaks A2A
    #[arg(long, value_name = "URL")]
    a2a_url: Option<String>,

    /// URL of a running agent that serves MCP
    #[arg(long, value_name = "URL")]
    mcp_url: Option<String>,

    /// The address where the running agent expects its MCP server, such as 127.0.0.1:8080. The attack listens there
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    mcp_listen: Option<SocketAddr>,

    /// The address where the running agent expects another A2A agent. The attack listens there
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    a2a_listen: Option<SocketAddr>,

    /// An HTTP header to send to a running agent, or to a command that is a server. Its value never appears in
    /// output or files. `Name: env:VARIABLE` reads the value from the environment; can be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "reached")]
    headers: Vec<String>,

    /// The same as --header, with the value from an environment variable
    #[arg(long = "header-env", value_name = "NAME=VARIABLE", value_parser = pair, requires = "reached")]
    header_variables: Vec<(String, String)>,

    /// The time limit for one run against your own agent [default: 3m]
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    deadline: Option<Duration>,
}

impl SubjectOptions {
    /// Whether nobody was named, so that the simulations show what the library does.
    pub(crate) fn is_demonstration(&self) -> bool {
        self.subjects.is_empty() && self.commands.is_empty() && self.urls().is_empty()
    }

    /// Whether a configuration is needed: nobody is named, or somebody who can only be in one.
    pub(crate) fn need_config(&self) -> bool {
        let named = self.subjects.iter().any(|name| is_plain(name));
        self.is_demonstration() || named
    }

    /// Whether somebody of this name in a configuration takes part.
    pub(crate) fn want(&self, name: &str) -> bool {
        self.is_demonstration() || self.subjects.iter().any(|wanted| wanted == name)
    }

    /// The subjects, ready to be attacked; those of a configuration among them.
    pub(crate) fn open(
        &self,
        configured: &[SubjectSpec],
    ) -> Result<Vec<Arc<dyn Subject>>, CommandError> {
        let opening = OpenContext {
            environment: environment(),
            notify: &notices::show,
            gate: None,
        };
        let specs = self.specs(configured)?;
        let opened = specs.iter().map(|spec| Ok(open(spec, &opening)?));
        opened.collect()
    }

    /// Who the subjects are. A model that none of them would use is refused.
    pub(crate) fn specs(
        &self,
        configured: &[SubjectSpec],
    ) -> Result<Vec<SubjectSpec>, CommandError> {
        let specs = self.described(configured)?;
        let takes_model = |spec: &SubjectSpec| matches!(spec.kind, SubjectKind::Manifest(_));
        if let Some(model) = &self.model
            && !specs.iter().any(takes_model)
        {
            return Err(CommandError::usage(printable_line(&format!(
                "--model needs an agent manifest (--subject agent.yaml). To attack the model itself: --subject \
                 {MODEL_PREFIX}{model}"
            ))));
        }
        Ok(specs)
    }

    /// What flags and a configuration say of the subjects. Flags win.
    fn described(&self, configured: &[SubjectSpec]) -> Result<Vec<SubjectSpec>, CommandError> {
        if self.is_demonstration() && !configured.is_empty() {
            return Ok(configured.iter().map(|spec| self.over(spec)).collect());
        }
        let mut specs = Vec::new();
        let mut kinds = Vec::new();
        if self.is_demonstration() {
            let names = SIMULATIONS.map(|(name, _)| name.to_owned());
            kinds.extend(names.map(|name| (None, SubjectKind::Simulation(name))));
        }
        for name in &self.subjects {
            let found = configured
                .iter()
                .find(|spec| spec.name.as_ref() == Some(name));
            match found {
                Some(spec) => specs.push(self.over(spec)),
                None if is_plain(name) && !configured.is_empty() => {
                    return Err(CommandError::usage(unknown(name, configured)));
                }
                None => kinds.push((None, self.named(name)?)),
            }
        }
        for (place, text) in self.commands.iter().enumerate() {
            let name = (place > 0).then(|| format!("command-{}", place + 1));
            kinds.push((name, SubjectKind::Command(self.command(text)?)));
        }
        if !self.urls().is_empty() {
            kinds.push((None, SubjectKind::Endpoint(self.endpoint()?)));
        }
        let spec = |(name, kind)| SubjectSpec {
            name,
            deadline: self.deadline,
            kind,
        };
        specs.extend(kinds.into_iter().map(spec));
        Ok(specs)
    }

    /// A subject of a configuration, with what flags say of it.
    fn over(&self, spec: &SubjectSpec) -> SubjectSpec {
        let mut spec = spec.clone();
        spec.deadline = self.deadline.or(spec.deadline);
        match &mut spec.kind {
            SubjectKind::Manifest(manifest) => {
                replace(&mut manifest.agent, &self.agent);
                replace(&mut manifest.model, &self.model);
                replace(&mut manifest.base_url, &self.base_url);
                manifest.allow.extend(&self.allow);
            }
            SubjectKind::Model(model) => {
                replace(&mut model.base_url, &self.base_url);
                replace(&mut model.instructions, &self.system_prompt);
            }
            SubjectKind::Simulation(_) | SubjectKind::Command(_) | SubjectKind::Endpoint(_) => {}
        }
        spec
    }

    /// What `--subject` says.
    fn named(&self, name: &str) -> Result<SubjectKind, CommandError> {
        if let Some(model) = name.strip_prefix(MODEL_PREFIX) {
            return Ok(SubjectKind::Model(ModelSpec {
                model: model.to_owned(),
                base_url: self.base_url.clone(),
                instructions: self.system_prompt.clone(),
                directory: None,
            }));
        }
        if is_plain(name) {
            return Err(CommandError::usage(nobody(name)));
        }
        if name.starts_with("sim:") {
            return Ok(SubjectKind::Simulation(name.to_owned()));
        }
        let path = PathBuf::from(name);
        WantedFiles::Subjects.check(std::slice::from_ref(&path))?;
        Ok(SubjectKind::Manifest(ManifestSpec {
            path,
            agent: self.agent.clone(),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            allow: self.allow.clone(),
        }))
    }

    fn command(&self, text: &str) -> Result<CommandSpec, CommandError> {
        let words = shlex::split(text).ok_or_else(|| {
            CommandError::usage("--command: a quote is not closed; write it twice, or remove it")
        })?;
        if words.first().is_none_or(String::is_empty) {
            return Err(CommandError::usage(
                "--command: the command is empty; write one such as 'python agent.py {prompt}'",
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
        if let Some(problem) = words.iter().find_map(|word| placeholders::problem(word)) {
            return Err(CommandError::usage(printable_line(&format!(
                "--command: {problem}"
            ))));
        }
        let variables = self.environment.iter();
        let is_secret = |k: &str, v: &str| sounds_secret(k) || looks_secret(v);
        let secrets = variables.clone().filter(|(k, v)| is_secret(k, v));
        let secrets = secrets.map(|(_, value)| Sealed::new(value.clone()));
        Ok(CommandSpec {
            secrets: secrets.collect(),
            // In a copy, names of files mean the copies.
            words: match directory {
                Directory::OfRun => words
                    .iter()
                    .map(|word| from_everywhere(word, Path::new("")))
                    .collect(),
                Directory::CopyOf(_) | Directory::Fixed(_) => words,
            },
            directory,
            environment: variables
                .map(|(name, value)| (name.clone(), Sealed::new(value.clone())))
                .collect(),
            serves: self.serves.map(Into::into),
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

    fn headers(&self) -> Result<Vec<RequestHeader>, CommandError> {
        let given = self.headers.iter().map(|text| RequestHeader::read(text));
        let given: Result<Vec<RequestHeader>, HeaderError> = given.collect();
        let mut headers =
            given.map_err(|error| CommandError::usage(format!("--header: {error}")))?;
        for (name, variable) in &self.header_variables {
            let header = RequestHeader::of_variable(name, variable);
            let header =
                header.map_err(|error| CommandError::usage(format!("--header-env: {error}")))?;
            headers.push(header);
        }
        Ok(headers)
    }
}

/// Puts a value that was given in place of another.
fn replace(value: &mut Option<String>, given: &Option<String>) {
    if given.is_some() {
        value.clone_from(given);
    }
}

/// Whether what `--subject` says is a name, and neither a simulation nor a model nor a file.
fn is_plain(name: &str) -> bool {
    let is_file = [".yaml", ".yml"].iter().any(|end| name.ends_with(end));
    !is_file && !name.starts_with("sim:") && !name.starts_with(MODEL_PREFIX)
}

/// Says what to write instead of a name that nobody has: no configuration says who it is.
fn nobody(name: &str) -> String {
    let path = Path::new(name);
    let simulations = SIMULATIONS.map(|(name, _)| name);
    printable_line(&if path.is_file() {
        let command = start_command(path);
        format!("--subject: {name} is a program; start it with: --command '{command}'")
    } else if path.is_dir() {
        format!("--subject: {name} is a directory; name the agent manifest in it")
    } else if let Some(near) = did_you_mean(&format!("sim:{name}"), simulations) {
        format!("--subject: no subject `{name}`; did you mean {near}?")
    } else if path.extension().is_some() {
        format!("--subject: {name}: no such file")
    } else if Path::new(FILE).exists() {
        format!("--subject: no subject `{name}`: {FILE} was not read, or names no subjects")
    } else {
        format!("--subject: no subject `{name}`: there is no {FILE} here; run: proofhouse init")
    })
}

/// Says that a configuration has nobody of this name, and who is in it.
fn unknown(name: &str, configured: &[SubjectSpec]) -> String {
    let names = configured.iter().filter_map(|spec| spec.name.as_deref());
    let hint = match did_you_mean(name, names.clone()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
    };
    printable_line(&format!(
        "--subject {name}: proofhouse.yaml has no such subject; {hint}"
    ))
}
