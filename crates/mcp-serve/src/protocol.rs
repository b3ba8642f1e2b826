//! What a server says in either era: of itself, to requests, and when something fails.

use std::sync::Arc;

use proofhouse_protocol::mcp::{McpEra, McpRevision, meta, result_type};
use proofhouse_protocol::rpc::{self, RpcFailure};
use serde_json::{Value, json};

/// What a request comes to.
pub(super) type RequestResult = Result<Value, RpcFailure>;

/// The answer as it stands on the wire.
pub(super) fn response(id: &Value, outcome: RequestResult) -> Value {
    match outcome {
        Ok(result) => rpc::response(id, result),
        Err(failure) => failure.to_response(id),
    }
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What a model should know to use it, if anything.
    pub instructions: Option<String>,
}

impl ServerInfo {
    fn to_json(&self) -> Value {
        json!({"name": self.name, "version": self.version})
    }

    /// The result of the legacy handshake.
    pub(super) fn initialized(&self, asked: &str) -> Value {
        let mut result = json!({
            "protocolVersion": McpRevision::negotiate(asked).as_str(),
            "capabilities": {"tools": {"listChanged": true}, "logging": {}},
            "serverInfo": self.to_json(),
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = instructions.as_str().into();
        }
        result
    }

    /// The result of `server/discover`.
    pub(super) fn discovered(&self) -> Value {
        let mut result = json!({
            "supportedVersions": supported_versions(),
            "capabilities": {"tools": {"listChanged": true}, "logging": {}},
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = instructions.as_str().into();
        }
        self.cached(result)
    }

    /// A result of the modern era that says how long it may be kept: not at all, because a backend may
    /// change its mind at any time, and for nobody else, because settings may decide what it says.
    pub(super) fn cached(&self, mut result: Value) -> Value {
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
        self.complete(result)
    }

    /// A result of the modern era.
    pub(super) fn complete(&self, mut result: Value) -> Value {
        result[result_type::KEY] = result_type::COMPLETE.into();
        if let Some(object) = result.as_object_mut() {
            let meta = object.entry(meta::KEY).or_insert_with(|| json!({}));
            meta[meta::SERVER_INFO] = self.to_json();
        }
        result
    }
}

/// The versions that are spoken in the modern era.
pub(super) fn supported_versions() -> Value {
    McpRevision::all_stateless()
        .map(McpRevision::as_str)
        .collect()
}

/// A request of a client, whichever way it came.
#[derive(Debug)]
pub(super) struct McpRequest {
    pub(super) era: McpEra,
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
}

impl McpRequest {
    pub(super) fn meta(&self, key: &str) -> Option<&Value> {
        meta::get(&self.params, key)
    }
}

/// Who hears what the operator should know: one line at a time, without secrets.
pub type OperatorNotes = Arc<dyn Fn(&str) + Send + Sync>;
