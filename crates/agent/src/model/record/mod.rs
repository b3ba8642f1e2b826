//! Recordings: what a model was asked and what it said, written to a file and said again from it.
//!
//! A recording is JSON Lines. The first line says which model spoke; each further line is one
//! exchange: the hash of the request, the request, the events of the reply, and the reply or the error.

mod difference;
mod line;
mod recorder;
mod redact;
mod replay;

pub use line::request_hash;
pub use recorder::{Recorder, RedactText};
pub use replay::RecordedModel;

/// Why a recording cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be used.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// What the system said.
        reason: String,
    },
    /// A line is not as it should be.
    #[error("line {line} of the recording: {reason}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The recording is larger than it may be.
    #[error("the recording has more than {limit} bytes")]
    TooLarge {
        /// The most bytes it may have.
        limit: u64,
    },
}
