//! Requests of the client that wait for an answer.

use std::collections::HashMap;

use proofhouse_protocol::mcp::McpMethod;
use proofhouse_protocol::rpc;
use serde_json::Value;

/// How many may wait.
const MAX_OPEN: usize = 10_000;

/// A request.
#[derive(Debug, Clone)]
pub(super) struct PendingCall {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
    /// Whether it is of a stateless revision.
    pub(super) is_modern: bool,
}

impl PendingCall {
    /// The tool, prompt or resource that it uses; the method where there is none.
    pub(super) fn item(&self) -> &str {
        let key = McpMethod::parse(&self.method).and_then(McpMethod::item_param);
        let item = key.and_then(|key| self.params.get(key)?.as_str());
        item.unwrap_or(&self.method)
    }

    /// What the policy calls it: the tool, or else the method.
    pub(super) fn labelled(&self) -> &str {
        if self.method == McpMethod::ToolsCall.as_str() {
            self.item()
        } else {
            &self.method
        }
    }
}

/// The requests by id.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(HashMap<String, PendingCall>);

/// What an id is looked up by; both ends may write long numbers in other words.
pub(super) fn key(id: &Value) -> String {
    rpc::plain_id(id).to_string()
}

impl OpenCalls {
    /// Whether a request of this id may be sent.
    pub(super) fn check(&self, id: &Value) -> Result<(), &'static str> {
        if self.0.contains_key(&key(id)) {
            return Err("another request with this id waits for its answer");
        }
        if self.0.len() >= MAX_OPEN {
            return Err("too many requests wait for an answer");
        }
        Ok(())
    }

    pub(super) fn add(&mut self, call: PendingCall) {
        self.0.insert(key(&call.id), call);
    }

    pub(super) fn take(&mut self, id: &Value) -> Option<PendingCall> {
        self.0.remove(&key(id))
    }

    pub(super) fn take_all(&mut self) -> Vec<PendingCall> {
        let mut all: Vec<(String, PendingCall)> = self.0.drain().collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.into_iter().map(|(_, call)| call).collect()
    }
}
