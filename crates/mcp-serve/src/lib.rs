//! A server of MCP: whatever has tools, served over stdio or Streamable HTTP to clients of both eras.
//!
//! [`McpBackend`] opens the [`McpTools`] of each session; [`McpServer`] speaks the protocol.
//!
//! ```
//! use std::sync::Arc;
//! use futures_util::future::BoxFuture;
//! use proofhouse_mcp_serve::{
//!     McpAnswer, McpBackend, McpCall, McpServer, McpTool, McpTools, ToolScope, ServeLimits, ServerInfo, UnknownTool,
//! };
//! use proofhouse_wire::CancellationToken;
//! use serde_json::json;
//! use tokio::sync::watch;
//!
//! /// One tool that answers every call the same way.
//! struct Echo(watch::Sender<u64>);
//!
//! impl McpTools for Echo {
//!     fn list(&self, _: CancellationToken) -> BoxFuture<'_, Arc<Vec<McpTool>>> {
//!         Box::pin(async { Arc::new(self.listed("echo").into_iter().collect()) })
//!     }
//!     fn listed(&self, name: &str) -> Option<McpTool> {
//!         let (description, input_schema) = ("Echoes.".into(), json!({"type": "object"}));
//!         (name == "echo").then(|| McpTool { name: name.into(), description, input_schema })
//!     }
//!     fn call(&self, call: McpCall) -> BoxFuture<'_, Result<McpAnswer, UnknownTool>> {
//!         Box::pin(async move { Ok(McpAnswer::text(json!(call.arguments).to_string())) })
//!     }
//!     fn changes(&self) -> watch::Receiver<u64> {
//!         self.0.subscribe()
//!     }
//!     fn close(&self) -> BoxFuture<'_, ()> {
//!         Box::pin(async {})
//!     }
//! }
//!
//! struct Echoes;
//!
//! impl McpBackend for Echoes {
//!     fn open(&self, _: ToolScope) -> Arc<dyn McpTools> {
//!         Arc::new(Echo(watch::Sender::new(0)))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let info = ServerInfo { name: "demo".into(), version: "1".into(), instructions: None };
//! let server = McpServer::new(info, Arc::new(Echoes), ServeLimits::default());
//! let (input, output) = (
//!     &br#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#[..],
//!     tokio::io::sink(),
//! );
//! server.serve_lines(input, output, CancellationToken::new()).await;
//! # }
//! ```

mod content;
mod core;
mod envelope;
mod http;
mod limits;
mod protocol;
mod session;
mod stdio;
mod streams;
mod tools;

use std::sync::Arc;

use proofhouse_wire::CancellationToken;
use proofhouse_wire::server::BoundServer;
use tokio::io::{AsyncRead, AsyncWrite};

pub use content::{block, blocks, media};
pub use limits::ServeLimits;
pub use proofhouse_protocol::mcp::McpLogLevel;
pub use protocol::{OperatorNotes, ServerInfo};
pub use tools::{
    McpAnswer, McpBackend, McpCall, McpTool, McpTools, ProgressSink, ToolScope, UnknownTool,
};

use self::core::Core;

/// The path of the endpoint over HTTP.
pub const PATH: &str = "/mcp";

/// A server that can be started.
pub struct McpServer {
    info: ServerInfo,
    backend: Arc<dyn McpBackend>,
    limits: ServeLimits,
    notes: OperatorNotes,
}

impl McpServer {
    /// A server of some tools.
    #[must_use]
    pub fn new(info: ServerInfo, backend: Arc<dyn McpBackend>, limits: ServeLimits) -> Self {
        Self {
            info,
            backend,
            limits,
            notes: Arc::new(|_| {}),
        }
    }

    /// The same, with someone who hears what the operator should know.
    #[must_use]
    pub fn with_notes(mut self, notes: OperatorNotes) -> Self {
        self.notes = notes;
        self
    }

    /// Serves one client over lines, until it is gone or `stop` is cancelled. Calls that are under way
    /// then are cancelled, and the tools are closed before this returns.
    pub async fn serve_lines(
        self,
        input: impl AsyncRead + Send + Unpin,
        output: impl AsyncWrite + Send + Unpin + 'static,
        stop: CancellationToken,
    ) {
        let core = Arc::new(Core::new(self, stop.child_token()));
        stdio::serve(&core, input, output).await;
        core.close().await;
    }

    /// Serves clients over HTTP, until `stop` is cancelled. Then every connection is closed, calls
    /// that are under way are cancelled, and the tools are closed before this returns.
    pub async fn serve_http(self, bound: BoundServer, stop: CancellationToken) {
        let core = Arc::new(Core::new(self, stop.child_token()));
        http::serve(&core, bound).await;
        core.close().await;
    }
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer")
            .field("info", &self.info)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
