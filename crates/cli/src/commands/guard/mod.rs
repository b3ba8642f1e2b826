//! `proofhouse guard`: stands between an agent and an MCP server, or in front of all servers of a configuration.

mod approve;
mod install;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use proofhouse_guard::engine::GuardProtocol;
use proofhouse_guard::share::ShareSetup;
use proofhouse_guard::{
    FindingSeverity, GuardAsks, GuardFiles, GuardFinding, GuardReach, GuardTarget, OpenedGuard,
    pins,
};
use proofhouse_wire::{CancellationToken, listen_address};
use serde_json::json;

use crate::environment::environment;
use crate::exit_code::Exit;
use crate::input::named_files;
use crate::output::{CommandError, StdoutData, talk};
use crate::proxies;
use crate::telemetry::TelemetryOptions;
use crate::tools::work::until_interrupted;

/// Guard an MCP server or an agent: pin tool definitions, track untrusted values, and apply rules to calls
///
/// Without --policy, the built-in policy applies (`proofhouse guard check --stock` prints it). Messages
/// that pass are forwarded unchanged, byte for byte. For a blocked call, the model gets a result that says so.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    proofhouse guard -- npx -y @modelcontextprotocol/server-filesystem .\n  \
    proofhouse guard --policy policy.yaml --record trace.jsonl -- python server.py\n  \
    proofhouse guard --url http://127.0.0.1:8080/mcp --listen 127.0.0.1:9090\n  \
    proofhouse guard --protocol a2a --url http://127.0.0.1:7000/ --listen 127.0.0.1:9090\n  \
    proofhouse guard install .mcp.json --policy policy.yaml\n  \
    proofhouse guard approve\n\n\
    Findings go to stderr, one per line; stdout carries the protocol.\n\n\
    Exit codes:\n  \
    0   the client ended the session, or stopped by Ctrl-C\n  \
    3   the server could not be started, or ended before the client; the policy, the lock file or\n      the session cannot be used; or a file could not be written\n  \
    64  invalid arguments, or a policy that does not exist"
)]
pub(crate) struct GuardCommand {
    #[command(subcommand)]
    command: Option<GuardPart>,

    #[command(flatten)]
    files: FileOptions,

    /// The server's name in the lock file and in policies [default: made from the command or the URL]
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Who approves calls when a rule says `ask`: client (it asks its user by MCP elicitation; stdio only), terminal, or
    /// nobody (every such call is denied) [default: client over stdio, terminal over HTTP]
    #[arg(long, value_name = "WHO")]
    ask: Option<GuardAsks>,

    /// The URL of the server to guard, over HTTP
    #[arg(
        long,
        value_name = "URL",
        requires = "listen",
        conflicts_with = "start"
    )]
    url: Option<String>,

    /// The address where clients reach the guarded server over HTTP; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address, requires = "url")]
    listen: Option<std::net::SocketAddr>,

    /// What the server at the URL speaks: mcp, or a2a for an agent; the guard then pins its card and judges its messages
    #[arg(long, value_name = "PROTOCOL", requires = "url", default_value = "mcp")]
    protocol: GuardProtocol,

    /// Share tracked values with other guards of this name [default: over stdio, with the guards that the same client
    /// starts; with --url, with none]
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// Do not share tracked values with other guards
    #[arg(long, conflicts_with = "session")]
    no_session: bool,

    /// Show metrics for Prometheus at this address of this machine, under /metrics; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    metrics: Option<std::net::SocketAddr>,

    /// Send a span for each request, with its findings, to this OpenTelemetry collector over HTTP, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,

    /// The command that starts the server, over stdio
    #[arg(last = true, value_name = "COMMAND")]
    start: Vec<String>,
}

/// Files that a guard reads and writes.
#[derive(Debug, Clone, Args)]
struct FileOptions {
    /// The policy [default: the built-in policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// The lock file, which holds the approved definitions
    #[arg(long, value_name = "FILE", default_value = pins::FILE)]
    lock: PathBuf,

    /// Do not pin definitions
    #[arg(long, conflicts_with = "lock")]
    no_lock: bool,

    /// Write every message to this trace file, for `scan` and `explain-verdict`. If the file exists, it is kept, and a
    /// number is added to the new name
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Append findings to this file, as JSON Lines
    #[arg(long, value_name = "FILE")]
    findings: Option<PathBuf>,

    /// Append findings to this file, as events of the Open Cybersecurity Schema Framework
    #[arg(long, value_name = "FILE")]
    ocsf: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum GuardPart {
    /// Put the guard in front of the servers of a client's configuration
    Install(install::GuardInstall),
    /// Remove the guard from a client's configuration
    Uninstall(install::GuardUninstall),
    /// Show definitions that are new or have changed since they were approved, and approve them
    Approve(approve::GuardApprove),
    /// Check that the guard can use a policy, with all threat documents and traces that it names
    Check(approve::GuardCheck),
}

impl FileOptions {
    fn files(self) -> GuardFiles {
        GuardFiles {
            policy: self.policy,
            lock: (!self.no_lock).then_some(self.lock),
            trace: self.record,
            findings: self.findings,
            ocsf: self.ocsf,
        }
    }
}

impl GuardCommand {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        match self.command {
            Some(GuardPart::Install(install)) => return install.run(),
            Some(GuardPart::Uninstall(uninstall)) => return uninstall.run(),
            Some(GuardPart::Approve(approve)) => return approve.run(),
            Some(GuardPart::Check(check)) => return check.run(),
            None => {}
        }
        let unnamed =
            "name the command that starts the server after `--`, or its address with --url";
        let target = GuardTarget::of(self.url, self.listen, self.start)
            .ok_or_else(|| CommandError::usage(unnamed))?;
        named_files(self.files.policy.as_deref())?;
        let name = target.name();
        let server = self.server.unwrap_or_else(|| name.clone());
        let opened = OpenedGuard::open(&self.files.files(), server, name, Box::new(tell));
        let opened = Arc::new(opened.map_err(cannot)?.of_protocol(self.protocol));
        let telemetry = TelemetryOptions::spans_to(self.otlp).begin()?;
        let runtime = environment()("XDG_RUNTIME_DIR");
        let reach = GuardReach {
            asks: self.ask,
            shared: ShareSetup::chosen(self.session, self.no_session, runtime),
            metrics: self.metrics,
            proxies: proxies::from_environment(),
        };
        let cancel = CancellationToken::new();
        let ends = (tokio::io::stdin(), tokio::io::stdout());
        let guarding = reach.guard(&opened, target, ends, &cancel, (listening, talk));
        let ended = until_interrupted(&cancel, guarding)?.into_inner();
        telemetry.finish();
        ended.map_err(cannot)?;
        Ok(Exit::Success)
    }
}

/// Says where clients reach the server; a reader that went away does not end the guard.
fn listening(url: &str) {
    let mut data = StdoutData::new();
    let _ = data.line(&json!({"listening": url}).to_string());
    let _ = data.finish();
}

/// Says what was found, on one line.
fn tell(finding: &GuardFinding) {
    if finding.severity > FindingSeverity::Info {
        talk(&format!("guard: {}", finding.line()));
    }
}

fn cannot(error: impl std::fmt::Display) -> CommandError {
    CommandError::of(&error, false)
}
