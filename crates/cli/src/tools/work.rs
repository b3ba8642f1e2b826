//! Work that can be interrupted: the first request to end cancels it and waits, the second does not.

use std::future::Future;
use std::time::Duration;

use proofhouse_wire::CancellationToken;

use crate::exit_code::Exit;
use crate::output::{CommandError, talk};
use crate::runtime::runtime;
pub(crate) use crate::signals::Worked;
use crate::signals::{Signals, interruptible_by};

/// What is left of the work is given this long when nobody waits for it any more.
const LEAVING: Duration = Duration::from_millis(500);

impl<T> Worked<T> {
    /// The result of work that nobody interrupted.
    pub(crate) fn whole(self) -> Result<T, CommandError> {
        match self {
            Self::Whole(result) => Ok(result),
            Self::Interrupted(_) => Err(interrupted()),
        }
    }
}

/// Does work on a runtime of its own. Ctrl-C, SIGTERM and a closed terminal cancel the token; the work
/// is then waited for, so that it can end what it started. Once more leaves at once.
pub(crate) fn until_interrupted<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<Worked<T>, CommandError> {
    let told = || talk("Interrupted. Stopping what was started; press Ctrl-C again to quit.");
    until(cancel, Signals::listen, told, work)
}

/// The same for a server that reads its configuration again at SIGHUP, and has words of its own for its log.
pub(crate) fn until_server_ends<T>(
    cancel: &CancellationToken,
    told: impl FnOnce(),
    work: impl Future<Output = T>,
) -> Result<Worked<T>, CommandError> {
    until(cancel, Signals::listen_as_server, told, work)
}

fn until<T>(
    cancel: &CancellationToken,
    listen: impl FnOnce() -> Signals,
    told: impl FnOnce(),
    work: impl Future<Output = T>,
) -> Result<Worked<T>, CommandError> {
    let runtime = runtime()?;
    let worked = runtime.block_on(async {
        interruptible_by(listen(), work, || {
            told();
            cancel.cancel();
        })
        .await
    });
    runtime.shutdown_timeout(LEAVING);
    worked.ok_or_else(interrupted)
}

fn interrupted() -> CommandError {
    CommandError {
        message: "interrupted".to_owned(),
        exit: Exit::Interrupted,
    }
}
