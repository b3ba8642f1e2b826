//! `proofhouse agent serve`: an agent over AG-UI, A2A and MCP, for whoever speaks one of them.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use proofhouse_agent::serve::{AgentLimits, AgentServer, ServeAddresses};
use proofhouse_subjects::agent_setup::PreparedAgent;
use proofhouse_wire::{CancellationToken, NotAnAddress, listen_address};
use serde_json::{Value, json};

use crate::agents::options::AgentOptions;
use crate::agents::show;
use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, printable_line, talk};
use crate::tools::work::until_interrupted;

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// Serve an agent over AG-UI, A2A and MCP
///
/// Each conversation of a client is a separate task. If a rule of the agent needs an approval, the client is asked
/// for it where its protocol allows that. --mcp has two uses: with an address or `stdio`, it serves the agent over
/// MCP; with a URL or a command, it adds an MCP server for the agent.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse agent serve examples/agents/delegation.yaml --a2a 127.0.0.1:8080\n  \
    proofhouse agent serve agent.yaml --ag-ui 127.0.0.1:8000 --mcp 127.0.0.1:8001\n  \
    proofhouse agent serve agent.yaml --mcp stdio\n\n\
    Exit codes:\n  \
    0   stopped by Ctrl-C or a signal, or the client disconnected\n  \
    3   a manifest, the model, an address or the trace file cannot be used\n  \
    64  invalid arguments")]
pub(crate) struct AgentServe {
    #[command(flatten)]
    options: AgentOptions,

    /// Serve AG-UI at this address, such as 127.0.0.1:8000; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    ag_ui: Option<SocketAddr>,

    /// Serve A2A at this address
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    a2a: Option<SocketAddr>,

    /// Allow addresses that other machines can reach. Anyone who reaches them can use the agent
    #[arg(long)]
    allow_remote: bool,

    /// How to report the addresses
    #[arg(long, value_enum, default_value_t = AgentServeFormat::Human)]
    format: AgentServeFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AgentServeFormat {
    /// As sentences on stderr
    Human,
    /// As a line of JSON on stdout
    Json,
}

/// Where MCP is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum McpEndpointFlag {
    Stdio,
    At(SocketAddr),
}

impl AgentServe {
    pub(crate) fn run(mut self) -> Result<Exit, CommandError> {
        let mcp = self.take_place()?;
        if self.ag_ui.is_none() && self.a2a.is_none() && mcp.is_none() {
            return Err(CommandError::usage(
                "choose where to serve: --ag-ui ADDRESS, --a2a ADDRESS, --mcp ADDRESS or --mcp stdio",
            ));
        }
        let on_stdio = mcp == Some(McpEndpointFlag::Stdio);
        if on_stdio && self.options.read_stdin() {
            return Err(CommandError::usage(
                "stdin cannot be both a file and the client",
            ));
        }
        if on_stdio && self.format == AgentServeFormat::Json {
            return Err(CommandError::usage("stdout belongs to the client"));
        }
        let places = ServeAddresses {
            ag_ui: self.ag_ui,
            a2a: self.a2a,
            mcp: match mcp {
                Some(McpEndpointFlag::At(address)) => Some(address),
                _ => None,
            },
        };
        self.check(&places)?;
        let prepared = self.options.prepare()?;
        let stop = CancellationToken::new();
        let serving = self.serve(&prepared, &places, on_stdio, stop.clone());
        until_interrupted(&stop, serving)?.into_inner()?;
        prepared.finish()?;
        Ok(Exit::Success)
    }

    /// Where MCP is to be served, taken from among the servers that the agent may use.
    fn take_place(&mut self) -> Result<Option<McpEndpointFlag>, CommandError> {
        let servers = std::mem::take(&mut self.options.mcp);
        let (mut places, mut others) = (Vec::new(), Vec::new());
        for server in servers {
            match place(&server) {
                Ok(place) => places.push(place),
                Err(_) => others.push(server),
            }
        }
        self.options.mcp = others;
        match places.as_slice() {
            [] => Ok(None),
            [place] => Ok(Some(*place)),
            _ => Err(CommandError::usage("MCP is served at one place only")),
        }
    }

    /// Nobody else reaches the agent unless that is wanted.
    fn check(&self, places: &ServeAddresses) -> Result<(), CommandError> {
        let addresses = [places.ag_ui, places.a2a, places.mcp];
        let mut reachable = addresses.into_iter().flatten();
        match reachable.find(|address| !address.ip().is_loopback()) {
            None => Ok(()),
            Some(address) if self.allow_remote => {
                talk(&format!(
                    "warning: anyone who can reach {address} can use the agent"
                ));
                Ok(())
            }
            Some(address) => Err(CommandError::usage(format!(
                "other machines can reach {address}, and nothing asks them who they are; \
                 --allow-remote listens there all the same"
            ))),
        }
    }

    async fn serve(
        &self,
        prepared: &PreparedAgent,
        places: &ServeAddresses,
        on_stdio: bool,
        stop: CancellationToken,
    ) -> Result<(), CommandError> {
        let agent = &prepared.agent;
        let server = AgentServer::bind(
            prepared.host.clone(),
            &agent.namespace,
            &agent.name,
            places,
            AgentLimits::default(),
        );
        let mut server = server
            .await
            .map_err(|error| CommandError::cannot_run(error.to_string()))?;
        if on_stdio {
            server = server.with_mcp_lines(tokio::io::stdin(), tokio::io::stdout());
        }
        self.tell(prepared, &server.places())?;
        server.serve(stop).await;
        Ok(())
    }

    fn tell(&self, prepared: &PreparedAgent, places: &ServeAddresses) -> Result<(), CommandError> {
        let url = |address: Option<SocketAddr>, path: &str| {
            address.map(|address| format!("http://{address}{path}"))
        };
        let urls = [
            ("ag_ui", "AG-UI", url(places.ag_ui, "/")),
            ("a2a", "A2A", url(places.a2a, "/")),
            ("mcp", "MCP", url(places.mcp, "/mcp")),
        ];
        let (model, simulation) = prepared.model();
        match self.format {
            AgentServeFormat::Human => {
                talk(&show::model_line(&model, simulation));
                let name = printable_line(&prepared.agent.name);
                for (_, protocol, url) in urls {
                    if let Some(url) = url {
                        talk(&format!("serving {name} over {protocol} at {url}"));
                    }
                }
                Ok(())
            }
            AgentServeFormat::Json => {
                let mut told = json!({
                    "version": VERSION,
                    "agent": {"namespace": prepared.agent.namespace, "name": prepared.agent.name},
                    "model": {"name": model, "simulation": simulation},
                });
                for (key, _, url) in urls {
                    told[key] = url.map_or(Value::Null, Value::String);
                }
                let mut data = StdoutData::new();
                data.line(&told.to_string())?;
                data.finish()
            }
        }
    }
}

fn place(text: &str) -> Result<McpEndpointFlag, NotAnAddress> {
    match text {
        "stdio" => Ok(McpEndpointFlag::Stdio),
        text => listen_address(text).map(McpEndpointFlag::At),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_from_servers() {
        assert_eq!(place("stdio"), Ok(McpEndpointFlag::Stdio));
        for address in ["127.0.0.1:0", "localhost:8080", "[::1]:80"] {
            assert!(
                matches!(place(address), Ok(McpEndpointFlag::At(_))),
                "{address}"
            );
        }
        for server in ["http://127.0.0.1:8080/mcp", "npx server", "server:1", ""] {
            assert!(place(server).is_err(), "{server}");
        }
    }
}
