//! How an answer of an agent becomes an exit code.

use proofhouse_agent::task::{EndReason, TaskOutput};

use crate::exit_code::Exit;

/// The exit code of an answer.
pub(crate) fn exit(output: &TaskOutput) -> Exit {
    match &output.ended {
        None if output.failed.is_some() => Exit::CannotRun,
        None => Exit::Success,
        Some(end) => match end.reason {
            EndReason::Closed => Exit::Success,
            EndReason::Cancelled => Exit::Interrupted,
            EndReason::LimitExceeded | EndReason::Locked => Exit::Failure,
            EndReason::UnrecoverableError | EndReason::ModelError => Exit::CannotRun,
        },
    }
}

/// What to say about an answer that is none.
pub(crate) fn complaint(output: &TaskOutput) -> Option<String> {
    let ended = output.ended.as_ref().map(|end| {
        let word = match end.reason {
            EndReason::Closed => "closed",
            EndReason::Cancelled => "cancelled",
            EndReason::LimitExceeded => "limit_exceeded",
            EndReason::Locked => "locked",
            EndReason::UnrecoverableError => "unrecoverable_error",
            EndReason::ModelError => "model_error",
        };
        format!("the task has ended ({word}): {}", end.message)
    });
    ended.or_else(|| output.failed.clone())
}
