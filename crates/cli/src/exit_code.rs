//! Every exit code of the binary, in one place.

use std::process::ExitCode;

use proofhouse_campaign::gates::Gate;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command did what it should and what it looked at is good.
    Success,
    /// The command did what it should and what it looked at is not: an invalid document, a file
    /// that is not in canonical form, a failed conformance case, an attack that succeeded, a call of a
    /// tool that came to an error which a model would be told, a task that a rule or a limit of its agent
    /// ended.
    Failure,
    /// The command did what it should, but there is no trustworthy answer: nothing was found, but an
    /// indicator could not be evaluated or a part of a trace was skipped.
    Inconclusive,
    /// The command could not do its work, or not all of it: a document cannot be used, a trace
    /// cannot be read to its end, a file cannot be written, a feature is not there, a call of a tool
    /// came to an error that ends a task, an agent has no answer.
    CannotRun,
    /// The command line does not make sense, or names what does not exist.
    Usage,
    /// The person at the terminal ended the command; what was seen until then was told.
    Interrupted,
}

impl Exit {
    /// The number a shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Inconclusive => 2,
            Self::CannotRun => 3,
            Self::Usage => 64,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<Gate> for Exit {
    fn from(gate: Gate) -> Self {
        match gate {
            Gate::Passed => Self::Success,
            Gate::Failed => Self::Failure,
            Gate::Inconclusive => Self::Inconclusive,
            Gate::NothingReached | Gate::NotJudged => Self::CannotRun,
        }
    }
}

/// The table shown at the end of `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0   done, and what was looked at is good
  1   done, and it is not: invalid documents, files not in canonical form, failed cases,
      attacks that succeeded, calls of tools that a model would be told have failed,
      tasks that a rule or a limit of their agent ended
  2   done, but without a trustworthy answer: nothing was found, but an indicator could not be
      evaluated or lines of a trace were skipped
  3   could not run, or not to the end: a document cannot be used, an input cannot be read to
      its end, a file cannot be written, a feature is not there, a call of a tool cannot be made,
      an agent has no answer
  64  usage: the command line does not make sense, or names what does not exist
  130 interrupted; what was seen until then was told";
