//! What a model answers: events while it speaks, and the whole reply in the end.

use serde::{Deserialize, Serialize};

use super::ToolCall;

/// Something that came of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelEvent {
    /// The next piece of text.
    Text(String),
    /// A whole call.
    Call(ToolCall),
}

/// Hears of a reply as it comes.
pub trait ModelSink: Send {
    /// Takes one event. It must not wait: the stream stands still meanwhile.
    fn event(&mut self, event: ModelEvent);
}

impl ModelSink for Vec<ModelEvent> {
    fn event(&mut self, event: ModelEvent) {
        self.push(event);
    }
}

impl<F: FnMut(ModelEvent) + Send> ModelSink for F {
    fn event(&mut self, event: ModelEvent) {
        self(event);
    }
}

/// A whole reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// All of the text.
    pub text: String,
    /// The calls, in order.
    pub calls: Vec<ToolCall>,
    /// What it cost.
    pub usage: Usage,
    /// Why it ended.
    pub stop: StopReason,
    /// The model that answered, in the provider's words.
    pub model: String,
}

impl ModelReply {
    /// Whether nothing was said and nothing called.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty()
    }
}

/// Tokens, as the provider counts them; 0 where it does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the question.
    pub prompt: u64,
    /// Tokens of the reply.
    pub completion: u64,
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Everything was said.
    #[default]
    End,
    /// The results of calls are awaited.
    ToolCalls,
    /// The reply reached the most tokens it may have.
    MaxTokens,
    /// The model or its provider declined.
    Refused,
    /// There were more calls than one turn may have: the first ones are kept, the rest is not read.
    CallLimit,
}
