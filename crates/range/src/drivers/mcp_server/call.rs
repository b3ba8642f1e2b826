//! A request on its way, and what comes of it.

use std::sync::Arc;

use proofhouse_protocol::mcp::{McpEra, McpLogLevel, meta, wants_notification};
use proofhouse_protocol::rpc::{self, RpcFailure};
use proofhouse_wire::server::BodyPermit;
use serde_json::{Value, json};

use super::outlet::MessageOutlet;
use super::peer::McpPeer;

/// Shorter ids are not kept: no secret fits in.
const MIN_KEPT_ID: usize = 8;

/// A request.
#[derive(Debug)]
pub(super) struct ServerCall {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) era: McpEra,
    /// Who sent it; in the modern era only where there is one peer, on stdio.
    pub(super) peer: Option<Arc<McpPeer>>,
    /// What the client can do.
    pub(super) capabilities: Arc<Value>,
    /// How urgent a log message must be; `None` for those who want none.
    pub(super) level: Option<McpLogLevel>,
    /// Tells apart clients of the modern era: where they come from.
    pub(super) origin: String,
    /// The room that it takes while it is answered, which may be long after its client is gone.
    pub(super) _permit: BodyPermit,
}

impl ServerCall {
    pub(super) fn meta(&self, key: &str) -> Option<&Value> {
        meta::get(&self.params, key)
    }

    /// A text among the parameters.
    pub(super) fn text(&self, key: &str) -> &str {
        self.params
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// What the trace keeps of the request around its parameters: an id that has room for more than a number, because a
    /// client can put there what it likes.
    pub(super) fn envelope(&self) -> Option<Value> {
        let id = self.id.as_str().filter(|id| id.len() >= MIN_KEPT_ID)?;
        Some(json!({"jsonrpc": "2.0", "id": id, "method": self.method}))
    }

    pub(super) fn has_capability(&self, name: &str) -> bool {
        self.capabilities
            .get(name)
            .is_some_and(|capability| !capability.is_null())
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CallReply {
    Result(Value),
    Error(RpcFailure),
}

/// The error for a method that the server does not have.
pub(super) fn unknown_method(method: &str, era: McpEra) -> RpcFailure {
    let failure = RpcFailure::new(
        rpc::METHOD_NOT_FOUND,
        format!("there is no method {method}"),
    );
    match era {
        McpEra::Legacy => failure,
        McpEra::Modern => failure.with_status(404),
    }
}

impl CallReply {
    /// What the trace has of it.
    pub(super) fn content(&self) -> Value {
        match self {
            Self::Result(result) => result.clone(),
            Self::Error(failure) => failure.to_object(),
        }
    }

    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Result(_) => 200,
            Self::Error(failure) => failure.status,
        }
    }

    /// The response as text.
    pub(super) fn to_text(&self, id: &Value) -> String {
        let id = rpc::id_text(id);
        match self {
            Self::Result(result) => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
            }
            Self::Error(failure) => {
                let error = failure.to_object();
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
            }
        }
    }
}

/// Something that listens to changes, in the modern era.
#[derive(Debug, Clone)]
pub(super) struct ChangeListener {
    /// The id of the request that opened it.
    pub(super) subscription: Value,
    /// What it wants to hear.
    pub(super) filter: Value,
    pub(super) outlet: MessageOutlet,
}

impl ChangeListener {
    /// Whether it wants to hear this notification.
    pub(super) fn wants(&self, method: &str, params: &Value) -> bool {
        wants_notification(&self.filter, method, params)
    }
}
