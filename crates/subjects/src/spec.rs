//! Who a subject is, whether flags or a file say so.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use proofhouse_manifest::interpolate::Sealed;

use crate::headers::RequestHeader;

/// A subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectSpec {
    /// Its name in results, unique in a campaign; without one, what [`SubjectKind`] makes of it.
    pub name: Option<String>,
    /// The longest a run against it may take, if not the usual time.
    pub deadline: Option<Duration>,
    /// What kind of subject it is, and all that kind needs.
    pub kind: SubjectKind,
}

/// What kind of subject it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectKind {
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
pub struct ManifestSpec {
    /// The file, or a directory of manifests.
    pub path: PathBuf,
    /// Which agent, where there are several.
    pub agent: Option<String>,
    /// The model, if not that of the manifest.
    pub model: Option<String>,
    /// Where the model's provider is, if not at its usual address.
    pub base_url: Option<String>,
    /// Networks that its tools may reach beside this machine.
    pub allow: Vec<IpNet>,
}

/// A bare model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelSpec {
    /// The model, such as `openai:gpt-5`.
    pub model: String,
    /// Where its provider is, if not at its usual address.
    pub base_url: Option<String>,
    /// What it is told first, if not the usual plain sentence.
    pub instructions: Option<String>,
    /// Where files that the model's name mentions are looked for, if not here.
    pub directory: Option<PathBuf>,
}

/// A command that is started for every run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program and its arguments, with placeholders such as `{mcp_url}`. Relative names of files must
    /// have been made absolute where they are not meant to be found in the command's directory.
    pub words: Vec<String>,
    /// Where it runs.
    pub directory: Directory,
    /// Variables to set for it, with placeholders.
    pub environment: Vec<(String, Sealed<String>)>,
    /// What of it is secret and must not be in traces and results.
    pub secrets: Vec<Sealed<String>>,
    /// Without it, the command does one task and ends.
    pub serves: Option<Serves>,
    /// When a command that serves is ready.
    pub ready: Ready,
    /// Headers that requests to a command that serves carry.
    pub headers: Vec<RequestHeader>,
    /// The configuration of its MCP servers, if it is to name the attack's.
    pub mcp_config: Option<McpConfigSpec>,
    /// Bytes that a run may write into its directory, if not the usual number.
    pub max_disk: Option<u64>,
}

/// Where a command runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Directory {
    /// In a directory of the run's own, with nothing but canaries in it.
    #[default]
    OfRun,
    /// In a copy of this directory, one for each run.
    CopyOf(PathBuf),
    /// In this directory itself.
    Fixed(PathBuf),
}

/// What a command serves once it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// AG-UI at http://127.0.0.1:PORT/
    AgUi,
    /// A2A at http://127.0.0.1:PORT/
    A2a,
    /// MCP at http://127.0.0.1:PORT/mcp
    Mcp,
}

/// When a command that serves is ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ready {
    /// When its port is open.
    #[default]
    Port,
    /// When it prints a line with this text.
    Line(String),
    /// When this URL, or this path at its port, answers with a status of success; with placeholders.
    Url(String),
}

/// An MCP configuration file whose servers are replaced by the attack's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpConfigSpec {
    /// The file, in the form that the usual clients read.
    pub file: PathBuf,
    /// Whether the file itself is rewritten and put back, for agents that read it in one fixed place; a
    /// rewritten copy is at `{mcp_config}` otherwise.
    pub in_place: bool,
}

/// An agent that runs already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointSpec {
    /// Where it is.
    pub urls: Urls,
    /// Where MCP servers of documents listen, because the agent was told so.
    pub mcp_listen: Option<SocketAddr>,
    /// Where A2A servers of documents listen, for the same reason.
    pub a2a_listen: Option<SocketAddr>,
    /// Headers that requests to it carry.
    pub headers: Vec<RequestHeader>,
}

/// Where an agent is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Urls {
    /// Where it speaks AG-UI.
    pub ag_ui: Option<String>,
    /// Where it speaks A2A.
    pub a2a: Option<String>,
    /// Where it serves MCP.
    pub mcp: Option<String>,
}

impl Urls {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// All there are.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let all = [&self.ag_ui, &self.a2a, &self.mcp];
        all.into_iter().flatten().map(String::as_str)
    }
}

/// A word of a command that names a file of `directory`, as it is named from everywhere: a run has a directory of
/// its own. Other words stay as they are.
#[must_use]
pub fn from_everywhere(word: &str, directory: &Path) -> String {
    let path = directory.join(word);
    let is_file = word.contains(['/', '.']) && Path::new(word).is_relative() && path.exists();
    let absolute = is_file.then(|| std::path::absolute(path).ok()).flatten();
    absolute.map_or_else(|| word.to_owned(), |path| path.display().to_string())
}

/// A text that is no network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write an address or a network, such as 127.0.0.1 or 10.1.0.0/16")]
pub struct NetworkError;

/// Reads a network; an address is a network of one.
///
/// # Errors
///
/// Returns an error when it is neither.
pub fn network(text: &str) -> Result<IpNet, NetworkError> {
    let network = text.parse::<IpNet>().ok();
    network
        .or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
        .ok_or(NetworkError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_addresses_too() {
        assert_eq!(network("127.0.0.1").unwrap().to_string(), "127.0.0.1/32");
        assert_eq!(network("fd00::/8").unwrap().to_string(), "fd00::/8");
        assert!(network("localhost").is_err() && network("10.0.0.0/40").is_err());
    }
}
