//! Messages of clients that want no answer: notifications, and answers to what we asked.

use std::sync::Arc;

use proofhouse_detect::read_lenient;
use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::{McpMethod, McpNotification};
use proofhouse_protocol::rpc::{self, InvalidMessage, RpcFailure, RpcMessage};
use serde_json::{Value, json};

use super::call::CallReply;
use super::outlet::MessageOutlet;
use super::peer::McpPeer;
use super::service::McpServerService;
use crate::UnseenKind;

/// What a client sent.
pub(super) enum Received {
    Message(RpcMessage),
    /// A list, of which no more is known.
    Batch(Vec<Value>),
}

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
        if method == McpMethod::ToolsCall.as_str() {
            let tool = params.get("name").and_then(Value::as_str);
            self.context.called(tool.unwrap_or_default(), false);
        }
        self.context
            .warn(&format!("`{method}` was refused: {}", failure.message));
        let outcome = CallReply::Error(failure);
        let content = outcome.content();
        self.context
            .sent(&phase, method, Direction::Response, &content, None);
        outcome
    }

    /// Reads what came: a message or a list of them. What is neither is kept as text.
    pub(super) fn read(&self, bytes: &[u8]) -> Result<Received, InvalidMessage> {
        let refused = |kind, invalid: InvalidMessage| {
            self.context
                .warn(&format!("a client sent what is {invalid}"));
            self.no_message(kind, bytes);
            invalid
        };
        let value = match read_lenient(bytes) {
            Ok((value, None)) => value,
            Ok((value, Some(mended))) => {
                self.context
                    .warn(&format!("a message of a client was {mended}"));
                value
            }
            Err(error) => {
                let kind = UnseenKind::of_text(bytes);
                return Err(refused(kind, InvalidMessage::NotJson(error.to_string())));
            }
        };
        match value {
            Value::Array(messages) => Ok(Received::Batch(messages)),
            value => rpc::of_text(value, bytes)
                .map(Received::Message)
                .map_err(|invalid| refused(UnseenKind::NotAMessage, invalid)),
        }
    }

    /// Something came that is no message; it is kept as text.
    pub(super) fn no_message(&self, kind: UnseenKind, bytes: &[u8]) {
        let length = bytes.len() as u64;
        self.context
            .unparsed(kind, Direction::Request, bytes, length);
    }

    /// A message came where none may come; it is seen all the same.
    pub(super) fn out_of_place(&self, message: RpcMessage, failure: RpcFailure) {
        match message {
            RpcMessage::Request { method, params, .. } => {
                self.refused(&method, &params, failure);
            }
            RpcMessage::Notification { method, params } => {
                self.context
                    .warn(&format!("`{method}` was refused: {}", failure.message));
                self.context
                    .overheard(&method, Direction::Request, &params, None);
            }
            RpcMessage::Response { outcome, .. } => {
                self.context
                    .warn(&format!("an answer was refused: {}", failure.message));
                let (Ok(answer) | Err(answer)) = outcome;
                self.no_message(UnseenKind::NotAMessage, answer.to_string().as_bytes());
            }
        }
    }

    /// An answer to one of our requests came; it is named by the request's method.
    pub(super) fn responded(&self, peer: &McpPeer, id: &Value, outcome: Result<Value, Value>) {
        let Some((method, waiting)) = peer.answered(id) else {
            let warning = format!("an answer to nothing that was asked, with the id {id}");
            self.context.warn(&warning);
            let (Ok(answer) | Err(answer)) = outcome;
            self.no_message(UnseenKind::NotAMessage, answer.to_string().as_bytes());
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
