//! Why requests are refused, and how each generation is told.

use proofhouse_protocol::a2a::{A2aError, A2aVersion};
use proofhouse_protocol::rpc;
use serde_json::Value;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum A2aRefusal {
    NotFound,
    NotCancelable,
    NoPush,
    Unsupported(&'static str),
    ContentType,
    NoExtendedCard,
    Params(String),
    Method,
    Busy(String),
}

impl A2aRefusal {
    /// The error of the protocol, and what is said instead of its usual message.
    fn error(&self) -> (A2aError, Option<&str>) {
        match self {
            Self::NotFound => (A2aError::TaskNotFound, None),
            Self::NotCancelable => (A2aError::TaskNotCancelable, None),
            Self::NoPush => (A2aError::PushNotificationNotSupported, None),
            Self::Unsupported(what) => (A2aError::UnsupportedOperation, Some(what)),
            Self::ContentType => (A2aError::ContentTypeNotSupported, None),
            Self::NoExtendedCard => (A2aError::ExtendedCardNotConfigured, None),
            Self::Params(what) => (A2aError::InvalidParams, Some(what)),
            Self::Method => (A2aError::MethodNotFound, None),
            Self::Busy(what) => (A2aError::Internal, Some(what)),
        }
    }

    /// The response to a request of a generation. 1.0 says more in `data`.
    pub(super) fn response(&self, id: &Value, generation: A2aVersion) -> Value {
        let (error, message) = self.error();
        let message = message.unwrap_or(error.message());
        rpc::error(id, error.code(), message, error.data(generation))
    }
}
