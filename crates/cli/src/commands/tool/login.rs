//! `proofhouse tool login`: a person agrees that tools use their MCP servers, and the tokens are kept.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use proofhouse_subjects::login::{self, AnnounceLogin};
use proofhouse_wire::CancellationToken;
use serde_json::json;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, complain, printable_line, talk};
use crate::tools::manifests;
use crate::tools::options::OperatorOptions;
use crate::tools::work::until_interrupted;

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// Log tools in to the MCP servers they use
///
/// For every tool of the manifest that the operator's file has below `mcp.oauth`: shows an address to open in a
/// browser, waits until you agreed there, and keeps the tokens, sealed, where `mcp.tokens` says.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    PROOFHOUSE_TOKEN_KEY=$(openssl rand -base64 32)\n  \
    proofhouse tool login tracker.yaml --settings operator.yaml\n\n\
    Exit codes: 0 logged in, 3 not logged in, or a manifest or the settings cannot be used, 64 usage,\n\
    130 interrupted.")]
pub(crate) struct ToolLogin {
    /// The manifest, a file of several, or `-` for stdin
    manifest: PathBuf,

    #[command(flatten)]
    operator: OperatorOptions,

    /// How to tell who is logged in
    #[arg(long, value_enum, default_value_t = LoginFormat::Human)]
    format: LoginFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LoginFormat {
    /// For people
    Human,
    /// For programs: one object with the tools that are logged in
    Json,
}

impl ToolLogin {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let tools = manifests::tools(std::slice::from_ref(&self.manifest))?;
        let operator = self.operator.operator()?;
        let configured = login::configured(&operator, &tools)
            .map_err(|error| CommandError::cannot_run(error.to_string()))?;
        let announce: AnnounceLogin = Arc::new(|tool, url| {
            let tool = printable_line(tool);
            talk(&format!(
                "{tool}: open this address in a browser and agree:\n{url}"
            ));
        });
        let cancel = CancellationToken::new();
        let done = until_interrupted(&cancel, async {
            tokio::select! {
                () = cancel.cancelled() => Vec::new(),
                done = login::log_in(&operator, &configured, &announce) => done,
            }
        })?;
        let done = done.whole()?;
        let mut logged_in = Vec::new();
        for (tool, result) in done {
            match result {
                Ok(server) => logged_in.push((tool, server)),
                Err(error) => complain(&printable_line(&format!("{tool}: {error}"))),
            }
        }
        self.print(&logged_in)?;
        if logged_in.len() == configured.len() {
            Ok(Exit::Success)
        } else {
            Ok(Exit::CannotRun)
        }
    }

    fn print(&self, done: &[(String, String)]) -> Result<(), CommandError> {
        match self.format {
            LoginFormat::Human => {
                for (tool, server) in done {
                    let line = format!("{tool} is logged in to {server}");
                    talk(&printable_line(&line));
                }
                Ok(())
            }
            LoginFormat::Json => {
                let tools = done.iter();
                let tools: Vec<_> = tools
                    .map(|(tool, server)| json!({"tool": tool, "server": server}))
                    .collect();
                let mut data = StdoutData::new();
                data.json(&json!({"version": VERSION, "tools": tools}))?;
                data.finish()
            }
        }
    }
}
