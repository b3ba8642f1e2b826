//! `proofhouse guard`: stands between an agent and an MCP server, or in front of all servers of a configuration.

mod approve;
mod install;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use proofhouse_guard::{
    FindingSeverity, GuardAsks, GuardFiles, GuardFinding, OpenedGuard, command_name, guard_http,
    guard_stdio, pins, url_name,
};
use proofhouse_wire::CancellationToken;
use serde_json::json;

use crate::exit_code::Exit;
use crate::listen_address::listen_address;
use crate::output::{CommandError, StdoutData, talk};
use crate::proxies;
use crate::tools::work::until_interrupted;

/// Guard an MCP server: pins its definitions, follows values from untrusted results into calls, applies rules
///
/// Without a policy, the stock policy counts (`proofhouse guard check --stock` prints it). What passes is what was sent,
/// byte for byte. A call that is blocked gets a result that the model can read.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    proofhouse guard -- npx -y @modelcontextprotocol/server-filesystem .\n  \
    proofhouse guard --policy policy.yaml --record trace.jsonl -- python server.py\n  \
    proofhouse guard --url http://127.0.0.1:8080/mcp --listen 127.0.0.1:9090\n  \
    proofhouse guard install .mcp.json --policy policy.yaml\n  \
    proofhouse guard approve\n\n\
    Findings go to stderr, one a line. stdout belongs to the protocol.\n\n\
    Exit codes: 0 the client ended the session (or Ctrl-C), 3 the server could not be started or ended first, the policy or the\n\
    lock cannot be used, or what was seen could not be written, 64 usage."
)]
pub(crate) struct GuardCommand {
    #[command(subcommand)]
    command: Option<GuardPart>,

    #[command(flatten)]
    files: FileOptions,

    /// The server's name in the lock and in policies; by default made from the command or the address
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Who is asked where a rule says `ask`: client (its user, through MCP's elicitation; stdio only), terminal or nobody, which
    /// makes every ask a denial; by default the client over stdio, and the terminal over HTTP
    #[arg(long, value_name = "WHO")]
    ask: Option<GuardAsks>,

    /// Guard the server at this address, over HTTP
    #[arg(
        long,
        value_name = "URL",
        requires = "listen",
        conflicts_with = "start"
    )]
    url: Option<String>,

    /// Where clients reach the guarded server over HTTP; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address, requires = "url")]
    listen: Option<std::net::SocketAddr>,

    /// The command that starts the server, over stdio
    #[arg(last = true, value_name = "COMMAND")]
    start: Vec<String>,
}

/// Files that a guard reads and writes.
#[derive(Debug, Clone, Args)]
struct FileOptions {
    /// The policy; by default the stock policy
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// Where approved definitions are kept
    #[arg(long, value_name = "FILE", default_value = pins::FILE)]
    lock: PathBuf,

    /// Pin nothing
    #[arg(long, conflicts_with = "lock")]
    no_lock: bool,

    /// Write every message into this trace, which `scan` and `explain-verdict` read; one that exists is kept, and the new one gets
    /// a number
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
    /// Take the guard out of a client's configuration again
    Uninstall(install::GuardUninstall),
    /// Show what servers offer that was not approved, and take it into the lock
    Approve(approve::GuardApprove),
    /// Check a policy with all it names: its threat documents, and that indicators may block
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
        let origin = match (&self.url, self.start.first()) {
            (Some(url), _) => url_name(url),
            (None, Some(_)) => command_name(&self.start),
            (None, None) => {
                return Err(CommandError::usage(
                    "name the command that starts the server after `--`, or its address with --url",
                ));
            }
        };
        let server = self.server.unwrap_or_else(|| origin.clone());
        let opened = OpenedGuard::open(&self.files.files(), server, origin, Box::new(tell));
        let opened = Arc::new(opened.map_err(cannot)?);
        let cancel = CancellationToken::new();
        let guarding = async {
            match (self.url, self.listen) {
                (Some(url), Some(at)) => {
                    let proxies = proxies::from_environment();
                    guard_http(&opened, &url, at, self.ask, proxies, &cancel, listening).await
                }
                _ => {
                    let ends = (tokio::io::stdin(), tokio::io::stdout());
                    guard_stdio(&opened, self.start, ends, self.ask, &cancel).await
                }
            }
        };
        let ended = until_interrupted(&cancel, guarding)?.into_inner();
        ended.map_err(cannot)?;
        match opened.write_failure() {
            Some(error) => Err(CommandError::cannot_run(format!(
                "what was seen could not be written: {error}"
            ))),
            None => Ok(Exit::Success),
        }
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
