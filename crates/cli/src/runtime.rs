//! The threads on which commands wait for the network and for processes.

use tokio::runtime::{Builder, Runtime};

use crate::output::CommandError;

/// A runtime with all its drivers, for a command that waits.
pub(crate) fn runtime() -> Result<Runtime, CommandError> {
    Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::cannot_run(format!("cannot start: {error}")))
}
