//! What the commands on agents take.

use std::path::{Path, PathBuf};

use clap::Args;
use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_subjects::agent_setup::{AgentSetup, PreparedAgent};
use proofhouse_wire::write_files::same_file;

use super::models::ModelArgs;
use crate::environment::environment;
use crate::input::named_files;
use crate::notices;
use crate::output::{CommandError, shown_path};
use crate::tools::arguments::pair;
use crate::tools::options::OperatorOptions;

/// Which agent, its model, and what it may use.
#[derive(Debug, Args)]
pub(crate) struct AgentOptions {
    /// Manifests of the agent and of the tools and agents it uses: files, or directories that are searched for
    /// .yaml and .yml files [default: a plain assistant, if --mcp is given]
    #[arg(value_name = "AGENT", required_unless_present = "mcp")]
    manifests: Vec<PathBuf>,

    /// Which agent to run, if there are several [default: the one that no other agent uses]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// A parameter of the agent, read according to its schema; can be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    params: Vec<(String, String)>,

    #[command(flatten)]
    model: ModelArgs,

    /// An additional MCP server for the agent: a URL, or a command in quotes. Put NAME= in front to name it; can be
    /// repeated
    #[arg(long, value_name = "URL|COMMAND")]
    pub(crate) mcp: Vec<String>,

    /// The directory for the files of agents that have a mount
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,

    /// The user id that the rules of the agent see
    #[arg(long, value_name = "ID", default_value = "local")]
    user: String,

    #[command(flatten)]
    operator: OperatorOptions,

    /// Write every tool call to this trace file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

impl AgentOptions {
    /// Whether stdin is already read by something else.
    pub(crate) fn read_stdin(&self) -> bool {
        self.manifests.iter().any(|path| path == Path::new("-")) || self.operator.read_stdin()
    }

    /// Reads everything that is named and sets up what runs tasks.
    pub(crate) fn prepare(&self) -> Result<PreparedAgent, CommandError> {
        self.check_files()?;
        named_files(self.model.choice().replay.as_deref())?;
        WantedFiles::Manifests.check(&self.manifests)?;
        let setup = AgentSetup {
            manifests: self.manifests.clone(),
            agent: self.agent.clone(),
            parameters: self.params.clone(),
            model: self.model.choice(),
            servers: self.mcp.clone(),
            files: self.files.clone(),
            user: self.user.clone(),
            trace: self.trace.clone(),
        };
        setup.prepare(|| self.operator.operator(), &environment(), &notices::show)
    }

    /// What is read is not written over, and nothing is written twice.
    fn check_files(&self) -> Result<(), CommandError> {
        let model = self.model.choice();
        let mut known: Vec<&Path> = self.manifests.iter().map(PathBuf::as_path).collect();
        known.extend(self.operator.file());
        known.extend(model.replay.as_deref());
        known.extend(model.record.as_deref());
        match &self.trace {
            Some(trace) if known.iter().any(|path| same_file(path, trace)) => {
                let shown = shown_path(trace);
                Err(CommandError::usage(format!(
                    "--trace {shown}: this file is already used for something else"
                )))
            }
            _ => Ok(()),
        }
    }
}
