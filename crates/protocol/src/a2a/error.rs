//! The errors of A2A, by code; 1.0 says more in `data`.

use serde_json::{Value, json};

use super::A2aVersion;
use crate::rpc;

/// Why a request of A2A is refused.
///
/// ```
/// use proofhouse_protocol::a2a::{A2aError, A2aVersion};
/// use serde_json::json;
///
/// let error = A2aError::TaskNotFound.to_object(A2aVersion::V0_3, None);
/// assert_eq!(error, json!({"code": -32001, "message": "Task not found"}));
/// let error = A2aError::UnsupportedOperation.to_object(A2aVersion::V1_0, Some("the task is over"));
/// assert_eq!(error["message"], "the task is over");
/// assert_eq!(error["data"][0]["reason"], "UNSUPPORTED_OPERATION");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum A2aError {
    /// There is no such task.
    TaskNotFound,
    /// The task is over, or cannot be cancelled.
    TaskNotCancelable,
    /// There are no push notifications.
    PushNotificationNotSupported,
    /// The operation is not supported, or not now.
    UnsupportedOperation,
    /// A content type is not one that the agent speaks.
    ContentTypeNotSupported,
    /// The agent said something that is no answer.
    InvalidAgentResponse,
    /// There is no card for those who have authenticated.
    ExtendedCardNotConfigured,
    /// The parameters are wrong.
    InvalidParams,
    /// There is no such method.
    MethodNotFound,
    /// Something went wrong inside.
    Internal,
}

impl A2aError {
    const fn parts(self) -> (i64, &'static str, &'static str) {
        match self {
            Self::TaskNotFound => (-32001, "Task not found", "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => (-32002, "Task cannot be canceled", "TASK_NOT_CANCELABLE"),
            Self::PushNotificationNotSupported => (
                -32003,
                "Push Notification is not supported",
                "PUSH_NOTIFICATION_NOT_SUPPORTED",
            ),
            Self::UnsupportedOperation => (
                -32004,
                "This operation is not supported",
                "UNSUPPORTED_OPERATION",
            ),
            Self::ContentTypeNotSupported => (
                -32005,
                "Incompatible content types",
                "CONTENT_TYPE_NOT_SUPPORTED",
            ),
            Self::InvalidAgentResponse => {
                (-32006, "Invalid agent response", "INVALID_AGENT_RESPONSE")
            }
            Self::ExtendedCardNotConfigured => (
                -32007,
                "Authenticated Extended Card is not configured",
                "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            ),
            Self::InvalidParams => (rpc::INVALID_PARAMS, "Invalid parameters", "INVALID_PARAMS"),
            Self::MethodNotFound => (
                rpc::METHOD_NOT_FOUND,
                "Method not found",
                "METHOD_NOT_FOUND",
            ),
            Self::Internal => (rpc::INTERNAL_ERROR, "Internal error", "INTERNAL_ERROR"),
        }
    }

    /// Its code.
    #[must_use]
    pub const fn code(self) -> i64 {
        self.parts().0
    }

    /// Its usual message.
    #[must_use]
    pub const fn message(self) -> &'static str {
        self.parts().1
    }

    /// Its name in the `data` of 1.0.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        self.parts().2
    }

    /// What a generation says in `data`: 0.3 nothing, 1.0 the reason.
    #[must_use]
    pub fn data(self, version: A2aVersion) -> Option<Value> {
        match version {
            A2aVersion::V0_3 => None,
            A2aVersion::V1_0 => Some(json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": self.reason(),
                "domain": "a2a-protocol.org",
            }])),
        }
    }

    /// The error object as a generation writes it, with the usual message or another.
    #[must_use]
    pub fn to_object(self, version: A2aVersion, message: Option<&str>) -> Value {
        let message = message.unwrap_or(self.message());
        rpc::error_object(self.code(), message, self.data(version))
    }
}
