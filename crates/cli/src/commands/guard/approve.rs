//! `proofhouse guard approve` and `proofhouse guard check`: what people look at before they trust it.

use std::path::{Path, PathBuf};

use clap::Args;
use proofhouse_campaign::file_kind::WantedFiles;
use proofhouse_guard::pins::{self, LockFile, OfferedChanges, approve, check_server, review};
use proofhouse_guard::{OpenedPolicy, policy};
use serde_json::json;

use super::cannot;
use crate::exit_code::Exit;
use crate::input::named_files;
use crate::output::{CommandError, StdoutData, talk};

/// Show definitions that are new or have changed since they were approved, and approve them
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse guard approve\n  \
    proofhouse guard approve --yes --server files\n  \
    proofhouse guard approve --format json\n\n\
    Exit codes:\n  \
    0   nothing to approve, or approved with --yes\n  \
    1   there is something to approve\n  \
    3   the lock cannot be used\n  \
    64  invalid arguments, or a server or a lock that is not there")]
pub(super) struct GuardApprove {
    /// The lock file, which holds the approved definitions
    #[arg(long, value_name = "FILE", default_value = pins::FILE)]
    lock: PathBuf,

    /// Only this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Approve the changes
    #[arg(long)]
    yes: bool,

    /// How to print the changes: as a diff for people, or for programs
    #[arg(long, value_parser = ["human", "json"], default_value = "human")]
    format: String,
}

/// Check that the guard can use a policy, with all threat documents and traces that it names
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse guard check policy.yaml\n  \
    proofhouse guard check --stock > policy.yaml\n\n\
    Exit codes:\n  \
    0   the guard can use it\n  \
    3   it cannot\n  \
    64  invalid arguments")]
pub(super) struct GuardCheck {
    /// The policy
    #[arg(required_unless_present = "stock")]
    policy: Option<PathBuf>,

    /// Print the built-in policy instead
    #[arg(long, conflicts_with = "policy")]
    stock: bool,
}

impl GuardApprove {
    pub(super) fn run(self) -> Result<Exit, CommandError> {
        let file = LockFile::new(&self.lock);
        // The usual lock need not be there; one that somebody names must be.
        if self.lock != Path::new(pins::FILE) {
            file.check_named()
                .map_err(|error| CommandError::of(&error, true))?;
        }
        let lock = file.read().map_err(cannot)?;
        let pending = file.pending().read().map_err(cannot)?;
        let only = self.server.as_deref();
        if let Some(server) = only {
            check_server(&lock, &pending, server)
                .map_err(|error| CommandError::of(&error, true))?;
        }
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
        named_files([path.as_path()])?;
        WantedFiles::Policy.check(std::slice::from_ref(&path))?;
        let opened = OpenedPolicy::open(Some(&path)).map_err(cannot)?;
        let shown = crate::output::shown_path(&path);
        talk(&format!("{shown}: {}", opened.summary()));
        Ok(Exit::Success)
    }
}
