//! A conversation with a server: requests and their answers, and what the server asks meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;

use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::{
    McpMethod, McpNotification, ToolHeaders, content_of_params, headers_of, wrap_params,
};
use proofhouse_protocol::rpc::{self, RpcMessage};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::actor::ActorContext;
use crate::delivery::DeliveryModifiers;
use crate::phases::PhaseView;

use super::link::{Arrival, Inbound, Link, LinkEnd, MessageOrigin, OutgoingMessage, Receiver};

/// Requests whose late or repeated answers can still be told apart from inventions.
const MAX_REMEMBERED: usize = 64;

/// How long a server may take to take note of a notification.
const SETTLE: std::time::Duration = std::time::Duration::from_secs(2);

/// The conversation with one server.
pub(super) struct McpClientSession {
    pub(super) context: ActorContext,
    pub(super) link: Link,
    /// The version that every request names, where the server is of the modern era. `None` in sessions that begin
    /// with `initialize`, and until it is known what the server speaks.
    pub(super) stateless: Option<String>,
    pub(super) capabilities: Value,
    pub(super) client_info: Value,
    pub(super) tools: ToolHeaders,
    /// Nothing comes from the server any more.
    pub(super) dead: bool,
    /// Something came from the server, if only garbage.
    pub(super) was_heard: bool,
    inbound: Receiver,
    next_id: u64,
    /// Requests that were answered or given up.
    pub(super) remembered: VecDeque<AbandonedRequest>,
    /// `initialize` waits for its answer.
    pub(super) is_initializing: bool,
    /// What a modern server said of itself when nobody waited for it any more: it was slow to start.
    pub(super) late_discovery: Option<Value>,
}

/// A request that nobody waits for any more.
pub(super) struct AbandonedRequest {
    pub(super) id: u64,
    pub(super) method: String,
    pub(super) params: Option<Value>,
}

/// What became of a request.
#[derive(Debug)]
pub(super) enum RequestOutcome {
    /// The server answered: a result, or an error object.
    Answered {
        outcome: Result<Value, Value>,
        raw: Value,
        status: Option<u16>,
    },
    /// It did not.
    Failed {
        reason: String,
        /// Nobody was there at all.
        unreachable: bool,
        status: Option<u16>,
    },
}

/// A request that waits for its answer.
struct UnansweredRequest {
    id: u64,
    /// Whether the server may be told that nobody waits any more.
    cancellable: bool,
    source: MessageOrigin,
    status: Option<u16>,
}

impl McpClientSession {
    pub(super) fn new(
        context: ActorContext,
        link: Link,
        inbound: Receiver,
        capabilities: Value,
        client_info: Value,
    ) -> Self {
        Self {
            context,
            link,
            stateless: None,
            capabilities,
            client_info,
            tools: ToolHeaders::default(),
            dead: false,
            was_heard: false,
            inbound,
            next_id: 0,
            remembered: VecDeque::new(),
            is_initializing: false,
            late_discovery: None,
        }
    }

    /// Says from now on that the client is another, or can do something else. Only modern servers
    /// hear of it; legacy ones are told once, at the beginning.
    pub(super) fn become_client(&mut self, info: Option<&Value>, capabilities: Option<&Value>) {
        if let Some(info) = info {
            self.client_info = self.context.interpolate(info, None, None);
        }
        if let Some(capabilities) = capabilities {
            self.capabilities = self.context.interpolate(capabilities, None, None);
        }
    }

    /// Sends a request whose answer comes when it pleases the server: what it sends until then is
    /// taken in as it comes.
    pub(super) async fn subscribe(
        &mut self,
        phase: &Arc<PhaseView>,
        method: &str,
        params: Option<&Value>,
    ) {
        let (id, message, headers) = self.compose(phase, method, params, None);
        if let Some(source) = self.post(&message, headers, &phase.delivery).await {
            self.settled(source).await;
        }
        self.remember(id, method, params);
    }

    /// Sends a request and waits for its answer, serving the server meanwhile. The request is
    /// recorded, the answer is not.
    pub(super) async fn request(
        &mut self,
        phase: &Arc<PhaseView>,
        method: &str,
        params: Option<&Value>,
        extra: Option<&Value>,
        patience: std::time::Duration,
    ) -> RequestOutcome {
        let failed = |reason: String| RequestOutcome::Failed {
            reason,
            unreachable: false,
            status: None,
        };
        if self.dead {
            return failed("the server is gone".to_owned());
        }
        let (id, message, headers) = self.compose(phase, method, params, extra);
        let outgoing = OutgoingMessage {
            message: &message,
            headers,
            delivery: &phase.delivery,
        };
        let source = match self.link.send(outgoing).await {
            Ok(source) => source,
            Err(error) => return failed(error.to_string()),
        };
        let waiting = UnansweredRequest {
            id,
            cancellable: McpMethod::parse(method).is_none_or(McpMethod::is_cancellable),
            source,
            status: None,
        };
        let outcome = self.wait(waiting, patience).await;
        self.remember(id, method, params);
        outcome
    }

    /// Puts a request together and records it.
    fn compose(
        &mut self,
        phase: &Arc<PhaseView>,
        method: &str,
        params: Option<&Value>,
        extra: Option<&Value>,
    ) -> (u64, Value, Vec<(String, String)>) {
        self.next_id += 1;
        let wire = self.wrapped(params, extra);
        let message = rpc::request(&self.next_id.into(), method, wire.as_ref());
        let raw = Some(message.clone());
        let content = content_of_params(params);
        self.context
            .sent(phase, method, Direction::Request, &content, raw);
        let headers = self.headers(method, wire.as_ref());
        (self.next_id, message, headers)
    }

    fn remember(&mut self, id: u64, method: &str, params: Option<&Value>) {
        self.remembered.push_back(AbandonedRequest {
            id,
            method: method.to_owned(),
            params: params.cloned(),
        });
        if self.remembered.len() > MAX_REMEMBERED {
            self.remembered.pop_front();
        }
    }

    async fn wait(
        &mut self,
        mut waiting: UnansweredRequest,
        patience: std::time::Duration,
    ) -> RequestOutcome {
        let mut deadline = Instant::now() + patience;
        for _ in 0..self.context.limits().max_events {
            let inbound = match tokio::time::timeout_at(deadline, self.inbound.recv()).await {
                Ok(Some(inbound)) => inbound,
                Ok(None) | Err(_) => {
                    self.give_up(&waiting).await;
                    return RequestOutcome::Failed {
                        reason: "no answer in time".to_owned(),
                        unreachable: false,
                        status: waiting.status,
                    };
                }
            };
            self.was_heard |= matches!(inbound.what, Arrival::Message(_) | Arrival::Garbage(_));
            let is_own = inbound.source == waiting.source;
            if is_own {
                // A server that still tells something is still at work.
                deadline = Instant::now() + patience;
            }
            match inbound.what {
                Arrival::Head { status, session } if is_own => {
                    waiting.status = Some(status);
                    if let (Link::Http(link), Some(session)) = (&mut self.link, session)
                        && self.stateless.is_none()
                    {
                        link.session.get_or_insert(session);
                    }
                }
                Arrival::Ended(end) if is_own => {
                    self.dead |= waiting.source == MessageOrigin::Process;
                    return ended(end, waiting.status);
                }
                Arrival::Message(message) => {
                    if let Some(outcome) = answer_of(&message, &waiting, is_own) {
                        return RequestOutcome::Answered {
                            outcome,
                            raw: message,
                            status: waiting.status,
                        };
                    }
                    self.take(message).await;
                }
                what => self.aside(inbound.source, what),
            }
        }
        self.give_up(&waiting).await;
        RequestOutcome::Failed {
            reason: "too many messages, and no answer among them".to_owned(),
            unreachable: false,
            status: waiting.status,
        }
    }

    /// Tells the server that an answer is not waited for any more.
    async fn give_up(&mut self, waiting: &UnansweredRequest) {
        // Over HTTP in the modern era, closing the stream does it.
        let is_told = self.stateless.is_none() || !self.link.is_http();
        if waiting.cancellable && is_told && !self.dead {
            let params = json!({"requestId": waiting.id, "reason": "no answer in time"});
            let phase = self.context.phase();
            let method = McpNotification::Cancelled.as_str();
            self.notify(&phase, method, Some(&params)).await;
        }
    }

    /// Sends a notification.
    pub(super) async fn notify(
        &mut self,
        phase: &Arc<PhaseView>,
        method: &str,
        params: Option<&Value>,
    ) {
        let wire = self.wrapped(params, None);
        let message = rpc::notification(method, wire.as_ref());
        let raw = Some(message.clone());
        let content = content_of_params(params);
        self.context
            .sent(phase, method, Direction::Request, &content, raw);
        let headers = self.headers(method, wire.as_ref());
        if let Some(source) = self.post(&message, headers, &phase.delivery).await
            && self.link.is_http()
        {
            // Each message has a request of its own; what follows must not overtake this one.
            self.settled(source).await;
        }
    }

    /// Waits until the server has begun to answer a request, or to use a stream.
    pub(super) async fn settled(&mut self, source: MessageOrigin) {
        let deadline = Instant::now() + SETTLE;
        for _ in 0..self.context.limits().max_events {
            let Ok(Some(inbound)) = tokio::time::timeout_at(deadline, self.inbound.recv()).await
            else {
                return;
            };
            let is_begun = inbound.source == source
                && matches!(inbound.what, Arrival::Head { .. } | Arrival::Ended(_));
            self.serve(inbound).await;
            if is_begun {
                return;
            }
        }
    }

    /// What comes from the server next. May be dropped and called again.
    pub(super) async fn receive(&mut self) -> Option<Inbound> {
        self.inbound.recv().await
    }

    pub(super) async fn post(
        &mut self,
        message: &Value,
        headers: Vec<(String, String)>,
        delivery: &DeliveryModifiers,
    ) -> Option<MessageOrigin> {
        let outgoing = OutgoingMessage {
            message,
            headers,
            delivery,
        };
        match self.link.send(outgoing).await {
            Ok(source) => Some(source),
            Err(error) => {
                self.context
                    .warn(&format!("a message cannot be sent: {error}"));
                None
            }
        }
    }

    fn wrapped(&self, params: Option<&Value>, extra: Option<&Value>) -> Option<Value> {
        let Some(version) = &self.stateless else {
            return params.cloned();
        };
        let mut wire = wrap_params(params, version, &self.capabilities, &self.client_info);
        if let (Value::Object(wire), Some(Value::Object(extra))) = (&mut wire, extra) {
            wire.extend(extra.clone());
        }
        Some(wire)
    }

    fn headers(&self, method: &str, params: Option<&Value>) -> Vec<(String, String)> {
        match &self.stateless {
            Some(version) if self.link.is_http() => {
                headers_of(method, params.unwrap_or(&Value::Null), version, &self.tools)
            }
            _ => Vec::new(),
        }
    }
}

/// The answer in a message, if it is one to the request that waits. An error without an id, in
/// the answer to its very POST, is one too.
fn answer_of(
    message: &Value,
    waiting: &UnansweredRequest,
    is_own: bool,
) -> Option<Result<Value, Value>> {
    match rpc::from_value(message.clone()) {
        Ok(RpcMessage::Response { id, outcome }) => {
            let is_refusal = waiting.status.is_some_and(|status| status >= 400);
            let is_nameless = is_own && is_refusal && outcome.is_err() && !id.is_u64();
            (id == waiting.id || is_nameless).then_some(outcome)
        }
        _ => None,
    }
}

fn ended(end: LinkEnd, status: Option<u16>) -> RequestOutcome {
    let reason = match (end.problem, status) {
        (Some(problem), _) => problem,
        (None, Some(status)) => format!("no answer in the response, status {status}"),
        (None, None) => "the server ended".to_owned(),
    };
    RequestOutcome::Failed {
        reason,
        unreachable: end.unreachable,
        status,
    }
}
