//! Errors of actions: one table says which of them end the task and which are told to the model.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use proofhouse_manifest::interpolate::{RenderError, ResolveError, Secrets};
use proofhouse_source::plain_error;
use proofhouse_wire::client::ClientError;

/// What becomes of a task after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The model is told, and may try something else.
    Recoverable,
    /// The task ends.
    Unrecoverable,
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActionFailure {
    /// The manifest cannot be used.
    Manifest,
    /// The operator has not configured a setting, or configured one that cannot be used.
    Setting,
    /// No runtime is there for the backend.
    NoRuntime,
    /// Nobody answers at a host that is fixed: DNS, connection or TLS.
    Unreachable,
    /// Nobody answers at a host that is not fixed, such as one that a session named.
    UnreachableChosen,
    /// The egress policy forbids a host that is fixed.
    EgressDenied,
    /// The egress policy forbids a host that is not fixed.
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
pub const ERROR_TABLE: &[(ActionFailure, ErrorClass, &str)] = &[
    (
        ActionFailure::Manifest,
        ErrorClass::Unrecoverable,
        "invalid_manifest",
    ),
    (
        ActionFailure::Setting,
        ErrorClass::Unrecoverable,
        "missing_setting",
    ),
    (
        ActionFailure::NoRuntime,
        ErrorClass::Unrecoverable,
        "no_runtime",
    ),
    (
        ActionFailure::Unreachable,
        ErrorClass::Unrecoverable,
        "unreachable",
    ),
    (
        ActionFailure::UnreachableChosen,
        ErrorClass::Recoverable,
        "unreachable",
    ),
    (
        ActionFailure::EgressDenied,
        ErrorClass::Unrecoverable,
        "egress_denied",
    ),
    (
        ActionFailure::EgressDeniedChosen,
        ErrorClass::Recoverable,
        "egress_denied",
    ),
    (ActionFailure::Token, ErrorClass::Unrecoverable, "no_token"),
    (
        ActionFailure::Command,
        ErrorClass::Unrecoverable,
        "command_not_found",
    ),
    (
        ActionFailure::Ended,
        ErrorClass::Unrecoverable,
        "task_ended",
    ),
    (
        ActionFailure::Arguments,
        ErrorClass::Recoverable,
        "bad_arguments",
    ),
    (
        ActionFailure::HttpStatus,
        ErrorClass::Recoverable,
        "http_status",
    ),
    (
        ActionFailure::Broken,
        ErrorClass::Recoverable,
        "connection_broken",
    ),
    (ActionFailure::Timeout, ErrorClass::Recoverable, "timeout"),
    (
        ActionFailure::TooLarge,
        ErrorClass::Recoverable,
        "too_large",
    ),
    (
        ActionFailure::Response,
        ErrorClass::Recoverable,
        "bad_response",
    ),
    (ActionFailure::Tool, ErrorClass::Recoverable, "tool_error"),
    (ActionFailure::NoMatch, ErrorClass::Recoverable, "no_match"),
    (ActionFailure::Cel, ErrorClass::Recoverable, "cel_error"),
    (
        ActionFailure::Forbidden,
        ErrorClass::Unrecoverable,
        "forbidden",
    ),
    (
        ActionFailure::JobFailed,
        ErrorClass::Recoverable,
        "job_failed",
    ),
    (
        ActionFailure::JobDeleted,
        ErrorClass::Recoverable,
        "job_deleted",
    ),
    (
        ActionFailure::Image,
        ErrorClass::Recoverable,
        "image_unavailable",
    ),
    (
        ActionFailure::Deadline,
        ErrorClass::Recoverable,
        "deadline_passed",
    ),
    (
        ActionFailure::Cancelled,
        ErrorClass::Recoverable,
        "cancelled",
    ),
];

impl ActionFailure {
    fn row(self) -> (ErrorClass, &'static str) {
        ERROR_TABLE
            .iter()
            .find(|(failure, _, _)| *failure == self)
            .map_or(
                (ErrorClass::Unrecoverable, "unknown"),
                |(_, class, word)| (*class, *word),
            )
    }

    /// What becomes of the task.
    #[must_use]
    pub fn class(self) -> ErrorClass {
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
    pub failure: ActionFailure,
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
    pub fn new(failure: ActionFailure, message: impl Into<String>) -> Self {
        Self {
            failure,
            message: message.into(),
            outcome_unknown: false,
            detail: Map::new(),
        }
    }

    /// The error of a host that nobody answers at, after so long a wait.
    pub(crate) fn unreachable(host: &str, reason: &str, waited: Duration) -> Self {
        let mut message = format!("cannot connect to {host}: {}", plain_error(reason));
        if !waited.is_zero() {
            message.push_str(&format!("; it was waited for {} s", waited.as_secs_f32()));
        }
        Self::new(ActionFailure::Unreachable, message)
    }

    /// What an error of the connection to a host means for the task. The host alone is named: the rest of a URL may hold
    /// secrets. A request that may be sent twice has no outcome that could be unknown.
    pub(crate) fn of_client(
        error: &ClientError,
        host: &str,
        outage: Duration,
        may_be_repeated: bool,
    ) -> Self {
        let (failure, message) = match error {
            ClientError::Denied(reason) => {
                (ActionFailure::EgressDenied, format!("{host}: {reason}"))
            }
            ClientError::Connect { reason, .. } => return Self::unreachable(host, reason, outage),
            ClientError::Url { reason, .. } => {
                (ActionFailure::Setting, format!("not a URL: {reason}"))
            }
            ClientError::Setup(reason) => (ActionFailure::Manifest, reason.clone()),
            ClientError::TooSlow => (
                ActionFailure::Timeout,
                format!("{host} gave no whole answer in time"),
            ),
            ClientError::TooLarge { .. }
            | ClientError::EventTooLarge(_)
            | ClientError::TooManyEvents { .. } => (
                ActionFailure::TooLarge,
                format!("the answer of {host} is larger than it may be: {error}"),
            ),
            ClientError::Broken(reason) => (
                ActionFailure::Broken,
                format!("the connection to {host} broke: {reason}"),
            ),
        };
        let mut failed = Self::new(failure, message);
        let may_have_come = matches!(
            failure,
            ActionFailure::Timeout | ActionFailure::Broken | ActionFailure::TooLarge
        );
        failed.outcome_unknown = may_have_come && !may_be_repeated;
        failed
    }

    /// The same of a host that is not fixed: the model may find another one.
    pub(crate) fn of_chosen_host(mut self) -> Self {
        self.failure = match self.failure {
            ActionFailure::Unreachable => ActionFailure::UnreachableChosen,
            ActionFailure::EgressDenied => ActionFailure::EgressDeniedChosen,
            other => other,
        };
        self
    }

    /// Whether the model is told, instead of the task ending.
    #[must_use]
    pub fn is_recoverable(&self) -> bool {
        self.failure.class() == ErrorClass::Recoverable
    }

    /// Whether every other call of the tool would come to the same: what is wrong is its configuration, not a host that
    /// does not answer just now or that only this call went to.
    #[must_use]
    pub fn is_final(&self) -> bool {
        let passes = matches!(
            self.failure,
            ActionFailure::Unreachable | ActionFailure::EgressDenied | ActionFailure::Token
        );
        !(self.is_recoverable() || passes)
    }

    /// Whether the same request would come to the same at any time, as long as nobody changes what is configured. A service
    /// that does not answer, is busy or gives no token may do so later.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        match self.failure {
            ActionFailure::Manifest
            | ActionFailure::Setting
            | ActionFailure::NoRuntime
            | ActionFailure::EgressDenied
            | ActionFailure::EgressDeniedChosen => true,
            ActionFailure::HttpStatus => {
                let status = self.detail.get("status").and_then(Value::as_u64);
                status.is_some_and(|status| {
                    (400..500).contains(&status) && !matches!(status, 401 | 408 | 429)
                })
            }
            ActionFailure::Unreachable
            | ActionFailure::UnreachableChosen
            | ActionFailure::Token
            | ActionFailure::Command
            | ActionFailure::Ended
            | ActionFailure::Arguments
            | ActionFailure::Broken
            | ActionFailure::Timeout
            | ActionFailure::TooLarge
            | ActionFailure::Response
            | ActionFailure::Tool
            | ActionFailure::NoMatch
            | ActionFailure::Cel
            | ActionFailure::Forbidden
            | ActionFailure::JobFailed
            | ActionFailure::JobDeleted
            | ActionFailure::Image
            | ActionFailure::Deadline
            | ActionFailure::Cancelled => false,
        }
    }

    /// What the model is told.
    ///
    /// ```
    /// use proofhouse_tools::runtime::{ActionError, ActionFailure};
    /// let error = ActionError::new(ActionFailure::Timeout, "no answer in time");
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
            ResolveError::MissingSetting(_) => ActionFailure::Setting,
            ResolveError::MissingToken(_) | ResolveError::TokenHost { .. } => ActionFailure::Token,
            ResolveError::Missing(_) => ActionFailure::Arguments,
            ResolveError::TooLarge => ActionFailure::TooLarge,
        };
        Self::new(failure, error.to_string())
    }
}

impl From<RenderError> for ActionError {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::Resolve(error) => error.into(),
            RenderError::NotAUrl(_) => Self::new(ActionFailure::Setting, error.to_string()),
            RenderError::Refused { .. } => Self::new(ActionFailure::Arguments, error.to_string()),
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
        assert_ne!(ActionFailure::Cancelled.word(), "unknown");
    }
}
