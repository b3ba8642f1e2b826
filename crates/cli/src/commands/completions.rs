//! `proofhouse completions`: shell completions.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData};

/// Print a completion script for your shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  proofhouse completions bash > /etc/bash_completion.d/proofhouse"
)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "proofhouse", &mut script);
        let mut data = StdoutData::new();
        data.write(&String::from_utf8_lossy(&script))?;
        data.finish()?;
        Ok(Exit::Success)
    }
}
