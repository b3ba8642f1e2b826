//! Opens connections: durable, patient for a bounded time, and with referential integrity.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::translate;
use crate::error::{Result, StoreError};

/// How long a locked database is waited for; longer than a backup or another process holds it.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Statements kept prepared; there are about a hundred.
const STATEMENTS: usize = 256;

/// How many pages are kept in memory, in KiB (negative, as SQLite wants it). All of them are walked through at each commit,
/// and the system has the others.
const CACHE_KIB: i64 = -8 * 1024;

/// How large the log may stay when it was copied, in bytes: what a flood needed is given back.
const LOG_BYTES: i64 = 64 << 20;

/// The connection that writes.
pub(super) fn writer(path: Option<&Path>) -> Result<Connection> {
    let connection = match path {
        Some(path) => {
            create_privately(path);
            Connection::open(path)
        }
        None => Connection::open_in_memory(),
    }
    .map_err(|error| translate(&error))?;
    prepare(&connection)?;
    set(&connection, "journal_mode", "WAL")?;
    // Every commit is on the disk before it is answered, also when the power fails.
    set(&connection, "synchronous", "FULL")?;
    set(&connection, "journal_size_limit", LOG_BYTES)?;
    set(&connection, "foreign_keys", 1)?;
    Ok(connection)
}

/// Makes a new file one that only its owner reads: conversations and payloads are in it. SQLite gives the files beside it the
/// same rights. What goes wrong here goes wrong when it is opened, too.
#[cfg(unix)]
fn create_privately(path: &Path) {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let _ = options.write(true).create_new(true).mode(0o600).open(path);
}

#[cfg(not(unix))]
fn create_privately(_: &Path) {}

/// A connection that only reads.
pub(super) fn reader(path: &Path) -> Result<Connection> {
    let connection = open_existing(path)?;
    prepare(&connection)?;
    set(&connection, "query_only", 1)?;
    Ok(connection)
}

/// A connection that only copies the log into the database. It syncs what it copies as the writer does: the log is begun
/// anew after that.
pub(super) fn copier(path: &Path) -> Result<Connection> {
    let connection = open_existing(path)?;
    set(&connection, "synchronous", "FULL")?;
    Ok(connection)
}

fn open_existing(path: &Path) -> Result<Connection> {
    Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI,
    )
    .map_err(|error| translate(&error))
}

fn prepare(connection: &Connection) -> Result<()> {
    connection
        .busy_timeout(BUSY_WAIT)
        .map_err(|error| translate(&error))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    set(connection, "cache_size", CACHE_KIB)?;
    set(connection, "temp_store", "MEMORY")
}

fn set(connection: &Connection, pragma: &str, value: impl rusqlite::ToSql) -> Result<()> {
    // Some pragmas answer with a row, others do not.
    connection
        .pragma_update_and_check(None, pragma, value, |_| Ok(()))
        .or_else(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => Ok(()),
            error => Err(translate(&error)),
        })
}

/// Limits how many bytes the file may have.
pub(super) fn limit(connection: &Connection, max_bytes: Option<u64>) -> Result<()> {
    let page: i64 = connection
        .pragma_query_value(None, "page_size", |row| row.get(0))
        .map_err(|error| translate(&error))?;
    let pages = max_bytes.map_or(i64::from(u32::MAX - 1), |bytes| {
        i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1)
    });
    set(connection, "max_page_count", pages.max(1))
}

/// Knows whether the file that was opened is still the one at its path.
#[derive(Debug)]
pub(super) struct FileIdentity {
    path: PathBuf,
    identity: FileKey,
}

impl FileIdentity {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let identity = identity(path).ok_or_else(|| vanished(path))?;
        Ok(Self {
            path: path.to_owned(),
            identity,
        })
    }

    /// Refuses when the file was removed or replaced: what is written to it now is lost when it is closed.
    pub(super) fn check(&self) -> Result<()> {
        if identity(&self.path).as_ref() == Some(&self.identity) {
            Ok(())
        } else {
            Err(vanished(&self.path))
        }
    }
}

fn vanished(path: &Path) -> StoreError {
    StoreError::Unavailable(format!(
        "the file {} was removed or replaced; restart the program",
        path.display()
    ))
}

/// Device and number of a file.
#[cfg(unix)]
type FileKey = (u64, u64);

#[cfg(unix)]
fn identity(path: &Path) -> Option<FileKey> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Only that it is there.
#[cfg(not(unix))]
type Identity = ();

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<FileKey> {
    std::fs::metadata(path).ok().map(|_| ())
}
