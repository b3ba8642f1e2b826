//! The errors of A2A, by code; 1.0 says more in `data`.

use proofhouse_wire::rpc;
use serde_json::{Value, json};

use super::methods::Generation;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) enum Problem {
    TaskNotFound,
    NotCancelable,
    NoPush,
    NoExtendedCard,
    InvalidParams,
    MethodNotFound,
}

impl Problem {
    fn parts(self) -> (i64, &'static str, &'static str) {
        match self {
            Self::TaskNotFound => (-32001, "Task not found", "TASK_NOT_FOUND"),
            Self::NotCancelable => (-32002, "Task cannot be canceled", "TASK_NOT_CANCELABLE"),
            Self::NoPush => (
                -32003,
                "Push Notification is not supported",
                "PUSH_NOTIFICATION_NOT_SUPPORTED",
            ),
            Self::NoExtendedCard => (
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
        }
    }

    /// The error object, as the caller's generation writes it.
    pub(in crate::drivers) fn error(self, generation: Generation) -> Value {
        let (code, message, reason) = self.parts();
        match generation {
            Generation::Legacy => json!({"code": code, "message": message}),
            Generation::Modern => json!({"code": code, "message": message, "data": [{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason,
                "domain": "a2a-protocol.org",
            }]}),
        }
    }
}
