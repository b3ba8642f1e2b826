//! The other side of the conversation: what the server sends without being asked.

use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::{McpMethod, content_of_params};
use proofhouse_protocol::rpc::{self, RpcMessage};
use serde_json::Value;

use super::answers;
use super::era::{enriched, supported};
use super::link::{Arrival, Inbound, LinkEnd, MessageOrigin};
use super::session::{AbandonedRequest, McpClientSession};
use crate::facts::UnseenKind;

impl McpClientSession {
    /// Takes in what came while nothing was waited for.
    pub(super) async fn serve(&mut self, inbound: Inbound) {
        match inbound.what {
            Arrival::Message(message) => self.take(message).await,
            what => self.aside(inbound.source, what),
        }
    }

    /// Something that is no message, and not about the request that waits.
    pub(super) fn aside(&mut self, source: MessageOrigin, what: Arrival) {
        match what {
            Arrival::Garbage(garbage) => {
                self.context
                    .warn(&format!("the server sent garbage: {}", garbage.told));
                let direction = Direction::Response;
                self.context
                    .unparsed(garbage.kind, direction, &garbage.bytes, garbage.length);
            }
            Arrival::Head { status, .. } if status >= 400 && source != MessageOrigin::Stream => {
                let warning = format!("the server refused a message: status {status}");
                self.context.warn(&warning);
            }
            Arrival::Ended(_) if source == MessageOrigin::Process => self.dead = true,
            Arrival::Ended(LinkEnd {
                problem: Some(problem),
                ..
            }) => self.context.warn(&format!("a stream broke off: {problem}")),
            Arrival::Head { .. } | Arrival::Ended(_) | Arrival::Message(_) => {}
        }
    }

    /// A message of the server that answers nothing that waits.
    pub(super) async fn take(&mut self, message: Value) {
        let raw = message.clone();
        match rpc::from_value(message) {
            Ok(RpcMessage::Request { id, method, params }) => {
                self.asked(&id, &method, &content_of_params(Some(&params)), raw)
                    .await;
            }
            Ok(RpcMessage::Notification { method, params }) => {
                // What a server says unasked stands on its side of the protocol.
                let (direction, content) = (Direction::Response, content_of_params(Some(&params)));
                let turn = self
                    .context
                    .received(&method, direction, &content, Some(raw));
                drop(turn);
            }
            Ok(RpcMessage::Response { id, outcome }) => self.stray(&id, outcome, raw),
            Err(invalid) => {
                self.context
                    .warn(&format!("the server sent garbage: {invalid}"));
                self.no_message(&raw);
            }
        }
    }

    /// Something came that is no message, or none that can be placed.
    fn no_message(&self, message: &Value) {
        let text = message.to_string();
        let (kind, length) = (UnseenKind::NotAMessage, text.len() as u64);
        self.context
            .unparsed(kind, Direction::Response, text.as_bytes(), length);
    }

    /// The server asks something.
    async fn asked(&mut self, id: &Value, method: &str, params: &Value, raw: Value) {
        let context = self.context.clone();
        let turn = context.received(method, Direction::Request, params, Some(raw));
        if self.stateless.is_some() {
            let warning = format!("`{method}`: servers of this version must not send requests");
            context.warn(&warning);
            return;
        }
        let answer = answers::answer(&context, &turn.phase, method, params).await;
        let answered = answer.is_ok();
        let (message, content) = match answer {
            Ok(result) => (rpc::response(id, result.clone()), result),
            Err((code, text)) => {
                let message = rpc::error(id, code, &text, None);
                let content = message["error"].clone();
                (message, content)
            }
        };
        let sent = Some(message.clone());
        context.sent(&turn.phase, method, Direction::Response, &content, sent);
        let posted = self.post(&message, Vec::new(), &turn.phase.delivery).await;
        if posted.is_some() && answered {
            answers::delivered(&context, &turn.phase, method, params);
        }
    }

    /// An answer that nothing waits for: a repeated one, a late one, or an invention.
    fn stray(&mut self, id: &Value, outcome: Result<Value, Value>, raw: Value) {
        let known = id.as_u64().and_then(|id| {
            let mut remembered = self.remembered.iter();
            remembered.find(|known| known.id == id)
        });
        let Some(AbandonedRequest { method, params, .. }) = known else {
            let id: String = id.to_string().chars().take(100).collect();
            let warning = format!("an answer to a request that was never made, id {id}");
            self.context.warn(&warning);
            self.no_message(&raw);
            return;
        };
        let is_discovery = method == McpMethod::ServerDiscover.as_str();
        let result = outcome.as_ref().ok();
        let result = result.filter(|result| supported(&result["supportedVersions"]).is_some());
        let late = result.cloned();
        let content = enriched(method, params.as_ref(), outcome);
        let direction = Direction::Response;
        self.context
            .overheard(method, direction, &content, Some(raw));
        // A server that starts slowly answers once it has read on; a refusal by an older one is as good as none.
        if is_discovery && self.is_initializing {
            self.late_discovery = late.or(self.late_discovery.take());
            return;
        }
        let warning = format!("`{method}` was answered again, or too late");
        self.context.warn(&warning);
    }
}
