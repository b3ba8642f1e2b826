//! `guard install` and `guard uninstall`: the configurations of clients, there and back.
//!
//! The original stays beside the file, with what was written. A file that nobody touched since becomes again what it
//! was, byte for byte; one that somebody edited keeps the edits and loses the guard.

mod jsonc;
mod rewrite;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use proofhouse_wire::files::{FileInput, Unreadable};
use proofhouse_wire::write_files;
use serde_json::{Value, json};

pub use jsonc::ConfigSyntax;
pub use rewrite::{GuardCommandLine, Rewritten, unwrapped, wrapped};

/// What the name of the file with the original ends with.
const BACKUP: &str = ".proofhouse-guard";

/// No configuration is larger. Claude Code keeps its history in the same file.
const MAX_BYTES: usize = 64 << 20;

/// A client whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfiguredClient {
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
}

/// A word that names no client whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write claude-code, cursor or vscode, or name the file")]
pub struct UnknownClient;

impl std::str::FromStr for ConfiguredClient {
    type Err = UnknownClient;

    fn from_str(word: &str) -> Result<Self, UnknownClient> {
        match word {
            "claude-code" => Ok(Self::ClaudeCode),
            "cursor" => Ok(Self::Cursor),
            "vscode" => Ok(Self::VsCode),
            _ => Err(UnknownClient),
        }
    }
}

impl ConfiguredClient {
    /// The configuration of a project.
    #[must_use]
    pub fn project_file(self, project: &Path) -> PathBuf {
        project.join(match self {
            Self::ClaudeCode => ".mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::VsCode => ".vscode/mcp.json",
        })
    }
}

/// Why a configuration cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Unreadable,
    },
    /// It is no configuration.
    #[error("{}: {error}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ConfigSyntax,
    },
    /// It cannot be written.
    #[error("{}: cannot write: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It has no servers.
    #[error("{}: it names no servers", .0.display())]
    NoServers(PathBuf),
    /// The original beside it cannot be used.
    #[error("{}: it is not what the guard wrote; restore the configuration by hand", .0.display())]
    BadBackup(PathBuf),
}

/// How a configuration became what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uninstalled {
    /// Byte for byte.
    Restored,
    /// Somebody had edited it: the edits stayed, and these servers lost the guard.
    Merged(Vec<String>),
    /// It had no guard.
    Nothing,
}

/// Puts the guard in front of the servers of a configuration. Servers that have it keep it, with the flags of now.
///
/// # Errors
///
/// Returns an error when it cannot be read or written, or has no servers.
pub fn install(path: &Path, guard: &GuardCommandLine) -> Result<Rewritten, InstallError> {
    let current = read(path)?;
    let (original, _) = without_guard(path, &current)?;
    let rewritten = wrapped(&original, guard).map_err(|error| syntax(path, error))?;
    if rewritten.changed.is_empty() && rewritten.left.is_empty() {
        return Err(InstallError::NoServers(path.to_owned()));
    }
    if !rewritten.changed.is_empty() && rewritten.text != current {
        let kept = json!({"original": original, "written": rewritten.text});
        // The original first: without it, nothing is changed.
        let backup = backup_of(path);
        write_private(&backup, &format!("{kept}\n")).map_err(|error| InstallError::Write {
            path: backup,
            error,
        })?;
        replace(path, &rewritten.text)?;
    }
    Ok(rewritten)
}

/// Takes the guard away.
///
/// # Errors
///
/// Returns an error when the configuration cannot be read or written.
pub fn uninstall(path: &Path) -> Result<Uninstalled, InstallError> {
    let current = read(path)?;
    let (original, how) = without_guard(path, &current)?;
    if original != current {
        replace(path, &original)?;
    }
    let backup = backup_of(path);
    match std::fs::remove_file(&backup) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(InstallError::Write {
            path: backup,
            error,
        }),
        _ => Ok(how),
    }
}

/// A configuration without the guard, and how that was found.
fn without_guard(path: &Path, current: &str) -> Result<(String, Uninstalled), InstallError> {
    let backup = backup_of(path);
    if backup.exists() {
        let kept: Value = serde_json::from_str(&read(&backup)?)
            .map_err(|_| InstallError::BadBackup(backup.clone()))?;
        let text = |key: &str| kept.get(key).and_then(Value::as_str);
        let (Some(original), Some(written)) = (text("original"), text("written")) else {
            return Err(InstallError::BadBackup(backup));
        };
        if written == current {
            return Ok((original.to_owned(), Uninstalled::Restored));
        }
    }
    let rewritten = unwrapped(current).map_err(|error| syntax(path, error))?;
    Ok(if rewritten.changed.is_empty() {
        (current.to_owned(), Uninstalled::Nothing)
    } else {
        (rewritten.text, Uninstalled::Merged(rewritten.changed))
    })
}

fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(BACKUP);
    name.into()
}

fn read(path: &Path) -> Result<String, InstallError> {
    FileInput::File(path.to_owned())
        .read(MAX_BYTES)
        .map_err(|error| InstallError::Unreadable {
            path: path.to_owned(),
            error,
        })
}

fn replace(path: &Path, text: &str) -> Result<(), InstallError> {
    write_files::replace(path, text).map_err(|error| InstallError::Write {
        path: path.to_owned(),
        error,
    })
}

fn syntax(path: &Path, error: ConfigSyntax) -> InstallError {
    InstallError::Syntax {
        path: path.to_owned(),
        error,
    }
}

/// Writes what may hold secrets: for the user alone.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
