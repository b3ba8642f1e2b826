//! The models an agent can have: real ones over HTTP, recorded ones, and simulations.
//!
//! Everything that answers a conversation is a [`Model`]. [`open`] turns a text such as
//! `openai:gpt-5` or `sim:careful` into one; a [`Recorder`] writes down what any of them said, and a
//! [`Replay`] says it again.
//!
//! ```
//! use proofhouse_agent::model::{self, ChatMessage, ModelConfig, ModelRequest};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = model::open("sim:careful", &ModelConfig::default())?;
//! assert!(model.is_simulation());
//! let request = ModelRequest {
//!     messages: vec![ChatMessage::user("Hello!")],
//!     ..ModelRequest::default()
//! };
//! let mut events = Vec::new();
//! let reply = model.complete(&request, &mut events, &Default::default()).await?;
//! assert!(reply.calls.is_empty() && !reply.text.is_empty());
//! # Ok(())
//! # }
//! ```

mod config;
mod error;
mod open;
mod providers;
mod record;
mod reply;
mod request;
pub mod sim;

use futures_util::future::BoxFuture;
use proofhouse_wire::CancellationToken;

pub use config::{ModelConfig, ModelLimits, Retry};
pub use error::{ModelError, ModelErrorKind};
pub use open::{OpenError, PROVIDERS, ProviderRow, open};
pub use record::{RecordError, Recorder, Redactor, Replay, request_hash};
pub use reply::{ModelEvent, ModelReply, ModelSink, StopReason, Usage};
pub use request::{
    Arguments, BUILT_IN, ChatMessage, ModelOptions, ModelRequest, ToolCall, ToolSpec,
};

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
