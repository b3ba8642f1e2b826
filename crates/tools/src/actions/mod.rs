//! The action runtimes: one file or directory each.

mod cel;
mod exchange;
mod mcp;
mod response;
mod session;
mod stateful_session;
mod stateless_http;

pub use cel::CelRuntime;
pub(crate) use cel::mount_functions;
pub use mcp::McpRuntime;
pub use stateful_session::StatefulSession;
pub use stateless_http::StatelessHttp;
