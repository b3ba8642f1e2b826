//! Runs judged again from their recording, without the subject and its model: which ones, by which document, and what
//! they come to.
//!
//! What the recording cannot tell anew stays as it was: whether the attack reached the subject, and what broke
//! the run off. Everything else follows from the messages and the document, which may be another than then.

mod find;
mod judge;
mod recording;
mod replayed;
mod sources;

use std::path::PathBuf;

pub use find::{FindError, KeptCampaign, find};
pub use judge::{IndicatorChange, Judge, Judging, ReplayedRun};
pub use recording::{MessageBudget, Recording, Traces, traces};
pub use replayed::{Again, Replayed, gate, replay};
pub use sources::{DocumentState, GivenError, Sources};

/// Why a run cannot be judged again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The result names a document that it does not have.
    #[error("the result does not have its document")]
    NoDocument,
    /// The result names a copy that is not among its own.
    #[error("`{0}` is not among the kept documents")]
    ElsewhereKept(String),
    /// The document cannot be used.
    #[error("{}: it cannot be used", .0.display())]
    Unusable(PathBuf),
    /// The document is nowhere.
    #[error("{0}; name the document with --document FILE")]
    Gone(String),
    /// Its indicators cannot be compiled.
    #[error("{0}")]
    Build(String),
    /// There is no recording.
    #[error("the run was not recorded")]
    NotRecorded,
    /// The result names a recording that is not among its own.
    #[error("its recording `{0}` is not among the traces")]
    ElsewhereRecorded(String),
    /// What has the name of the recording is no file.
    #[error("{}: not a file", .0.display())]
    NoFile(PathBuf),
    /// The recording cannot be read.
    #[error("{}: cannot read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file has not one message.
    #[error("{}: not a recording: {reason}", path.display())]
    NoRecording {
        /// The file.
        path: PathBuf,
        /// What is wrong with it first.
        reason: String,
    },
}
