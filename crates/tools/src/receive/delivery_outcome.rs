//! What becomes of an event for one task, in words that can be recorded.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What became of an event for one task or trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum DeliveryOutcome {
    /// It goes on to the task.
    Routed,
    /// It does not, and why.
    Discarded {
        /// The reason.
        reason: Discard,
    },
}

/// Why an event does not reach a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Discard {
    /// The filter does not hold.
    Filter,
    /// The filter names a parameter that no call of the task had a value for yet.
    EmptyParameter {
        /// The parameter.
        name: String,
    },
    /// The filter, or an assertion, could not be evaluated.
    Failed {
        /// What went wrong.
        message: String,
    },
    /// The filter, or an assertion, took more than it may.
    Budget {
        /// Which limit was reached.
        message: String,
    },
    /// The capability's `include` leaves the event out.
    NotIncluded,
    /// The delivery was not signed in a way that this event accepts.
    Signature {
        /// What is wrong with the signature.
        reason: super::webhook::Refusal,
    },
    /// The delivery is unsigned, and only signed ones are accepted.
    Unsigned,
    /// An assertion of a trigger does not hold.
    Assertion {
        /// Which, counted from 0.
        number: usize,
        /// What the trigger says about it.
        message: Option<String>,
    },
    /// The trigger or the schedule is not enabled.
    Disabled,
    /// The task listens no longer.
    TimedOut,
}

impl Discard {
    /// The word that names the reason in records and metrics.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::EmptyParameter { .. } => "empty_parameter",
            Self::Failed { .. } => "failed",
            Self::Budget { .. } => "budget",
            Self::NotIncluded => "not_included",
            Self::Signature { .. } => "signature",
            Self::Unsigned => "unsigned",
            Self::Assertion { .. } => "assertion",
            Self::Disabled => "disabled",
            Self::TimedOut => "timed_out",
        }
    }
}

impl fmt::Display for Discard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter => f.write_str("the filter does not hold"),
            Self::EmptyParameter { name } => write!(
                f,
                "the filter names `parameters.{name}`, and no call of the task had a value for it"
            ),
            Self::Failed { message } => write!(f, "the expression failed: {message}"),
            Self::Budget { message } => write!(f, "the expression took too much: {message}"),
            Self::NotIncluded => f.write_str("`include` of the capability leaves the event out"),
            Self::Signature { reason } => write!(f, "the signature is refused: {reason}"),
            Self::Unsigned => f.write_str("the delivery is not signed"),
            Self::Assertion { number, message } => {
                write!(f, "assertion {} does not hold", number + 1)?;
                match message {
                    Some(message) => write!(f, ": {message}"),
                    None => Ok(()),
                }
            }
            Self::Disabled => f.write_str("it is not enabled"),
            Self::TimedOut => f.write_str("the task was idle for too long and listens no longer"),
        }
    }
}
