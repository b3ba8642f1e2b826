//! `proofhouse tool login`: a person agrees that tools use their MCP servers, and the tokens are kept.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use proofhouse_mcp_auth::LoopbackConsent;
use proofhouse_subjects::operator::Operator;
use proofhouse_subjects::tool_manifests::Located;
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
        let authorization = operator.authorization();
        if !authorization.keeps() {
            return Err(CommandError::cannot_run(
                "the tokens would be lost at once; name a directory for them in `mcp.tokens` of the operator's file \
                 (--settings)",
            ));
        }
        let configured: Vec<&Located> = tools
            .iter()
            .filter(|located| authorization.of(&located.tool).is_some())
            .collect();
        if configured.is_empty() {
            return Err(CommandError::cannot_run(
                "the operator's file (--settings) has none of these tools below `mcp.oauth`",
            ));
        }
        let cancel = CancellationToken::new();
        let done = until_interrupted(&cancel, async {
            tokio::select! {
                () = cancel.cancelled() => Vec::new(),
                done = log_in(&operator, &configured) => done,
            }
        })?;
        let done = done.whole()?;
        let all_in = done.len() == configured.len();
        self.print(&done)?;
        Ok(if all_in {
            Exit::Success
        } else {
            Exit::CannotRun
        })
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

/// Logs in one tool after the other; those that are logged in, with their servers.
async fn log_in(operator: &Operator, tools: &[&Located]) -> Vec<(String, String)> {
    let mut done = Vec::new();
    for located in tools {
        let name = format!("{}/{}", located.tool.namespace, located.tool.name);
        match log_in_one(operator, located, &name).await {
            Ok(server) => done.push((name, server)),
            Err(error) => complain(&printable_line(&format!("{name}: {error}"))),
        }
    }
    done
}

async fn log_in_one(
    operator: &Operator,
    located: &Located,
    name: &str,
) -> Result<String, Box<dyn std::error::Error>> {
    let configured = operator.authorization().of(&located.tool);
    let port = configured.map_or(0, |configured| configured.redirect_port);
    let shown = printable_line(name).to_string();
    let consent = LoopbackConsent::listen(port, move |url| {
        talk(&format!(
            "{shown}: open this address in a browser and agree:\n{url}"
        ));
    });
    let consent = Arc::new(consent?);
    Ok(operator.log_in(located, consent).await?)
}
