//! Reading what the subject answers: each response is recorded as 0.3 would have it, and may end
//! the phase.

use proofhouse_oatf::Direction;
use proofhouse_wire::client::Events;
use proofhouse_wire::rpc::{self, Message};
use serde_json::Value;

use crate::actor::ActorContext;
use crate::drivers::a2a::methods::{Generation, Operation};
use crate::drivers::a2a::{card, results};

/// How much of an answer that makes no sense is told.
const MAX_TOLD_CHARS: usize = 200;

/// Reads the answers to one request.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    pub(super) context: ActorContext,
    pub(super) operation: Option<Operation>,
    pub(super) event: String,
    pub(super) id: Value,
}

impl Reader {
    /// Takes one response.
    pub(super) fn take(&self, text: &[u8]) {
        let (id, outcome) = match rpc::parse(text) {
            Ok(Message::Response { id, outcome }) => (id, outcome),
            Ok(_) => {
                let warning = format!("`{}` was answered by a request", self.event);
                return self.context.warn(&warning);
            }
            Err(invalid) => {
                let told = String::from_utf8_lossy(text);
                let told: String = told.chars().take(MAX_TOLD_CHARS).collect();
                let warning = format!("`{}` was answered by what is {invalid}: {told}", self.event);
                return self.context.warn(&warning);
            }
        };
        if id != self.id {
            let warning = format!(
                "the answer to `{}` has the id {id}, not {}",
                self.event, self.id
            );
            self.context.warn(&warning);
        }
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
            Some(Operation::ExtendedCard) => card::project(&result),
            Some(operation) => results::translate(operation, &result, Generation::Legacy),
            None => result.clone(),
        };
        let raw = (content != result).then(|| rpc::response(id, result));
        let update = match content.get("kind").and_then(Value::as_str) {
            Some("status-update") => Some("task/status"),
            Some("artifact-update") => Some("task/artifact"),
            _ => None,
        };
        let update = update.filter(|_| self.operation.is_some_and(Operation::is_streamed));
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
    pub(super) async fn take_next(&self, events: &mut Events) -> bool {
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
                let warning = format!("the stream of `{}`: {error}", self.event);
                self.context.warn(&warning);
                false
            }
        }
    }
}
