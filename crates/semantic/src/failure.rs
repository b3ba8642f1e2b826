//! Why a text got no score.

use std::time::Duration;

use proofhouse_oatf::{EvaluationError, EvaluationErrorKind};

/// Why a text got no score. The words never hold the key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SemanticFailure {
    /// The text is larger than what may be sent.
    #[error("the text has {bytes} bytes, and at most {limit} are sent")]
    TextTooLong {
        /// What it has.
        bytes: usize,
        /// What it may have.
        limit: usize,
    },
    /// As many requests were made as the configuration allows.
    #[error("the limit of {limit} requests is reached")]
    RequestsSpent {
        /// How many were allowed.
        limit: u64,
    },
    /// The endpoint failed too often in a row to be asked once more.
    #[error("the endpoint failed {times} times in a row and is no longer asked; last: {last}")]
    GivenUp {
        /// How often.
        times: u32,
        /// How it failed the last time.
        last: String,
    },
    /// No connection, or one that broke.
    #[error("cannot talk to {host}: {reason}")]
    Unreachable {
        /// The endpoint.
        host: String,
        /// What the transport said.
        reason: String,
    },
    /// No whole answer in time.
    #[error("{host} gave no answer within {limit:?}")]
    Timeout {
        /// The endpoint.
        host: String,
        /// The time it had.
        limit: Duration,
    },
    /// An answer that says no.
    #[error("{host} answered with status {status}{words}")]
    Status {
        /// The endpoint.
        host: String,
        /// The HTTP status.
        status: u16,
        /// What it said, shortened, with a separator before it; or nothing.
        words: String,
    },
    /// An answer that is too large.
    #[error("the answer is larger than {limit} bytes")]
    AnswerTooLarge {
        /// What it may have.
        limit: u64,
    },
    /// An answer that is no score and no embedding.
    #[error("the answer cannot be used: {reason}")]
    BadAnswer {
        /// What is wrong with it.
        reason: String,
    },
    /// The model does not score the indicator's own examples as its document says.
    #[error("the indicator does not fit the model: {reason}")]
    Calibration {
        /// Which examples came out wrong.
        reason: String,
    },
}

impl SemanticFailure {
    pub(crate) fn bad_answer(reason: impl Into<String>) -> Self {
        Self::BadAnswer {
            reason: reason.into(),
        }
    }
}

impl From<SemanticFailure> for EvaluationError {
    fn from(failure: SemanticFailure) -> Self {
        Self::new(EvaluationErrorKind::SemanticError, failure.to_string())
    }
}
