//! A server of MCP: whatever has tools, served over stdio or Streamable HTTP to clients of both eras.
//!
//! [`McpBackend`] opens the [`McpTools`] of each session; [`McpServer`] speaks the protocol. Tools of
//! manifests are opened by [`ManifestTools`].
//!
//! ```
//! use std::sync::Arc;
//! use proofhouse_tools::serve::{McpServer, ManifestTools, ServeLimits, ServerInfo};
//! use proofhouse_wire::CancellationToken;
//! # use proofhouse_tools::http::EgressPolicy;
//! # use proofhouse_tools::manifest::Bundle;
//! # use proofhouse_tools::runtime::{Environment, Limits, Runtimes};
//! # use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (bundle, _) = Bundle::read(r#"
//! # kind: commonagents.info/v1beta2/tool
//! # namespace: demo
//! # name: clock
//! # description: Tells the time.
//! # actions:
//! #   - name: now
//! #     description: The time.
//! #     execute: {cel: {expression: "now"}}
//! # "#);
//! # let tool = Arc::new(bundle.tools().next().ok_or("no tool")?.clone());
//! # let environment = Environment::new(json!({}), || "2026-01-01T00:00:00.000Z".to_owned());
//! # let runtimes = Runtimes::new(&Limits::default(), EgressPolicy::default())?;
//! let tools = ManifestTools::new(vec![(tool, environment)], runtimes, Limits::default());
//! let info = ServerInfo { name: "demo".into(), version: "1".into(), instructions: None };
//! let server = McpServer::new(info, Arc::new(tools), ServeLimits::default());
//! let (input, mut output) = (
//!     &br#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#[..],
//!     tokio::io::sink(),
//! );
//! server.serve_lines(input, output, CancellationToken::new()).await;
//! # Ok(())
//! # }
//! ```

mod binding;
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
use proofhouse_wire::server::Bound;
use tokio::io::{AsyncRead, AsyncWrite};

pub use binding::ManifestTools;
pub use limits::ServeLimits;
pub use proofhouse_protocol::mcp::McpLogLevel;
pub use protocol::{Notes, ServerInfo};
pub use tools::{McpAnswer, McpBackend, McpCall, McpTool, McpTools, Scope, Sink, UnknownTool};

use self::core::Core;

/// The path of the endpoint over HTTP.
pub const PATH: &str = "/mcp";

/// A server that can be started.
pub struct McpServer {
    info: ServerInfo,
    backend: Arc<dyn McpBackend>,
    limits: ServeLimits,
    notes: Notes,
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
    pub fn with_notes(mut self, notes: Notes) -> Self {
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
    pub async fn serve_http(self, bound: Bound, stop: CancellationToken) {
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
