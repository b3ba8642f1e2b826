//! `proofhouse model`: models that need no provider, for agents of others.

mod serve;

use clap::Args;

use crate::exit_code::Exit;
use crate::output::CommandError;

/// Serve a simulated or recorded model to your own agent
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse model serve sim:gullible\n  \
    OPENAI_BASE_URL=http://127.0.0.1:8766/v1 OPENAI_API_KEY=none python agent.py")]
pub(crate) struct ModelCommands {
    #[command(subcommand)]
    command: ModelCommand,
}

commands! {
    enum ModelCommand {
        Serve(serve::ModelServe),
    }
}

impl ModelCommands {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        self.command.run()
    }
}
