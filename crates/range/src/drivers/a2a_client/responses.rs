//! Reading what the subject answers: each response is recorded as 0.3 would have it, and may end
//! the phase.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proofhouse_detect::read_lenient;
use proofhouse_oatf::Direction;
use proofhouse_protocol::a2a::{
    A2aMethod, A2aShape, A2aVersion, ARTIFACT_EVENT, STATUS_EVENT, card, translate_result,
};
use proofhouse_protocol::rpc::{self, InvalidMessage, RpcMessage};
use proofhouse_wire::client::{ClientError, SseEvents};
use serde_json::Value;

use crate::actor::ActorContext;
use crate::exposure::CarrierKind;
use crate::facts::UnseenKind;
use crate::phases::PhaseView;

/// How much of an answer that makes no sense is told.
const MAX_TOLD_CHARS: usize = 200;

/// Reads the answers to one request.
#[derive(Debug, Clone)]
pub(super) struct A2aResponseReader {
    pub(super) context: ActorContext,
    pub(super) operation: Option<A2aMethod>,
    pub(super) event: String,
    pub(super) id: Value,
    /// The phase that the request belongs to.
    pub(super) phase: Arc<PhaseView>,
    /// What it is in the exposure.
    pub(super) branch: Value,
    /// Whether an answer shows that it arrived, which is to be counted once.
    pub(super) uncounted: Arc<AtomicBool>,
}

impl A2aResponseReader {
    /// The same for one copy of the request; `counts` when an answer shows that it arrived.
    pub(super) fn of_copy(&self, counts: bool) -> Self {
        Self {
            uncounted: Arc::new(AtomicBool::new(counts)),
            ..self.clone()
        }
    }

    /// Somebody who speaks the protocol has the request.
    pub(super) fn count(&self) {
        if self.uncounted.swap(false, Ordering::Relaxed) {
            let kind = CarrierKind::Message;
            self.context
                .delivered_branch(&self.phase, kind, &self.event, &self.branch);
        }
    }

    /// An answer could not be read to its end.
    pub(super) fn unread(&self, error: &ClientError) {
        if let Some(kind) = UnseenKind::of_answer(error) {
            self.context.unparsed(kind, Direction::Response, b"", 0);
        }
    }

    fn no_message(&self, kind: UnseenKind, text: &[u8]) {
        let (direction, length) = (Direction::Response, text.len() as u64);
        self.context.unparsed(kind, direction, text, length);
    }

    /// Reads a message, mended where it has to be.
    fn read(&self, text: &[u8]) -> Result<RpcMessage, (UnseenKind, InvalidMessage)> {
        let (value, mended) = read_lenient(text).map_err(|error| {
            let invalid = InvalidMessage::NotJson(error.to_string());
            (UnseenKind::of_text(text), invalid)
        })?;
        if let Some(mended) = mended {
            let warning = format!("the answer to `{}` was {mended}", self.event);
            self.context.warn(&warning);
        }
        rpc::from_value(value).map_err(|invalid| (UnseenKind::NotAMessage, invalid))
    }

    /// What one response says, whatever its id is. What is none is told.
    pub(super) fn outcome(&self, text: &[u8]) -> Option<(Value, Result<Value, Value>)> {
        let (id, outcome) = match self.read(text) {
            Ok(RpcMessage::Response { id, outcome }) => (id, outcome),
            Ok(RpcMessage::Request { .. } | RpcMessage::Notification { .. }) => {
                self.no_message(UnseenKind::NotAMessage, text);
                let warning = format!("`{}` was answered by a request", self.event);
                self.context.warn(&warning);
                return None;
            }
            Err((kind, invalid)) => {
                self.no_message(kind, text);
                let told = String::from_utf8_lossy(text);
                let told: String = told.chars().take(MAX_TOLD_CHARS).collect();
                let warning = format!("`{}` was answered by what is {invalid}: {told}", self.event);
                self.context.warn(&warning);
                return None;
            }
        };
        if id != self.id {
            let warning = format!(
                "the answer to `{}` has the id {id}, not {}",
                self.event, self.id
            );
            self.context.warn(&warning);
        }
        Some((id, outcome))
    }

    /// Takes one response.
    pub(super) fn take(&self, text: &[u8]) {
        let Some((id, outcome)) = self.outcome(text) else {
            return;
        };
        self.count();
        match outcome {
            Ok(result) => self.result(&id, result),
            Err(error) => {
                drop(
                    self.context
                        .received(&self.event, Direction::Response, &error, None),
                );
            }
        }
    }

    fn result(&self, id: &Value, result: Value) {
        let content = match self.operation {
            Some(A2aMethod::GetExtendedCard) => card::project(&result),
            Some(operation) => translate_result(operation, &result, A2aVersion::V0_3),
            None => result.clone(),
        };
        let raw = (content != result).then(|| rpc::response(id, result));
        let kind = content.get("kind").and_then(Value::as_str);
        let update = match kind.and_then(A2aShape::of_kind) {
            Some(A2aShape::StatusUpdate) => Some(STATUS_EVENT),
            Some(A2aShape::ArtifactUpdate) => Some(ARTIFACT_EVENT),
            Some(A2aShape::Task | A2aShape::Message) | None => None,
        };
        let update = update.filter(|_| self.operation.is_some_and(A2aMethod::is_streamed));
        drop(
            self.context
                .received(&self.event, Direction::Response, &content, raw.clone()),
        );
        if let Some(update) = update {
            drop(
                self.context
                    .received(update, Direction::Response, &content, raw),
            );
        }
    }

    /// Takes the next item of a stream; `false` when there is no more.
    pub(super) async fn take_next(&self, events: &mut SseEvents) -> bool {
        match events.next().await {
            Ok(Some(event)) => {
                // Events without data only keep the connection alive.
                if !event.data.is_empty() {
                    self.take(event.data.as_bytes());
                }
                true
            }
            Ok(None) => false,
            Err(error) => {
                self.unread(&error);
                let warning = format!("the stream of `{}`: {error}", self.event);
                self.context.warn(&warning);
                false
            }
        }
    }
}
