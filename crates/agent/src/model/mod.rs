//! The models an agent can have: real ones over HTTP, recorded ones, and simulations.
//!
//! Everything that answers a conversation is a [`Model`]. [`open`] turns a text such as
//! `openai:gpt-5` or `sim:careful` into one; a [`Recorder`] writes down what any of them said, and a
//! [`RecordedModel`] says it again.
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
mod open;
mod providers;
mod record;

pub use config::{ModelConfig, ModelLimits};
pub use open::{ModelOpenError, ProviderRow, ProviderVariables, open};
pub use proofhouse_model::{
    Arguments, BUILT_IN, ChatMessage, Model, ModelError, ModelErrorKind, ModelEvent, ModelOptions,
    ModelReply, ModelRequest, ModelSink, StopReason, ToolCall, ToolSpec, Usage,
};
pub use providers::PROVIDERS;
pub use record::{RecordError, RecordedModel, Recorder, RedactText, request_hash};
