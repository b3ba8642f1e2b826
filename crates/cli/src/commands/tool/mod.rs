//! `proofhouse tool`: what a manifest offers, and calls of it.

mod call;
mod list;

use clap::{Args, Subcommand};

use crate::exit_code::Exit;
use crate::output::CommandError;

/// List and call the actions of tool manifests
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse tool list examples/tools/clock.yaml\n  \
    proofhouse tool call examples/tools/clock.yaml greet --arg name=Ada")]
pub(crate) struct Tool {
    #[command(subcommand)]
    command: ToolCommand,
}

#[derive(Debug, Subcommand)]
enum ToolCommand {
    List(list::List),
    Call(Box<call::Call>),
}

impl Tool {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        match self.command {
            ToolCommand::List(command) => command.run(),
            ToolCommand::Call(command) => command.run(),
        }
    }
}
