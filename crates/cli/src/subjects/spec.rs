//! Who a subject is, whether flags or a file say so.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use proofhouse_manifest::interpolate::Sealed;

use crate::headers::Header;

/// A subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubjectSpec {
    /// Its name in results, unique in a campaign; without one, what [`SubjectKind`] makes of it.
    pub(crate) name: Option<String>,
    /// The longest a run against it may take, if not the usual time.
    pub(crate) deadline: Option<Duration>,
    pub(crate) kind: SubjectKind,
}

/// What kind of subject it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SubjectKind {
    /// A simulation, such as `sim:careful`; it has its own patience. Named as it is written.
    Simulation(String),
    /// An agent of a manifest. Named as the agent.
    Manifest(ManifestSpec),
    /// A bare model behind our loop. Named `model:` and the model.
    Model(ModelSpec),
    /// A command that is started for every run. Named `command`.
    Command(CommandSpec),
    /// An agent that runs already. Named `endpoint`.
    Endpoint(EndpointSpec),
}

/// An agent of a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ManifestSpec {
    /// The file, or a directory of manifests.
    pub(crate) path: PathBuf,
    /// Which agent, where there are several.
    pub(crate) agent: Option<String>,
    /// The model, if not that of the manifest.
    pub(crate) model: Option<String>,
    /// Where the model's provider is, if not at its usual address.
    pub(crate) base_url: Option<String>,
    /// Networks that its tools may reach beside this machine.
    pub(crate) allow: Vec<IpNet>,
}

/// A bare model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelSpec {
    /// The model, such as `openai:gpt-5`.
    pub(crate) model: String,
    /// Where its provider is, if not at its usual address.
    pub(crate) base_url: Option<String>,
    /// What it is told first, if not the usual plain sentence.
    pub(crate) instructions: Option<String>,
    /// Where files that the model's name mentions are looked for, if not here.
    pub(crate) directory: Option<PathBuf>,
}

/// A command that is started for every run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandSpec {
    /// The program and its arguments, with placeholders such as `{mcp_url}`. Relative names of files must
    /// have been made absolute where they are not meant to be found in the command's directory.
    pub(crate) words: Vec<String>,
    pub(crate) directory: Directory,
    /// Variables to set for it, with placeholders.
    pub(crate) environment: Vec<(String, Sealed<String>)>,
    /// What of it is secret and must not be in traces and results.
    pub(crate) secrets: Vec<Sealed<String>>,
    /// Without it, the command does one task and ends.
    pub(crate) serves: Option<Serves>,
    /// When a command that serves is ready.
    pub(crate) ready: Ready,
    /// Headers that requests to a command that serves carry.
    pub(crate) headers: Vec<Header>,
    pub(crate) mcp_config: Option<McpConfigSpec>,
    /// Bytes that a run may write into its directory, if not the usual number.
    pub(crate) max_disk: Option<u64>,
}

/// Where a command runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Directory {
    /// In a directory of the run's own, with nothing but canaries in it.
    #[default]
    OfRun,
    /// In a copy of this directory, one for each run.
    CopyOf(PathBuf),
    /// In this directory itself.
    Fixed(PathBuf),
}

/// What a command serves once it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Serves {
    /// AG-UI at http://127.0.0.1:PORT/
    AgUi,
    /// A2A at http://127.0.0.1:PORT/
    A2a,
    /// MCP at http://127.0.0.1:PORT/mcp
    Mcp,
}

/// When a command that serves is ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Ready {
    /// When its port is open.
    #[default]
    Port,
    /// When it prints a line with this text.
    Line(String),
    /// When this URL, or this path at its port, answers with a status of success; with placeholders.
    Url(String),
}

/// A configuration of MCP servers that is made to name the attack's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct McpConfigSpec {
    /// The file, in the form that the usual clients read.
    pub(crate) file: PathBuf,
    /// Whether the file itself is rewritten and put back, for agents that read it in one fixed place; a
    /// rewritten copy is at `{mcp_config}` otherwise.
    pub(crate) in_place: bool,
}

/// An agent that runs already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EndpointSpec {
    pub(crate) urls: Urls,
    /// Where servers of documents listen, because the agent was told so.
    pub(crate) mcp_listen: Option<SocketAddr>,
    pub(crate) a2a_listen: Option<SocketAddr>,
    /// Headers that requests to it carry.
    pub(crate) headers: Vec<Header>,
}

/// Where an agent is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Urls {
    pub(crate) ag_ui: Option<String>,
    pub(crate) a2a: Option<String>,
    pub(crate) mcp: Option<String>,
}

impl Urls {
    pub(crate) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// All there are.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        let all = [&self.ag_ui, &self.a2a, &self.mcp];
        all.into_iter().flatten().map(String::as_str)
    }
}
