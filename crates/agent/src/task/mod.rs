//! Tasks: one conversation of an agent, with what it may use and the rules around that.
//!
//! A [`Host`] knows the manifests, the tools' runtimes and the models. [`Host::start`] begins a
//! [`Task`]; it is idle until input comes, and keeps its history between inputs.
//!
//! ```
//! use std::sync::Arc;
//! use proofhouse_agent::model::{self, ModelConfig};
//! use proofhouse_agent::task::{Host, TaskInput, TaskOptions};
//! use proofhouse_tools::http::EgressPolicy;
//! use proofhouse_manifest::{Bundle, Catalog};
//! use proofhouse_tools::runtime::{Environment, ToolLimits, Runtimes};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (bundle, _) = Bundle::read(r#"
//! kind: commonagents.info/v1beta2/agent
//! namespace: demo
//! name: clerk
//! description: Answers.
//! prompt: You answer questions.
//! "#);
//! let mut catalog = Catalog::default();
//! catalog.add(&bundle);
//! let limits = ToolLimits::default();
//! let host = Host::new(
//!     catalog,
//!     Runtimes::new(&limits, EgressPolicy::default())?,
//!     limits,
//!     Environment::new(json!({}), || "2026-01-01T00:00:00.000Z".to_owned()),
//!     model::open("sim:careful", &ModelConfig::default())?,
//! );
//! let task = host.start("demo", "clerk", TaskOptions::default())?;
//! let output = task.send(TaskInput::message("Hello!")).await;
//! assert!(output.ended.is_none() && !output.message.is_empty());
//! task.end().await;
//! # Ok(())
//! # }
//! ```

mod allow_list;
mod call;
mod capabilities;
mod context;
mod converse;
mod delegated_task;
mod event;
mod guard;
mod handle;
mod host;
mod input;
mod journal;
mod model_span;
mod mount;
mod restore;
mod review;
mod runner;
mod steps;
mod turn;
mod watch;

pub use allow_list::TaskAllowList;
pub use event::TaskEvent;
pub use handle::{CallOutput, HeldTools, InputEvent, Task, TaskInput, TaskOutput};
pub use host::{Host, ModelSource, ModelUnavailable, StartError, TaskOptions, User};
pub use journal::{AllowedValue, Journal, JournalEntry, JournalError, TaskState};
pub use mount::DirectoryMount;
pub use restore::{Restored, last_output, state_of};
pub use review::{Decision, Review};
pub use turn::{CallStatus, EndReason, TaskEnd, Turn};
pub use watch::TaskEvents;
