//! `proofhouse drive`: lets a test program attack an agent that runs in its own process.

use std::io::{self, BufReader};
use std::time::Duration;

use clap::Args;
use proofhouse_campaign::drive::{DriveSettings, serve};

use crate::exit_code::Exit;
use crate::input::SizeLimit;
use crate::output::CommandError;

/// How long runs may take to end when the host is gone.
const LEAVING: Duration = Duration::from_millis(500);

/// Let a test program attack an agent in its own process (JSON lines over stdio)
///
/// The pytest plugin and the vitest helpers speak to it. The host asks for a run, gets each prompt with the addresses of
/// the attack's servers, lets its agent work, hands back the answer, and gets outcome, reason and evidence.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    echo '{\"id\": 1, \"do\": \"select\", \"ids\": [\"weather-key-theft\"]}' | proofhouse drive\n\n\
    docs/reference/drive.md has the messages.\n\n\
    Exit codes: 0 the host ended its input, 3 the host cannot be written to, 64 usage.")]
pub(crate) struct Drive {
    #[command(flatten)]
    size: SizeLimit,
}

impl Drive {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| CommandError::cannot_run(format!("cannot start: {error}")))?;
        let settings = DriveSettings {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            limits: self.size.limits(),
        };
        let input = BufReader::new(io::stdin());
        let served = serve(runtime.handle(), input, io::stdout().lock(), settings);
        runtime.shutdown_timeout(LEAVING);
        match served {
            Ok(()) => Ok(Exit::Success),
            Err(error) => Err(CommandError::cannot_run(error.to_string())),
        }
    }
}
