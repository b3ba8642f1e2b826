//! Why there is no token. No error holds a secret.

use crate::runtime::ActionFailure;

/// Why a provider gave no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Nobody configured it.
    #[error("no provider of that name is configured{}", suggestion(near.as_deref()))]
    Unknown {
        /// A name that is like it.
        near: Option<String>,
    },
    /// The token endpoint gave no answer.
    #[error("the token endpoint gave no answer: {reason}")]
    Unavailable {
        /// What went wrong.
        reason: String,
        /// The same in a word.
        failure: ActionFailure,
    },
    /// The token endpoint said no.
    #[error(
        "the token endpoint refused with HTTP {status}{}",
        said(error.as_deref(), description.as_deref())
    )]
    Refused {
        /// The status of its answer.
        status: u16,
        /// The code of the error, such as `invalid_client`.
        error: Option<String>,
        /// What else it said, shortened.
        description: Option<String>,
    },
    /// The token endpoint answered something that is no token.
    #[error("the answer of the token endpoint cannot be used: {0}")]
    Answer(&'static str),
    /// The request cannot be made from what is configured.
    #[error("the token cannot be asked for: {0}")]
    Request(&'static str),
    /// The program ended while a token was fetched.
    #[error("fetching the token was stopped")]
    Stopped,
}

impl AuthError {
    /// What becomes of the call that wanted the token. Nobody but an operator can mend what is configured; whatever may pass by
    /// itself is told as the same failure of the action's own server would be.
    #[must_use]
    pub fn failure(&self) -> ActionFailure {
        match self {
            Self::Unavailable { failure, .. } => match failure {
                ActionFailure::EgressDenied | ActionFailure::Setting | ActionFailure::Manifest => {
                    ActionFailure::Token
                }
                passing => *passing,
            },
            Self::Refused { status, .. } if *status >= 500 || matches!(status, 408 | 429) => {
                ActionFailure::HttpStatus
            }
            Self::Refused { .. }
            | Self::Unknown { .. }
            | Self::Answer(_)
            | Self::Request(_)
            | Self::Stopped => ActionFailure::Token,
        }
    }
}

fn suggestion(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

fn said(error: Option<&str>, description: Option<&str>) -> String {
    match (error, description) {
        (None, None) => String::new(),
        (Some(error), None) => format!(": {error}"),
        (None, Some(description)) => format!(": {description}"),
        (Some(error), Some(description)) => format!(": {error} ({description})"),
    }
}
