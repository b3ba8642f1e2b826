//! Errors of actions: one table says which of them end the task and which are told to the model.

use std::fmt;

use serde_json::{Map, Value, json};

use proofhouse_manifest::interpolate::{RenderError, ResolveError, Secrets};

/// What becomes of a task after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The model is told, and may try something else.
    Recoverable,
    /// The task ends.
    Unrecoverable,
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The manifest cannot be used.
    Manifest,
    /// The operator has not configured a setting, or configured one that cannot be used.
    Setting,
    /// No runtime is there for the backend.
    NoRuntime,
    /// Nobody answers at a host that is fixed: DNS, connection or TLS.
    Unreachable,
    /// Nobody answers at a host that the model chose.
    UnreachableChosen,
    /// The egress policy forbids a host that is fixed.
    EgressDenied,
    /// The egress policy forbids a host that the model chose.
    EgressDeniedChosen,
    /// No token could be had.
    Token,
    /// The command of a backend is not there or may not be run.
    Command,
    /// The task has ended.
    Ended,
    /// The arguments do not fit.
    Arguments,
    /// The server answered with an error.
    HttpStatus,
    /// The connection broke after the request was sent.
    Broken,
    /// No answer in time.
    Timeout,
    /// The answer, or what would be sent, is larger than it may be.
    TooLarge,
    /// The answer is not what was announced.
    Response,
    /// The backend carried the call out, or refused to, and reports an error.
    Tool,
    /// A JSONPath found nothing.
    NoMatch,
    /// A CEL expression failed.
    Cel,
    /// The cluster does not allow it, or the operator does not allow the namespace.
    Forbidden,
    /// A Job ended without success.
    JobFailed,
    /// A Job was deleted while it was waited for.
    JobDeleted,
    /// The image of a Job cannot be had.
    Image,
    /// A Job took longer than it may.
    Deadline,
    /// The call was cancelled.
    Cancelled,
}

/// The error table: every failure, its class, and the word that names it in results.
pub const ERROR_TABLE: &[(Failure, Class, &str)] = &[
    (Failure::Manifest, Class::Unrecoverable, "invalid_manifest"),
    (Failure::Setting, Class::Unrecoverable, "missing_setting"),
    (Failure::NoRuntime, Class::Unrecoverable, "no_runtime"),
    (Failure::Unreachable, Class::Unrecoverable, "unreachable"),
    (
        Failure::UnreachableChosen,
        Class::Recoverable,
        "unreachable",
    ),
    (Failure::EgressDenied, Class::Unrecoverable, "egress_denied"),
    (
        Failure::EgressDeniedChosen,
        Class::Recoverable,
        "egress_denied",
    ),
    (Failure::Token, Class::Unrecoverable, "no_token"),
    (Failure::Command, Class::Unrecoverable, "command_not_found"),
    (Failure::Ended, Class::Unrecoverable, "task_ended"),
    (Failure::Arguments, Class::Recoverable, "bad_arguments"),
    (Failure::HttpStatus, Class::Recoverable, "http_status"),
    (Failure::Broken, Class::Recoverable, "connection_broken"),
    (Failure::Timeout, Class::Recoverable, "timeout"),
    (Failure::TooLarge, Class::Recoverable, "too_large"),
    (Failure::Response, Class::Recoverable, "bad_response"),
    (Failure::Tool, Class::Recoverable, "tool_error"),
    (Failure::NoMatch, Class::Recoverable, "no_match"),
    (Failure::Cel, Class::Recoverable, "cel_error"),
    (Failure::Forbidden, Class::Unrecoverable, "forbidden"),
    (Failure::JobFailed, Class::Recoverable, "job_failed"),
    (Failure::JobDeleted, Class::Recoverable, "job_deleted"),
    (Failure::Image, Class::Recoverable, "image_unavailable"),
    (Failure::Deadline, Class::Recoverable, "deadline_passed"),
    (Failure::Cancelled, Class::Recoverable, "cancelled"),
];

impl Failure {
    fn row(self) -> (Class, &'static str) {
        ERROR_TABLE
            .iter()
            .find(|(failure, _, _)| *failure == self)
            .map_or((Class::Unrecoverable, "unknown"), |(_, class, word)| {
                (*class, *word)
            })
    }

    /// What becomes of the task.
    #[must_use]
    pub fn class(self) -> Class {
        self.row().0
    }

    /// The word that names it.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.row().1
    }
}

/// Why an action came to nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionError {
    /// What went wrong; the table says what becomes of the task.
    pub failure: Failure,
    /// One sentence for people and models, without secrets once a [`ToolTask`](super::ToolTask)
    /// returned it.
    pub message: String,
    /// Whether the request may have had its effect, and was therefore not repeated.
    pub outcome_unknown: bool,
    /// More that is known, such as the status and the body of a response.
    pub detail: Map<String, Value>,
}

impl ActionError {
    /// An error.
    #[must_use]
    pub fn new(failure: Failure, message: impl Into<String>) -> Self {
        Self {
            failure,
            message: message.into(),
            outcome_unknown: false,
            detail: Map::new(),
        }
    }

    /// Whether the model is told, instead of the task ending.
    #[must_use]
    pub fn is_recoverable(&self) -> bool {
        self.failure.class() == Class::Recoverable
    }

    /// What the model is told.
    ///
    /// ```
    /// use proofhouse_tools::runtime::{ActionError, Failure};
    /// let error = ActionError::new(Failure::Timeout, "no answer in time");
    /// assert_eq!(error.to_json()["error"], "timeout");
    /// ```
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut told = json!({"error": self.failure.word(), "message": self.message});
        if self.outcome_unknown {
            told["outcome_unknown"] = true.into();
        }
        for (key, value) in &self.detail {
            told[key] = value.clone();
        }
        told
    }

    pub(crate) fn redacted(mut self, secrets: &Secrets) -> Self {
        self.message = secrets.redact(&self.message);
        if let Value::Object(detail) = secrets.redact_value(Value::Object(self.detail)) {
            self.detail = detail;
        } else {
            self.detail = Map::new();
        }
        self
    }
}

impl fmt::Display for ActionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.failure.word(), self.message)
    }
}

impl std::error::Error for ActionError {}

impl From<ResolveError> for ActionError {
    fn from(error: ResolveError) -> Self {
        let failure = match error {
            ResolveError::MissingSetting(_) => Failure::Setting,
            ResolveError::MissingToken(_) => Failure::Token,
            ResolveError::Missing(_) => Failure::Arguments,
            ResolveError::TooLarge => Failure::TooLarge,
        };
        Self::new(failure, error.to_string())
    }
}

impl From<RenderError> for ActionError {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::Resolve(error) => error.into(),
            RenderError::NotAUrl(_) => Self::new(Failure::Setting, error.to_string()),
            RenderError::Refused { .. } => Self::new(Failure::Arguments, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_one_row() {
        for (failure, class, word) in ERROR_TABLE {
            let rows = ERROR_TABLE
                .iter()
                .filter(|(other, _, _)| other == failure)
                .count();
            assert_eq!(rows, 1, "{failure:?}");
            assert_eq!((failure.class(), failure.word()), (*class, *word));
        }
        assert_ne!(Failure::Cancelled.word(), "unknown");
    }
}
