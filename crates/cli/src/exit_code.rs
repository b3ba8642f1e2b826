//! Every exit code of the binary, in one place.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command did what it should and what it looked at is good.
    Success,
    /// The command did what it should and what it looked at is not: an invalid document, a file
    /// that is not in canonical form, a failed conformance case.
    Failure,
    /// The command could not do its work: a file cannot be written, a feature is not there.
    CannotRun,
    /// The command line does not make sense, or names what does not exist.
    Usage,
}

impl Exit {
    /// The number a shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::CannotRun => 3,
            Self::Usage => 64,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The table shown at the end of `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0   done, and what was looked at is good
  1   done, and it is not: invalid documents, files not in canonical form, failed cases
  3   could not run: a file cannot be written, a feature is not there
  64  usage: the command line does not make sense, or names what does not exist";
