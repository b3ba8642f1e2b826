//! `proofhouse guard approve` and `proofhouse guard check`: what people look at before they trust it.

use std::path::{Path, PathBuf};

use clap::Args;
use proofhouse_guard::engine::Watcher;
use proofhouse_guard::pins::{self, LockFile, OfferedChanges, approve, review};
use proofhouse_guard::{policy, read_policy};
use serde_json::json;

use super::cannot;
use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, talk};

/// Show what servers offer that was not approved, and take it into the lock
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse guard approve\n  \
    proofhouse guard approve --yes --server files\n  \
    proofhouse guard approve --format json\n\n\
    Exit codes: 0 nothing to approve, or approved with --yes; 1 there is something to approve; 3 the lock cannot be used.")]
pub(super) struct GuardApprove {
    /// Where approved definitions are kept
    #[arg(long, value_name = "FILE", default_value = pins::FILE)]
    lock: PathBuf,

    /// Only this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Take the changes into the lock
    #[arg(long)]
    yes: bool,

    /// How to print the changes: as a diff for people, or for programs
    #[arg(long, value_parser = ["human", "json"], default_value = "human")]
    format: String,
}

/// Check a policy with all it names: its threat documents, and that indicators may block
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse guard check policy.yaml\n  \
    proofhouse guard check --stock > policy.yaml\n\n\
    Exit codes: 0 the guard can use it, 3 it cannot, 64 usage.")]
pub(super) struct GuardCheck {
    /// The policy
    #[arg(required_unless_present = "stock")]
    policy: Option<PathBuf>,

    /// Print the stock policy instead
    #[arg(long, conflicts_with = "policy")]
    stock: bool,
}

impl GuardApprove {
    pub(super) fn run(self) -> Result<Exit, CommandError> {
        let file = LockFile::new(&self.lock);
        let lock = file.read().map_err(cannot)?;
        let pending = file.pending().read().map_err(cannot)?;
        let only = self.server.as_deref();
        let offered = review(&lock, &pending, only);
        let mut data = StdoutData::new();
        if self.format == "json" {
            let servers: Vec<_> = offered.iter().map(OfferedChanges::value).collect();
            data.json(&json!({"version": 1, "approved": self.yes, "servers": servers}))?;
        } else {
            for line in offered.iter().flat_map(OfferedChanges::lines) {
                data.line(&line)?;
            }
        }
        data.finish()?;
        if offered.is_empty() {
            talk("Nothing to approve.");
            return Ok(Exit::Success);
        }
        if !self.yes {
            talk(
                "Not approved. Read the changes: your model will. Then run this again with --yes.",
            );
            return Ok(Exit::Failure);
        }
        approve(&file, &pending, only).map_err(cannot)?;
        talk(&format!(
            "Approved. Commit {}.",
            crate::output::shown_path(file.path())
        ));
        Ok(Exit::Success)
    }
}

impl GuardCheck {
    pub(super) fn run(self) -> Result<Exit, CommandError> {
        let Some(path) = self.policy else {
            let mut data = StdoutData::new();
            data.write(policy::STOCK)?;
            data.finish()?;
            return Ok(Exit::Success);
        };
        let policy = read_policy(&path).map_err(cannot)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let watcher = Watcher::load(&policy.indicators, directory).map_err(cannot)?;
        talk(&format!(
            "{}: {} rules, {} entries of tools, {} indicators that observe, {} that may block",
            crate::output::shown_path(&path),
            policy.rules.len(),
            policy.tools.len(),
            watcher
                .as_ref()
                .map_or(0, |watcher| watcher.indicators() - watcher.enforced()),
            watcher.as_ref().map_or(0, Watcher::enforced),
        ));
        Ok(Exit::Success)
    }
}
