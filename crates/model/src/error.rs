//! How asking a model can fail, and what had come until then.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ModelReply;

/// Why there is no whole reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What went wrong.
    pub kind: ModelErrorKind,
    /// The same for a person; secrets are redacted.
    pub message: String,
    /// What had come of the reply. Its `stop` and `usage` are what is known of them.
    pub partial: Option<Box<ModelReply>>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
}

/// The ways to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// Nobody answers at the address.
    Unreachable,
    /// The egress policy forbids the address.
    Denied,
    /// The provider wants a pause that is longer than we wait.
    RateLimited,
    /// The key is missing, wrong, or not allowed to do this.
    Unauthorized,
    /// The provider rejects the request.
    Rejected,
    /// The provider failed.
    Server,
    /// Silence for too long, or too much time altogether.
    Timeout,
    /// The stream ended in the middle.
    Cut,
    /// The answer cannot be understood.
    Garbage,
    /// The answer is larger than it may be.
    TooLarge,
    /// The reply says nothing and calls nothing.
    Empty,
    /// The model or its provider declined without a word.
    Refused,
    /// The reply ended for a reason that is not known here.
    UnknownStop,
    /// The recording has no such request.
    NotRecorded,
    /// The script of a simulation has no reply left, or none that fits.
    Script,
    /// The caller cancelled.
    Cancelled,
}

impl ModelErrorKind {
    /// Whether asking again, as it is or a little later, may go well.
    #[must_use]
    pub fn is_recoverable(self) -> bool {
        match self {
            Self::Unreachable
            | Self::RateLimited
            | Self::Server
            | Self::Timeout
            | Self::Cut
            | Self::Garbage
            | Self::TooLarge
            | Self::Empty
            | Self::UnknownStop => true,
            Self::Denied
            | Self::Unauthorized
            | Self::Rejected
            | Self::Refused
            | Self::NotRecorded
            | Self::Script
            | Self::Cancelled => false,
        }
    }
}

impl ModelError {
    /// An error before anything of a reply came.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            partial: None,
            retry_after: None,
        }
    }

    /// With what had come of the reply; nothing is kept of an empty one.
    #[must_use]
    pub fn with_partial(mut self, reply: ModelReply) -> Self {
        self.partial = (!reply.is_empty()).then(|| Box::new(reply));
        self
    }

    /// Whether asking again, as it is or a little later, may go well.
    #[must_use]
    pub fn is_recoverable(&self) -> bool {
        self.kind.is_recoverable()
    }
}
