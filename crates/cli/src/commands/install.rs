//! `proofhouse install`: what the init container of a worker runs, to bring the program beside another image.

use std::path::PathBuf;

use clap::Args;
use proofhouse_fleet::kubernetes::install;

use crate::exit_code::Exit;
use crate::output::{CommandError, printable_line, shown_path, talk};

/// Used by the init container of `run --on kubernetes`: copy this program into a directory
///
/// The agent's own container then starts the copy, so that its image needs no change.
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = "Example:\n  proofhouse install /opt/proofhouse\n\nExit codes:\n  \
    0   the program is there\n  3   it cannot be written\n  64  invalid arguments"
)]
pub(crate) struct Install {
    /// The directory; it is created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Install {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let failed = |error: String| CommandError::cannot_run(printable_line(&error));
        let own = std::env::current_exe()
            .map_err(|error| failed(format!("this program cannot be found: {error}")))?;
        let place = install(&own, &self.directory).map_err(|error| failed(error.to_string()))?;
        talk(&format!("installed {}", shown_path(&place)));
        Ok(Exit::Success)
    }
}
