//! `proofhouse drive`: lets a test program attack an agent that runs in its own process.

use std::io::{self, BufReader};
use std::time::Duration;

use clap::Args;
use proofhouse_campaign::drive::{DriveSettings, serve};

use crate::exit_code::Exit;
use crate::input::SizeLimit;
use crate::output::CommandError;
use crate::runtime::runtime;

/// How long runs may take to end when the host is gone.
const LEAVING: Duration = Duration::from_millis(500);

/// Let a test program attack an agent that runs inside it (JSON lines over stdio)
///
/// The pytest plugin and the vitest helpers use this command; you do not need to start it yourself. The test
/// program asks for a run, receives each prompt with the URLs of the attack's servers, lets its agent work, sends
/// back the answer, and receives the outcome with its reason and evidence.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  \
    echo '{{\"id\": 1, \"do\": \"select\", \"ids\": [\"weather-key-theft\"]}}' | proofhouse drive\n\n\
    For the messages, see {}.\n\n\
    Exit codes:\n  \
    0   the test program closed its end of the pipe\n  \
    3   cannot write to the test program\n  \
    64  invalid arguments", proofhouse_wire::repository::page("docs/reference/drive.md")))]
pub(crate) struct Drive {
    #[command(flatten)]
    size: SizeLimit,
}

impl Drive {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let runtime = runtime()?;
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
