//! The action runtimes: one file or directory each.

mod cel;
pub(crate) mod exchange;
mod kubernetes_job;
mod mcp;
mod openapi;
mod response;
mod session;
mod stateful_session;
mod stateless_http;

pub use cel::CelRuntime;
pub use kubernetes_job::{Cluster, KubernetesJobs};
pub use mcp::McpRuntime;
pub use openapi::OpenApiRuntime;
pub use stateful_session::StatefulSession;
pub use stateless_http::StatelessHttp;
