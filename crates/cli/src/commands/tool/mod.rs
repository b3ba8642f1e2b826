//! `proofhouse tool`: what a manifest offers, calls of it, logging it in, and serving it to others.

mod call;
mod list;
mod login;
mod serve;

use clap::Args;

use crate::exit_code::Exit;
use crate::output::CommandError;

/// List, call and serve the actions of tool manifests, and log them in
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse tool list examples/tools/clock.yaml\n  \
    proofhouse tool call examples/tools/clock.yaml greet --arg name=Ada\n  \
    proofhouse tool serve examples/tools/clock.yaml --listen 127.0.0.1:8080")]
pub(crate) struct ToolCommands {
    #[command(subcommand)]
    command: ToolCommand,
}

commands! {
    enum ToolCommand {
        List(list::ToolList),
        Call(Box<call::ToolCallCommand>),
        Login(login::ToolLogin),
        Serve(Box<serve::ToolServe>),
    }
}

impl ToolCommands {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        self.command.run()
    }
}
