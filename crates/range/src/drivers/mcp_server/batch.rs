//! Batches: lists of messages in one, which one revision of the protocol has. Their answers are a list, too.

use std::sync::Arc;

use futures_util::future::join_all;
use proofhouse_protocol::mcp::McpMethod;
use proofhouse_protocol::rpc::{self, InvalidMessage, RpcFailure, RpcMessage};
use serde_json::Value;

use super::answer::{AcceptedRequest, RemainingWork};
use super::call::{CallReply, ServerCall, unknown_method};
use super::outlet::MessageOutlet;
use super::peer::McpPeer;
use super::service::McpServerService;
use crate::delivery_note::DeliveryNote;
use crate::{Advance, UnseenKind};

/// A batch that was taken in.
pub(super) struct Batch {
    /// Answers that are there already: to what is no message, or must not be in a batch.
    answered: Vec<String>,
    calls: Vec<(ServerCall, AcceptedRequest)>,
}

impl Batch {
    /// Whether nothing in it wants an answer.
    pub(super) fn is_quiet(&self) -> bool {
        self.answered.is_empty() && self.calls.is_empty()
    }

    /// Whether its answers are there at once and go out as they are.
    pub(super) fn is_ready(&self) -> bool {
        self.calls.iter().all(|(_, begun)| {
            matches!(begun.work, RemainingWork::Ready(_)) && begun.phase.delivery.is_plain()
        })
    }
}

impl McpServerService {
    /// Takes the messages of a batch in, one after the other. `call` makes a call of a request.
    ///
    /// # Errors
    ///
    /// Returns why the batch as a whole is refused.
    pub(super) async fn take_batch(
        &self,
        peer: &Arc<McpPeer>,
        messages: Vec<Value>,
        call: impl Fn(Value, String, Value) -> ServerCall,
    ) -> Result<Batch, RpcFailure> {
        if !peer.has_batches() {
            let failure = RpcFailure::bad_request(
                rpc::INVALID_REQUEST,
                "this revision of the protocol has no batches",
            );
            self.refuse_batch(messages, &failure);
            return Err(failure);
        }
        let most = self.context.limits().max_batch;
        if messages.is_empty() || messages.len() > most {
            let message = format!("a batch has 1 to {most} messages");
            let failure = RpcFailure::bad_request(rpc::INVALID_REQUEST, message);
            self.refuse_batch(messages, &failure);
            return Err(failure);
        }
        self.ready_now(peer).await;
        let mut batch = Batch {
            answered: Vec::new(),
            calls: Vec::new(),
        };
        for message in messages {
            match self.part_of_batch(&message) {
                Ok(RpcMessage::Request { id, method, params })
                    if method == McpMethod::Initialize.as_str() =>
                {
                    let failure = RpcFailure::new(
                        rpc::INVALID_REQUEST,
                        "`initialize` must not be in a batch",
                    );
                    let refused = self.refused(&method, &params, failure);
                    batch.answered.push(refused.to_text(&id));
                }
                Ok(RpcMessage::Request { id, method, params }) => {
                    let call = call(id, method, params);
                    let begun = self.begin(&call);
                    batch.calls.push((call, begun));
                }
                Ok(RpcMessage::Notification { method, params }) => {
                    self.notified(Some(peer), &method, &params).await;
                }
                Ok(RpcMessage::Response { id, outcome }) => self.responded(peer, &id, outcome),
                Err(invalid) => batch.answered.push(invalid.to_response().to_string()),
            }
        }
        Ok(batch)
    }

    /// Answers a batch: the list of the answers, and what begins once it is on its way. What calls say before their
    /// answer goes to `outlet`.
    pub(super) async fn answer_batch(
        self: &Arc<Self>,
        batch: Batch,
        outlet: &MessageOutlet,
    ) -> (String, DeliveryNote, Vec<Advance>) {
        let answering = batch.calls.into_iter().map(|(call, mut begun)| async move {
            let work = std::mem::replace(&mut begun.work, RemainingWork::Listen(Value::Null));
            let outcome = match work {
                RemainingWork::Ready(outcome) => outcome,
                RemainingWork::Play(script) => {
                    let token = call.peer.as_ref().and_then(|peer| peer.start(&call.id));
                    let cancelled = async {
                        match &token {
                            Some(token) => token.cancelled().await,
                            None => std::future::pending().await,
                        }
                    };
                    let performed = tokio::select! {
                        () = cancelled => None,
                        performed = self.perform(&call, &mut begun, &script, outlet) => performed.ok(),
                    };
                    if let (Some(peer), true) = (&call.peer, token.is_some()) {
                        peer.finish(&call.id);
                    }
                    performed?
                }
                // The revision that has batches has no such method.
                RemainingWork::Listen(_) => {
                    CallReply::Error(unknown_method(&call.method, call.era))
                }
            };
            if let Some(delay) = begun.phase.delivery.delay {
                tokio::time::sleep(delay).await;
            }
            let (text, _) = self.written(&call, &begun, &outcome);
            let note = self.note(&begun, &call);
            Some((text, note, begun.advances))
        });
        let (mut texts, mut notes, mut advances) = (batch.answered, Vec::new(), Vec::new());
        for (text, note, held) in join_all(answering).await.into_iter().flatten() {
            texts.push(text);
            notes.push(note);
            advances.extend(held);
        }
        let note = DeliveryNote::joined(&self.context, &notes);
        (format!("[{}]", texts.join(",")), note, advances)
    }

    /// Refuses a batch whose messages are seen all the same.
    pub(super) fn refuse_batch(&self, messages: Vec<Value>, failure: &RpcFailure) {
        self.context
            .warn(&format!("a batch was refused: {}", failure.message));
        let most = self.context.limits().max_batch;
        if messages.is_empty() {
            return self.no_message(UnseenKind::NotAMessage, b"[]");
        }
        let mut messages = messages.into_iter();
        for message in messages.by_ref().take(most) {
            if let Ok(message) = self.part_of_batch(&message) {
                self.out_of_place(message, failure.clone());
            }
        }
        let rest: Vec<Value> = messages.collect();
        if !rest.is_empty() {
            let rest = Value::Array(rest).to_string();
            self.no_message(UnseenKind::TooMany, rest.as_bytes());
        }
    }

    /// A message of a batch; what is none is kept as text.
    fn part_of_batch(&self, message: &Value) -> Result<RpcMessage, InvalidMessage> {
        rpc::from_value(message.clone()).inspect_err(|invalid| {
            self.context
                .warn(&format!("a client sent what is {invalid}"));
            self.no_message(UnseenKind::NotAMessage, message.to_string().as_bytes());
        })
    }
}
