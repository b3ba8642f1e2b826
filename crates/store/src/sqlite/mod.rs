//! The database for one machine: one file, one writer thread that commits in groups, several readers.

mod backend;
mod checkpoint;
mod connection;
mod error;
pub(crate) mod inline;
mod readers;
mod transaction;
mod writer;

use std::path::PathBuf;

pub(crate) use backend::SqliteBackend;

use crate::migrate;

/// Where the file is and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The file; it is made if it is not there. None is a store in memory, which is gone when it is closed.
    pub path: Option<PathBuf>,
    /// How many can read at the same time.
    pub readers: usize,
    /// How many bytes the file may have at most; none for as many as the disk has.
    pub max_bytes: Option<u64>,
    /// Stops upgrading at this version of the schema, for tests of upgrades.
    #[doc(hidden)]
    pub up_to_version: i64,
}

impl SqliteOptions {
    /// A store in this file.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
            ..Self::memory()
        }
    }

    /// A store in memory.
    #[must_use]
    pub fn memory() -> Self {
        Self {
            path: None,
            readers: 4,
            max_bytes: None,
            up_to_version: migrate::NEWEST,
        }
    }
}
