//! `proofhouse demo-service`: a local service to try tools with.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use proofhouse_campaign::config::positive_duration;
use proofhouse_sim::service::{DemoApi, serve_stdio};
use proofhouse_wire::server::BoundServer;
use proofhouse_wire::{CancellationToken, WireLimits, listen_address};
use serde_json::json;
use tokio::io::{AsyncReadExt, BufReader};

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, talk};
use crate::tools::work::until_interrupted;

/// No request of a demonstration is larger.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Start a local demo service for the example tools
///
/// It offers HTTP endpoints, sessions, tokens, an OpenAPI description and an MCP server. The credentials it accepts
/// are in the examples and protect nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse demo-service\n  \
    proofhouse demo-service --listen 127.0.0.1:0 --until-stdin-closes\n  \
    proofhouse demo-service --mcp-stdio\n\n\
    Stop it with Ctrl-C; the exit code is 0.")]
pub(crate) struct DemoService {
    /// The address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8765", value_parser = listen_address)]
    listen: SocketAddr,

    /// How long an unused session stays open
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, default_value = "5m")]
    session_lifetime: Duration,

    /// Exit when stdin is closed
    #[arg(long)]
    until_stdin_closes: bool,

    /// Run as an MCP server over stdio instead
    #[arg(long, conflicts_with_all = ["listen", "until_stdin_closes", "session_lifetime"])]
    mcp_stdio: bool,
}

impl DemoService {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let ended = CancellationToken::new();
        let served = if self.mcp_stdio {
            until_interrupted(&ended, speak(&ended))?
        } else {
            until_interrupted(&ended, self.serve(&ended))?
        };
        served.into_inner()?;
        Ok(Exit::Success)
    }

    async fn serve(&self, ended: &CancellationToken) -> Result<(), CommandError> {
        let bound = BoundServer::new(self.listen).await.map_err(|error| {
            CommandError::cannot_run(format!("cannot listen on {}: {error}", self.listen))
        })?;
        let address = bound.address();
        if !address.ip().is_loopback() {
            talk(
                "warning: other machines can reach this address, and the demo service protects nothing",
            );
        }
        let origin = format!("http://{address}");
        let mut data = StdoutData::new();
        let places = json!({
            "listening": origin,
            "openapi": format!("{origin}/openapi.json"),
            "mcp": format!("{origin}/mcp"),
        });
        // One line, for those who start it and wait for it.
        data.line(&places.to_string())?;
        data.finish()?;
        let service = Arc::new(DemoApi::new(origin, self.session_lifetime));
        let limits = WireLimits {
            max_message_bytes: MAX_BODY_BYTES,
            ..WireLimits::default()
        };
        let serving = bound.serve(service, limits, ended.clone());
        if self.until_stdin_closes {
            tokio::select! {
                () = serving => {}
                () = stdin_closes() => {}
            }
        } else {
            serving.await;
        }
        Ok(())
    }
}

/// Speaks MCP over stdio until the other end is done.
async fn speak(ended: &CancellationToken) -> Result<(), CommandError> {
    let input = BufReader::new(tokio::io::stdin());
    tokio::select! {
        served = serve_stdio(input, tokio::io::stdout()) => Ok(served?),
        () = ended.cancelled() => Ok(()),
    }
}

async fn stdin_closes() {
    let mut stdin = tokio::io::stdin();
    let mut ignored = [0; 1024];
    while let Ok(1..) = stdin.read(&mut ignored).await {}
}
