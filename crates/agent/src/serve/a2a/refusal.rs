//! The methods of both generations of A2A and the errors they are answered with.

use proofhouse_wire::rpc;
use serde_json::{Value, json};

/// A generation of the protocol. The name of a method tells which one speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// 0.3.
    Legacy,
    /// 1.0.
    Modern,
}

/// What a client can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Send,
    Stream,
    Get,
    Cancel,
    List,
    Subscribe,
    Push,
    ExtendedCard,
}

/// The operation that a method names, and the generation that calls it so.
pub(super) fn operation(method: &str) -> Option<(Operation, Generation)> {
    use Generation::{Legacy, Modern};
    Some(match method {
        "message/send" => (Operation::Send, Legacy),
        "message/stream" => (Operation::Stream, Legacy),
        "tasks/get" => (Operation::Get, Legacy),
        "tasks/cancel" => (Operation::Cancel, Legacy),
        "tasks/resubscribe" => (Operation::Subscribe, Legacy),
        "agent/getAuthenticatedExtendedCard" => (Operation::ExtendedCard, Legacy),
        "SendMessage" => (Operation::Send, Modern),
        "SendStreamingMessage" => (Operation::Stream, Modern),
        "GetTask" => (Operation::Get, Modern),
        "CancelTask" => (Operation::Cancel, Modern),
        "ListTasks" => (Operation::List, Modern),
        "SubscribeToTask" => (Operation::Subscribe, Modern),
        "GetExtendedAgentCard" => (Operation::ExtendedCard, Modern),
        "CreateTaskPushNotificationConfig"
        | "GetTaskPushNotificationConfig"
        | "ListTaskPushNotificationConfigs"
        | "DeleteTaskPushNotificationConfig" => (Operation::Push, Modern),
        "tasks/pushNotificationConfig/set"
        | "tasks/pushNotificationConfig/get"
        | "tasks/pushNotificationConfig/list"
        | "tasks/pushNotificationConfig/delete" => (Operation::Push, Legacy),
        _ => return None,
    })
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
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

impl Problem {
    fn parts(&self) -> (i64, &str, &'static str) {
        match self {
            Self::NotFound => (-32001, "Task not found", "TASK_NOT_FOUND"),
            Self::NotCancelable => (-32002, "Task cannot be canceled", "TASK_NOT_CANCELABLE"),
            Self::NoPush => (
                -32003,
                "Push Notification is not supported",
                "PUSH_NOTIFICATION_NOT_SUPPORTED",
            ),
            Self::Unsupported(what) => (-32004, what, "UNSUPPORTED_OPERATION"),
            Self::ContentType => (
                -32005,
                "Incompatible content types",
                "CONTENT_TYPE_NOT_SUPPORTED",
            ),
            Self::NoExtendedCard => (
                -32007,
                "Authenticated Extended Card is not configured",
                "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            ),
            Self::Params(what) => (rpc::INVALID_PARAMS, what, "INVALID_PARAMS"),
            Self::Method => (
                rpc::METHOD_NOT_FOUND,
                "Method not found",
                "METHOD_NOT_FOUND",
            ),
            Self::Busy(what) => (rpc::INTERNAL_ERROR, what, "INTERNAL_ERROR"),
        }
    }

    /// The response to a request of a generation. 1.0 says more in `data`.
    pub(super) fn response(&self, id: &Value, generation: Generation) -> Value {
        let (code, message, reason) = self.parts();
        let data = match generation {
            Generation::Legacy => None,
            Generation::Modern => Some(json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason,
                "domain": "a2a-protocol.org",
            }])),
        };
        rpc::error(id, code, message, data)
    }
}
