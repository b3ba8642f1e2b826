//! The runtimes of declarative agent tools: six that act, three that listen, and what they share.
//!
//! A manifest is read into a [`Tool`](proofhouse_manifest::Tool) with everything compiled. A
//! [`ToolTask`](runtime::ToolTask) runs it for the length of one task.
//!
//! ```
//! use std::sync::Arc;
//! use proofhouse_tools::http::EgressPolicy;
//! use proofhouse_manifest::Bundle;
//! use proofhouse_tools::runtime::{Environment, ToolLimits, Runtimes, ToolTask};
//! use serde_json::{Map, json};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (bundle, _) = Bundle::read(r#"
//! kind: commonagents.info/v1beta2/tool
//! namespace: demo
//! name: greeter
//! description: Greets.
//! parameters: {properties: {name: {type: string, default: you}}}
//! actions:
//!   - name: greet
//!     description: Says hello.
//!     execute: {cel: {expression: "{'text': 'hello ' + input.name}"}}
//! "#);
//! let tool = Arc::new(bundle.tools().next().ok_or("no tool")?.clone());
//! let environment = Environment::new(json!({}), || "2026-01-01T00:00:00.000Z".to_owned());
//! let limits = ToolLimits::default();
//! let runtimes = Runtimes::new(&limits, EgressPolicy::default())?;
//! let task = ToolTask::new(tool, environment, runtimes, limits);
//! let outcome = task.invoke("greet", Map::new(), json!({}), Default::default()).await?;
//! assert_eq!(outcome.value, json!({"text": "hello you"}));
//! assert!(task.teardown().await.is_empty());
//! # Ok(())
//! # }
//! ```

pub mod actions;
pub mod auth;
pub mod functions;
pub mod http;
pub mod operator;
pub mod receive;
pub mod runtime;
pub mod serve;

pub use proofhouse_expr::allow_list;
