//! `proofhouse guard install` and `uninstall`: the configurations of clients.

use std::path::{Path, PathBuf};

use clap::Args;
use proofhouse_guard::install::{
    ConfiguredClient, GuardCommandLine, Uninstalled, install, uninstall,
};
use proofhouse_guard::{pins, read_policy};

use super::cannot;
use crate::exit_code::Exit;
use crate::input::named_files;
use crate::output::{CommandError, printable_line, shown_path, talk};

/// Which configuration.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ConfigChoice {
    /// The configuration: any file with `mcpServers` or `servers`
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The configuration of this client in the current directory: claude-code, cursor or vscode
    #[arg(long)]
    client: Option<ConfiguredClient>,
}

/// Put the guard in front of the servers of a client's configuration
///
/// The original is kept beside the file. Servers that are reached over HTTP are left as they are, and named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse guard install --client claude-code\n  \
    proofhouse guard install .mcp.json --policy policy.yaml\n\n\
    Exit codes:\n  \
    0   done\n  \
    3   the configuration cannot be changed, or no server of it can be guarded\n  \
    64  invalid arguments, or a file that does not exist")]
pub(super) struct GuardInstall {
    #[command(flatten)]
    config: ConfigChoice,

    /// The policy that the guards use [default: the built-in policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// The lock file, which holds the approved definitions
    #[arg(long, value_name = "FILE", default_value = pins::FILE)]
    lock: PathBuf,

    /// The program that the configuration starts as the guard
    #[arg(long, value_name = "PROGRAM", default_value = "proofhouse")]
    program: String,
}

/// Take the guard out of a client's configuration again
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse guard uninstall --client claude-code\n  \
    proofhouse guard uninstall .mcp.json\n\n\
    Restores the original file exactly, unless you edited it since; then only the guard is removed.\n\n\
    Exit codes:\n  \
    0   done\n  \
    3   the configuration cannot be changed\n  \
    64  invalid arguments, or a file that does not exist")]
pub(super) struct GuardUninstall {
    #[command(flatten)]
    config: ConfigChoice,
}

impl ConfigChoice {
    fn path(self) -> Result<PathBuf, CommandError> {
        let file = self.client.map(|client| client.project_file(Path::new("")));
        let path = file.or(self.file).unwrap_or_default();
        named_files([path.as_path()])?;
        Ok(path)
    }
}

impl GuardInstall {
    pub(super) fn run(self) -> Result<Exit, CommandError> {
        let path = self.config.path()?;
        let mut flags = Vec::new();
        if let Some(policy) = &self.policy {
            named_files([policy.as_path()])?;
            read_policy(policy).map_err(cannot)?;
            flags.extend(["--policy".to_owned(), absolute(policy)?]);
        }
        // Clients start servers wherever they like.
        flags.extend(["--lock".to_owned(), absolute(&self.lock)?]);
        let guard = GuardCommandLine {
            program: self.program,
            flags,
        };
        let rewritten = install(&path, &guard).map_err(cannot)?;
        for (server, reason) in &rewritten.left {
            talk(&format!(
                "{}: not guarded, {reason}",
                printable_line(server)
            ));
        }
        if rewritten.changed.is_empty() {
            return Err(CommandError::cannot_run(
                "no server was put behind the guard",
            ));
        }
        let names = printable_line(&rewritten.changed.join(", "));
        talk(&format!(
            "Guarded in {}: {names}. Restart the client.",
            shown_path(&path)
        ));
        Ok(Exit::Success)
    }
}

impl GuardUninstall {
    pub(super) fn run(self) -> Result<Exit, CommandError> {
        let path = self.config.path()?;
        let shown = shown_path(&path);
        talk(&match uninstall(&path).map_err(cannot)? {
            Uninstalled::Restored => format!("{shown} is what it was."),
            Uninstalled::Merged(servers) => {
                let names = printable_line(&servers.join(", "));
                format!("{shown} was edited since. The edits stay; no longer guarded: {names}.")
            }
            Uninstalled::Nothing => format!("{shown} has no guard."),
        });
        Ok(Exit::Success)
    }
}

fn absolute(path: &Path) -> Result<String, CommandError> {
    Ok(std::path::absolute(path)?.display().to_string())
}
