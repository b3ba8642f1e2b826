//! `proofhouse agent`: talks to agents of manifests, gives them one thing to do, and serves them.

mod chat;
mod run;
mod serve;

use clap::Args;

use crate::exit_code::Exit;
use crate::output::CommandError;

/// Run an agent that a manifest describes: chat with it, send it one message, or serve it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse agent chat examples/agents/support.yaml --param customer=c-1\n  \
    proofhouse agent run examples/agents/support.yaml --param customer=c-1 --message 'Read ticket 7'\n  \
    proofhouse agent run --mcp 'npx -y @acme/server' --message 'Add 1 and 2'\n  \
    proofhouse agent serve examples/agents/delegation.yaml --a2a 127.0.0.1:8080")]
pub(crate) struct AgentCommands {
    #[command(subcommand)]
    command: AgentCommand,
}

commands! {
    enum AgentCommand {
        Chat(Box<chat::Chat>),
        Run(Box<run::AgentRun>),
        Serve(Box<serve::AgentServe>),
    }
}

impl AgentCommands {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        self.command.run()
    }
}
