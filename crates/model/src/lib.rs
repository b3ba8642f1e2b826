//! What a model is asked and what it answers: the interface that providers, recordings and simulations share.

mod error;
mod reply;
mod request;

use futures_util::future::BoxFuture;
use proofhouse_wire::CancellationToken;

pub use error::{ModelError, ModelErrorKind};
pub use reply::{ModelEvent, ModelReply, ModelSink, StopReason, Usage};
pub use request::{
    Arguments, BUILT_IN, ChatMessage, ModelOptions, ModelRequest, ToolCall, ToolSpec,
};

/// The most calls that one turn of a model may have; people read what an agent did.
pub const MAX_CALLS_PER_TURN: usize = 128;

/// Answers conversations.
pub trait Model: Send + Sync {
    /// What the model is called, such as `openai:gpt-5`.
    fn name(&self) -> &str;

    /// Whether nobody thinks behind it: whatever names such a model says that it is a simulation.
    fn is_simulation(&self) -> bool;

    /// Answers one request. Text goes to `events` as it comes, and each call once it is whole.
    ///
    /// The future ends soon after `cancel` is cancelled. An error keeps what had come before it.
    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>>;
}
