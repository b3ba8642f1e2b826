//! The MCP configuration of a command: a copy for each run, or the file itself, made to name the attack's servers.

mod in_place;
mod rewrite;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use proofhouse_oatf::Mode;
use proofhouse_wire::files::{Unreadable, read_capped};

use in_place::InPlace;
pub use in_place::InPlaceError;
pub(crate) use in_place::Placed;
pub use rewrite::RewriteError;
use rewrite::{Stand, rewrite};

use crate::Notice;
use crate::spec::McpConfigSpec;
use crate::subject::RunContext;

/// The largest configuration that is read; those of the usual clients have a few kilobytes, and the one that
/// also keeps its user's history a few megabytes.
const MAX_BYTES: usize = 16 << 20;

/// Why a configuration of MCP servers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum McpConfigError {
    /// It cannot be replaced and put back.
    #[error("{}: {error}", file.display())]
    InPlace {
        /// The file.
        file: PathBuf,
        /// Why.
        error: InPlaceError,
    },
    /// It cannot be read, or a copy of it cannot be written.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is no text.
    #[error("{}: not a text in UTF-8", .0.display())]
    NotUtf8(PathBuf),
    /// It is no configuration of MCP servers.
    #[error("{}{error}", file.display())]
    Rewrite {
        /// The file.
        file: PathBuf,
        /// Why, beginning with the place in the file.
        error: RewriteError,
    },
}

impl McpConfigError {
    /// Whether another file has to be named, not something else to be there.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::InPlace { error, .. } => matches!(error, InPlaceError::NoFile),
            Self::Io { .. } | Self::NotUtf8(_) | Self::Rewrite { .. } => true,
        }
    }
}

/// The configuration of a command.
#[derive(Debug)]
pub(crate) struct McpConfig {
    file: PathBuf,
    in_place: Option<InPlace>,
}

impl McpConfig {
    /// Looks at the file. What an earlier campaign left behind when it was cut off is put right.
    pub(crate) fn new(
        spec: &McpConfigSpec,
        notify: &dyn Fn(Notice),
    ) -> Result<Self, McpConfigError> {
        let opened = InPlace::new(&spec.file);
        let (in_place, restored) = opened.map_err(|error| McpConfigError::InPlace {
            file: spec.file.clone(),
            error,
        })?;
        if restored {
            notify(Notice::RestoredConfig(spec.file.clone()));
        }
        let config = Self {
            file: in_place.file().to_owned(),
            in_place: spec.in_place.then_some(in_place),
        };
        // Found out now, not in every run.
        config.rewritten(&[])?;
        Ok(config)
    }

    /// The file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether the file itself is rewritten.
    pub(crate) fn is_in_place(&self) -> bool {
        self.in_place.is_some()
    }

    /// Writes a copy for a run.
    pub(crate) fn copy_to(&self, copy: &Path, run: &RunContext) -> Result<(), McpConfigError> {
        let text = self.rewritten(&stands(run))?;
        std::fs::write(copy, text).map_err(|error| McpConfigError::Io {
            file: copy.to_owned(),
            error,
        })
    }

    /// Rewrites the file itself until what is returned goes away.
    pub(crate) fn place(&self, run: &RunContext) -> Result<Option<Placed>, McpConfigError> {
        let Some(in_place) = &self.in_place else {
            return Ok(None);
        };
        let text = self.rewritten(&stands(run))?;
        let placed = in_place.put(&text);
        placed.map(Some).map_err(|error| McpConfigError::InPlace {
            file: self.file.clone(),
            error,
        })
    }

    fn rewritten(&self, servers: &[Stand<'_>]) -> Result<String, McpConfigError> {
        let file = || self.file.clone();
        let bytes = read(&self.file).map_err(|error| McpConfigError::Io {
            file: file(),
            error,
        })?;
        let text = String::from_utf8(bytes).map_err(|_| McpConfigError::NotUtf8(file()))?;
        rewrite(&text, servers).map_err(|error| McpConfigError::Rewrite {
            file: file(),
            error,
        })
    }
}

/// The MCP servers of a run.
fn stands(run: &RunContext) -> Vec<Stand<'_>> {
    let servers = run.servers.iter();
    let servers = servers.filter(|server| server.mode == Mode::McpServer);
    servers
        .map(|server| Stand {
            actor: &server.actor,
            url: &server.address,
        })
        .collect()
}

/// Reads a file whole, up to the limit.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_capped(File::open(path)?, MAX_BYTES).map_err(|error| match error {
        Unreadable::Io(error) => error,
        Unreadable::TooLarge { .. } | Unreadable::NotUtf8 { .. } => io::Error::other(format!(
            "more than {MAX_BYTES} bytes are not a configuration"
        )),
    })
}
