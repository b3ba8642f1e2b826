//! What the commands on agents take.

use std::path::{Path, PathBuf};

use clap::Args;
use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_subjects::agent_setup::{AgentSetup, PreparedAgent};
use proofhouse_wire::write_files::same_file;

use super::models::ModelArgs;
use crate::environment::environment;
use crate::notices;
use crate::output::{CommandError, shown_path};
use crate::tools::arguments::pair;
use crate::tools::options::OperatorOptions;

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

impl AgentOptions {
    /// Whether stdin is already read by something else.
    pub(crate) fn read_stdin(&self) -> bool {
        self.manifests.iter().any(|path| path == Path::new("-")) || self.operator.read_stdin()
    }

    /// Reads everything that is named and sets up what runs tasks.
    pub(crate) fn prepare(&self) -> Result<PreparedAgent, CommandError> {
        self.check_files()?;
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
                    "--trace {shown}: this file is used for something else, too"
                )))
            }
            _ => Ok(()),
        }
    }
}
