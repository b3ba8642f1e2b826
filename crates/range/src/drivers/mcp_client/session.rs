//! A conversation with a server: requests and their answers, and what the server asks meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;

use proofhouse_oatf::Direction;
use proofhouse_wire::rpc::{self, Message};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::actor::ActorContext;
use crate::delivery::Delivery;
use crate::phases::PhaseView;

use super::answers;
use super::envelope::{self, ToolHeaders};
use super::link::{End, Inbound, Link, Outgoing, Receiver, Source, What};

/// Requests whose late or repeated answers can still be told apart from inventions.
const MAX_REMEMBERED: usize = 64;

/// How long a server may take to take note of a notification.
const SETTLE: std::time::Duration = std::time::Duration::from_secs(2);

/// Which protocol the server speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Era {
    /// Sessions that begin with `initialize`. Until that is done, too.
    Legacy,
    /// Every request for itself, in this version.
    Modern(String),
}

/// The conversation with one server.
pub(super) struct Session {
    pub(super) context: ActorContext,
    pub(super) link: Link,
    pub(super) era: Era,
    pub(super) capabilities: Value,
    pub(super) client_info: Value,
    pub(super) tools: ToolHeaders,
    /// Nothing comes from the server any more.
    pub(super) dead: bool,
    inbound: Receiver,
    next_id: u64,
    /// Requests that were answered or given up.
    remembered: VecDeque<Remembered>,
}

/// A request that nobody waits for any more.
struct Remembered {
    id: u64,
    method: String,
    params: Option<Value>,
}

/// What became of a request.
#[derive(Debug)]
pub(super) enum Outcome {
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
struct Waiting {
    id: u64,
    /// Whether the server may be told that nobody waits any more.
    cancellable: bool,
    source: Source,
    status: Option<u16>,
}

impl Session {
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
            era: Era::Legacy,
            capabilities,
            client_info,
            tools: ToolHeaders::default(),
            dead: false,
            inbound,
            next_id: 0,
            remembered: VecDeque::new(),
        }
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
    ) -> Outcome {
        let failed = |reason: String| Outcome::Failed {
            reason,
            unreachable: false,
            status: None,
        };
        if self.dead {
            return failed("the server is gone".to_owned());
        }
        self.next_id += 1;
        let id = self.next_id;
        let wire = self.wrapped(params, extra);
        let message = rpc::request(&id.into(), method, wire.as_ref());
        let content = params.cloned().unwrap_or(Value::Null);
        let context = self.context.clone();
        context.sent(
            phase,
            method,
            Direction::Request,
            &content,
            Some(message.clone()),
        );
        let headers = self.headers(method, wire.as_ref());
        let outgoing = Outgoing {
            message: &message,
            headers,
            delivery: &phase.delivery,
        };
        let source = match self.link.send(outgoing).await {
            Ok(source) => source,
            Err(reason) => return failed(reason),
        };
        let waiting = Waiting {
            id,
            cancellable: !matches!(method, "initialize" | "server/discover"),
            source,
            status: None,
        };
        let outcome = self.wait(waiting, patience).await;
        self.remembered.push_back(Remembered {
            id,
            method: method.to_owned(),
            params: params.cloned(),
        });
        if self.remembered.len() > MAX_REMEMBERED {
            self.remembered.pop_front();
        }
        outcome
    }

    async fn wait(&mut self, mut waiting: Waiting, patience: std::time::Duration) -> Outcome {
        let mut deadline = Instant::now() + patience;
        for _ in 0..self.context.limits().max_events {
            let inbound = match tokio::time::timeout_at(deadline, self.inbound.recv()).await {
                Ok(Some(inbound)) => inbound,
                Ok(None) | Err(_) => {
                    self.give_up(&waiting).await;
                    return Outcome::Failed {
                        reason: "no answer in time".to_owned(),
                        unreachable: false,
                        status: waiting.status,
                    };
                }
            };
            let is_own = inbound.source == waiting.source;
            if is_own {
                // A server that still tells something is still at work.
                deadline = Instant::now() + patience;
            }
            match inbound.what {
                What::Head { status, session } if is_own => {
                    waiting.status = Some(status);
                    if let (Link::Http(link), Some(session)) = (&mut self.link, session)
                        && self.era == Era::Legacy
                    {
                        link.session.get_or_insert(session);
                    }
                }
                What::Ended(end) if is_own => {
                    self.dead |= waiting.source == Source::Process;
                    return ended(end, waiting.status);
                }
                What::Message(message) => {
                    if let Some(outcome) = answer_of(&message, &waiting, is_own) {
                        return Outcome::Answered {
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
        Outcome::Failed {
            reason: "too many messages, and no answer among them".to_owned(),
            unreachable: false,
            status: waiting.status,
        }
    }

    /// Tells the server that an answer is not waited for any more.
    async fn give_up(&mut self, waiting: &Waiting) {
        // Over HTTP in the modern era, closing the stream does it.
        let is_told = self.era == Era::Legacy || !self.link.is_http();
        if waiting.cancellable && is_told && !self.dead {
            let params = json!({"requestId": waiting.id, "reason": "no answer in time"});
            let phase = self.context.phase();
            self.notify(&phase, "notifications/cancelled", Some(&params))
                .await;
        }
    }

    /// Sends a notification.
    pub(super) async fn notify(
        &mut self,
        phase: &Arc<PhaseView>,
        method: &str,
        params: Option<&Value>,
    ) {
        let wire = match self.era {
            Era::Legacy => params.cloned(),
            Era::Modern(_) => self.wrapped(params, None),
        };
        let message = rpc::notification(method, wire.as_ref());
        let content = params.cloned().unwrap_or(Value::Null);
        let raw = Some(message.clone());
        let context = self.context.clone();
        context.sent(phase, method, Direction::Request, &content, raw);
        let headers = self.headers(method, wire.as_ref());
        if let Some(source) = self.post(&message, headers, &phase.delivery).await
            && self.link.is_http()
        {
            // Each message has a request of its own; what follows must not overtake this one.
            self.settled(source).await;
        }
    }

    /// Waits until the server has begun to answer a request, or to use a stream.
    pub(super) async fn settled(&mut self, source: Source) {
        let deadline = Instant::now() + SETTLE;
        for _ in 0..self.context.limits().max_events {
            let Ok(Some(inbound)) = tokio::time::timeout_at(deadline, self.inbound.recv()).await
            else {
                return;
            };
            let is_begun = inbound.source == source
                && matches!(inbound.what, What::Head { .. } | What::Ended(_));
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

    /// Takes in what came while nothing was waited for.
    pub(super) async fn serve(&mut self, inbound: Inbound) {
        match inbound.what {
            What::Message(message) => self.take(message).await,
            what => self.aside(inbound.source, what),
        }
    }

    /// Something that is no message, and not about the request that waits.
    fn aside(&mut self, source: Source, what: What) {
        match what {
            What::Garbage(garbage) => {
                self.context
                    .warn(&format!("the server sent garbage: {garbage}"));
            }
            What::Head { status, .. } if status >= 400 && source != Source::Stream => {
                let warning = format!("the server refused a message: status {status}");
                self.context.warn(&warning);
            }
            What::Ended(_) if source == Source::Process => self.dead = true,
            What::Ended(End {
                problem: Some(problem),
                ..
            }) => self.context.warn(&format!("a stream broke off: {problem}")),
            What::Head { .. } | What::Ended(_) | What::Message(_) => {}
        }
    }

    /// A message of the server that answers nothing that waits.
    async fn take(&mut self, message: Value) {
        let raw = message.clone();
        match rpc::from_value(message) {
            Ok(Message::Request { id, method, params }) => {
                self.asked(&id, &method, &params, raw).await;
            }
            Ok(Message::Notification { method, params }) => {
                let direction = Direction::Request;
                let turn = self
                    .context
                    .received(&method, direction, &params, Some(raw));
                drop(turn);
            }
            Ok(Message::Response { id, outcome }) => self.stray(&id, outcome, raw),
            Err(invalid) => self
                .context
                .warn(&format!("the server sent garbage: {invalid}")),
        }
    }

    /// The server asks something.
    async fn asked(&mut self, id: &Value, method: &str, params: &Value, raw: Value) {
        let context = self.context.clone();
        let turn = context.received(method, Direction::Request, params, Some(raw));
        if let Era::Modern(_) = self.era {
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
            answers::delivered(&context, method);
        }
    }

    /// An answer that nothing waits for: a repeated one, a late one, or an invention.
    fn stray(&self, id: &Value, outcome: Result<Value, Value>, raw: Value) {
        let known = id.as_u64().and_then(|id| {
            let mut remembered = self.remembered.iter();
            remembered.find(|known| known.id == id)
        });
        let Some(Remembered { method, params, .. }) = known else {
            let id: String = id.to_string().chars().take(100).collect();
            let warning = format!("an answer to a request that was never made, id {id}");
            self.context.warn(&warning);
            return;
        };
        let content = enriched(method, params.as_ref(), outcome);
        let direction = Direction::Response;
        self.context
            .overheard(method, direction, &content, Some(raw));
        let warning = format!("`{method}` was answered again, or too late");
        self.context.warn(&warning);
    }

    async fn post(
        &mut self,
        message: &Value,
        headers: Vec<(String, String)>,
        delivery: &Delivery,
    ) -> Option<Source> {
        let outgoing = Outgoing {
            message,
            headers,
            delivery,
        };
        match self.link.send(outgoing).await {
            Ok(source) => Some(source),
            Err(reason) => {
                self.context
                    .warn(&format!("a message cannot be sent: {reason}"));
                None
            }
        }
    }

    fn wrapped(&self, params: Option<&Value>, extra: Option<&Value>) -> Option<Value> {
        let Era::Modern(version) = &self.era else {
            return params.cloned();
        };
        let mut wire = envelope::wrap(params, version, &self.capabilities, &self.client_info);
        if let (Value::Object(wire), Some(Value::Object(extra))) = (&mut wire, extra) {
            wire.extend(extra.clone());
        }
        Some(wire)
    }

    fn headers(&self, method: &str, params: Option<&Value>) -> Vec<(String, String)> {
        match &self.era {
            Era::Modern(version) if self.link.is_http() => {
                envelope::headers(method, params.unwrap_or(&Value::Null), version, &self.tools)
            }
            _ => Vec::new(),
        }
    }
}

/// The answer in a message, if it is one to the request that waits. An error without an id, in
/// the answer to its very POST, is one too.
fn answer_of(message: &Value, waiting: &Waiting, is_own: bool) -> Option<Result<Value, Value>> {
    match rpc::from_value(message.clone()) {
        Ok(Message::Response { id, outcome }) => {
            let is_refusal = waiting.status.is_some_and(|status| status >= 400);
            let is_nameless = is_own && is_refusal && outcome.is_err() && !id.is_u64();
            (id == waiting.id || is_nameless).then_some(outcome)
        }
        _ => None,
    }
}

/// The content of a response. Those to calls of tools and prompts tell which call it was.
pub(super) fn enriched(
    method: &str,
    params: Option<&Value>,
    outcome: Result<Value, Value>,
) -> Value {
    let mut content = outcome.unwrap_or_else(|error| error);
    if matches!(method, "tools/call" | "prompts/get")
        && let (Value::Object(content), Some(Value::Object(params))) = (&mut content, params)
    {
        for (key, value) in params.iter().filter(|(key, _)| *key != "_meta") {
            content.entry(key).or_insert_with(|| value.clone());
        }
    }
    content
}

fn ended(end: End, status: Option<u16>) -> Outcome {
    let reason = match (end.problem, status) {
        (Some(problem), _) => problem,
        (None, Some(status)) => format!("no answer in the response, status {status}"),
        (None, None) => "the server ended".to_owned(),
    };
    Outcome::Failed {
        reason,
        unreachable: end.unreachable,
        status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn responses_to_calls_tell_which_call_it_was() {
        let params = json!({"name": "x", "content": "hidden", "_meta": {}});
        let result = enriched("tools/call", Some(&params), Ok(json!({"content": []})));
        assert_eq!(result, json!({"content": [], "name": "x"}));
        let error = enriched("prompts/get", Some(&params), Err(json!({"code": 1})));
        assert_eq!(error["name"], "x");
        let list = enriched("tools/list", Some(&params), Ok(json!({"tools": []})));
        assert_eq!(list, json!({"tools": []}));
    }
}
