//! Messages of clients that want no answer: notifications, and answers to what we asked.

use std::sync::Arc;

use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::McpNotification;
use proofhouse_protocol::rpc::RpcFailure;
use serde_json::{Value, json};

use super::call::CallReply;
use super::outlet::MessageOutlet;
use super::peer::McpPeer;
use super::service::McpServerService;

impl McpServerService {
    /// A notification came.
    pub(super) async fn notified(&self, peer: Option<&Arc<McpPeer>>, method: &str, params: &Value) {
        let turn = self
            .context
            .received(method, Direction::Request, params, None);
        if let Some(peer) = peer {
            match McpNotification::parse(method) {
                Some(McpNotification::Initialized) => self.ready_now(peer).await,
                Some(McpNotification::Cancelled) => {
                    let id = params.get("requestId").unwrap_or(&Value::Null);
                    // Too late is not an error: the answer may be on its way.
                    peer.cancel(id);
                    if let Some(lines) = &peer.lines {
                        self.stop_listening(id, &MessageOutlet::Lines(Arc::clone(lines)));
                    }
                }
                _ => {}
            }
        }
        drop(turn);
    }

    /// The client is through with the handshake, whether it said so or just went on.
    pub(super) async fn ready_now(&self, peer: &McpPeer) {
        if peer.initialize() {
            self.greet().await;
        }
    }

    /// A request is refused before it counts as one; it is a message all the same, and recorded.
    pub(super) fn refused(&self, method: &str, params: &Value, failure: RpcFailure) -> CallReply {
        let phase = self
            .context
            .overheard(method, Direction::Request, params, None);
        self.context
            .warn(&format!("`{method}` was refused: {}", failure.message));
        let outcome = CallReply::Error(failure);
        let content = outcome.content();
        self.context
            .sent(&phase, method, Direction::Response, &content, None);
        outcome
    }

    /// An answer to one of our requests came; it is named by the request's method.
    pub(super) fn responded(&self, peer: &McpPeer, id: &Value, outcome: Result<Value, Value>) {
        let Some((method, waiting)) = peer.answered(id) else {
            let warning = format!("an answer to nothing that was asked, with the id {id}");
            self.context.warn(&warning);
            return;
        };
        let (content, answer) = match outcome {
            Ok(result) => (result.clone(), result),
            Err(error) => (error.clone(), json!({"error": error})),
        };
        let turn = self
            .context
            .received(&method, Direction::Response, &content, None);
        if let Some(waiting) = waiting {
            // Whoever asked may have given up.
            let _ = waiting.send(answer);
        }
        drop(turn);
    }
}
