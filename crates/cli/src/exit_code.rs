//! Every exit code of the binary, in one place.

use std::process::ExitCode;

use proofhouse_campaign::gates::Gate;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command did what it should and what it looked at is good. Of an agent, something was proved: it resisted at
    /// least one attack, and none got through.
    Success,
    /// The command did what it should and what it looked at is not: an invalid document, a file
    /// that is not in canonical form, a failed conformance case, an attack that succeeded, a gate (`--fail-on`), a call
    /// of a tool that came to an error which a model would be told, a task that a rule or a limit of its agent
    /// ended. Also when it was interrupted after that was known.
    Failure,
    /// The command did what it should, but there is no trustworthy answer: nothing got through, but nothing was proved
    /// either, or an indicator could not be evaluated, or a part of a trace was skipped.
    Inconclusive,
    /// The command could not do its work, or not all of it: a document cannot be used, a trace
    /// cannot be read to its end, a file exists already or cannot be written, a feature is not there, a call of a tool
    /// came to an error that ends a task, an agent has no answer.
    CannotRun,
    /// Invalid arguments, or a file that is named does not exist.
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
            Gate::Inconclusive | Gate::NothingProved => Self::Inconclusive,
            Gate::NotJudged => Self::CannotRun,
        }
    }
}

/// The table shown at the end of `--help`. It is true for every command; docs/reference/exit-codes.md says more.
pub(crate) const HELP: &str = "\
Results go to stdout; messages go to stderr.

Exit codes:
  0   success; for an attacked agent: no attack got through and at least one was resisted, or
      only attacks got through that --fail-on does not count
  1   problems found: an attack got through, a condition of --fail-on holds, a file is invalid
      or not formatted, a test case or a tool call failed, or a rule or a limit of an agent
      ended its task
  2   inconclusive: no attack got through, but the runs do not prove that one was resisted, or
      some of the input could not be evaluated
  3   could not run, or not to the end: the preflight failed, an input cannot be read or used,
      a file exists or cannot be written, or an agent did not answer
  64  invalid arguments, or a file that is named does not exist or is of another kind
  130 stopped by Ctrl-C before anything got through";
