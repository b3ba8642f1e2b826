//! `proofhouse tool serve`: the tools of manifests as one MCP server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use proofhouse_manifest::{Tool, ToolAction};
use proofhouse_mcp_serve::{McpServer, OperatorNotes, PATH, ServeLimits, ServerInfo};
use proofhouse_subjects::call_trace::CallTrace;
use proofhouse_subjects::tool_manifests;
use proofhouse_wire::server::BoundServer;
use proofhouse_wire::{CancellationToken, listen_address};
use serde_json::json;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, printable_line, talk};
use crate::report::plural;
use crate::tools::manifests;
use crate::tools::options::OperatorOptions;
use crate::tools::work::until_interrupted;

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// Serve the tools of manifests as an MCP server
///
/// All tools are served by one MCP server, over stdio or HTTP. Clients with and without sessions (both generations
/// of the protocol) are supported.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse tool serve examples/tools/clock.yaml\n  \
    proofhouse tool serve tools/ --settings settings.yaml --listen 127.0.0.1:8080\n\n\
    Exit codes:\n  \
    0   stopped by Ctrl-C or a signal, or the client disconnected\n  \
    3   a manifest, the address or the trace file cannot be used\n  \
    64  invalid arguments")]
pub(crate) struct ToolServe {
    /// Tool manifests: files, or directories that are searched for .yaml and .yml files
    #[arg(required = true, value_name = "MANIFEST")]
    manifests: Vec<PathBuf>,

    /// Serve one client over stdin and stdout; this is the default without --listen
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// Serve over HTTP at this address, such as 127.0.0.1:8080; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    listen: Option<SocketAddr>,

    /// Allow an address that other machines can reach. Anyone who reaches it can call every tool
    #[arg(long, requires = "listen")]
    allow_remote: bool,

    #[command(flatten)]
    operator: OperatorOptions,

    /// Write every call to this trace file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// How to report the address
    #[arg(long, value_enum, default_value_t = ToolServeFormat::Human, requires = "listen")]
    format: ToolServeFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ToolServeFormat {
    /// As a sentence on stderr
    Human,
    /// As a line of JSON on stdout
    Json,
}

impl ToolServe {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let from_stdin = self.manifests.iter().any(|path| path.as_os_str() == "-");
        if self.listen.is_none() && from_stdin {
            return Err(CommandError::usage(
                "stdin cannot be both a manifest and the client",
            ));
        }
        if let Some(address) = self.listen
            && !address.ip().is_loopback()
        {
            if !self.allow_remote {
                return Err(CommandError::usage(format!(
                    "other machines can reach {address}, and nothing asks them who they are; \
                     --allow-remote listens there all the same"
                )));
            }
            talk(&format!(
                "warning: anyone who can reach {address} can call every tool"
            ));
        }
        let located = manifests::tools(&self.manifests)?;
        let tools = tool_manifests::of_located(&located);
        let operator = self.operator.operator_of(&located)?;
        let trace = match &self.trace {
            Some(path) => Some(trace_to(path, &tools)?),
            None => None,
        };
        let notes: OperatorNotes =
            Arc::new(|note| talk(&format!("proofhouse: {}", printable_line(note))));
        let mut served = operator.served(&located).with_notes(Arc::clone(&notes));
        if let Some(trace) = &trace {
            served = served.with_observer(Arc::new(trace.clone()));
        }
        let info = ServerInfo {
            name: "proofhouse".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: Some(instructions(&tools)),
        };
        let server = McpServer::new(info, Arc::new(served), ServeLimits::default());
        let server = server.with_notes(notes);
        let stop = CancellationToken::new();
        let serving = self.serve(server, tools.len(), stop.clone());
        until_interrupted(&stop, serving)?.into_inner()?;
        if let Some(trace) = trace {
            trace.finish()?;
        }
        Ok(Exit::Success)
    }

    async fn serve(
        &self,
        server: McpServer,
        tools: usize,
        stop: CancellationToken,
    ) -> Result<(), CommandError> {
        let Some(address) = self.listen else {
            let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
            server.serve_lines(input, output, stop).await;
            return Ok(());
        };
        let bound = BoundServer::new(address).await.map_err(|error| {
            CommandError::cannot_run(format!("cannot listen on {address}: {error}"))
        })?;
        let url = format!("http://{}{PATH}", bound.address());
        match self.format {
            ToolServeFormat::Human => talk(&format!("serving {} at {url}", plural(tools, "tool"))),
            ToolServeFormat::Json => {
                let mut data = StdoutData::new();
                data.line(&json!({"version": VERSION, "url": url, "tools": tools}).to_string())?;
                data.finish()?;
            }
        }
        server.serve_http(bound, stop).await;
        Ok(())
    }
}

/// A trace in which actions have the names that clients call them by.
fn trace_to(path: &Path, tools: &[Arc<Tool>]) -> Result<CallTrace, CommandError> {
    let tools = tools.to_vec();
    let declared: Vec<Vec<Arc<ToolAction>>> =
        tools.iter().map(|tool| tool.actions.clone()).collect();
    let functions = tool_manifests::functions(&tools, &declared);
    let trace = CallTrace::create(path, move |namespace, tool, action| {
        let is_it = |known: &Arc<Tool>| known.namespace == namespace && known.name == tool;
        let function = functions.of(tools.iter().position(is_it)?, action);
        Some(match function {
            Some(function) => function.name.clone(),
            // One that a server or a description has, of which there are usually several.
            None => format!("{}_{action}", tool.replace('-', "_")),
        })
    });
    Ok(trace?)
}

/// What the tools are for, for clients that tell their model.
fn instructions(tools: &[Arc<Tool>]) -> String {
    let lines = tools.iter().map(|tool| {
        let description = tool.description.trim();
        format!("{}: {description}", tool.name)
    });
    lines.collect::<Vec<_>>().join("\n")
}
