//! The lock on disk, and beside it what servers offered since: guards of several servers write both.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use proofhouse_wire::files::{FileInput, Unreadable};
use proofhouse_wire::write_files;

use super::lock::{LOCK_LIMITS, Lock, LockSyntax};

/// What the name of the file with offers ends with.
const PENDING: &str = ".pending";

/// Why a lock cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LockFileError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Unreadable,
    },
    /// The directory that it should be in is not there.
    #[error("{}: its directory does not exist; create the directory first", path.display())]
    NoDirectory {
        /// The file.
        path: PathBuf,
    },
    /// It is no lock.
    #[error("{}: {error}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Why.
        error: LockSyntax,
    },
    /// It cannot be written.
    #[error("{}: cannot write: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A lock that somebody named and that is not there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: there is no such lock; {}", path.display(), listed("locks in that directory", others))]
pub struct NoSuchLock {
    /// The file.
    pub path: PathBuf,
    /// The locks beside it.
    pub others: Vec<String>,
}

/// The names there are, for a message.
pub(super) fn listed(what: &str, names: &[String]) -> String {
    if names.is_empty() {
        format!("{what}: none")
    } else {
        format!("{what}: {}", names.join(", "))
    }
}

/// A lock on disk. Whoever changes it holds the directory meanwhile, so that several guards lose nothing of each
/// other.
#[derive(Debug, Clone)]
pub struct LockFile {
    path: PathBuf,
}

impl LockFile {
    /// The lock at a path, which need not be there.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file with what servers offered that was not approved.
    #[must_use]
    pub fn pending(&self) -> Self {
        let mut name = self.path.as_os_str().to_owned();
        name.push(PENDING);
        Self { path: name.into() }
    }

    /// Checks that the lock or what was offered for it is there, for those who name one.
    ///
    /// # Errors
    ///
    /// Returns an error, with the locks in its directory, when neither is there.
    pub fn check_named(&self) -> Result<(), NoSuchLock> {
        if self.path.exists() || self.pending().path.exists() {
            return Ok(());
        }
        let entries = std::fs::read_dir(self.directory()).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut others: Vec<String> = names
            .map(|name| match name.strip_suffix(PENDING) {
                Some(lock) => lock.to_owned(),
                None => name,
            })
            .filter(|name| name.ends_with(".lock"))
            .collect();
        others.sort_unstable();
        others.dedup();
        Err(NoSuchLock {
            path: self.path.clone(),
            others,
        })
    }

    /// Reads it; one that is not there is empty.
    ///
    /// # Errors
    ///
    /// Returns an error when it is there and cannot be used, or when its directory is not there.
    pub fn read(&self) -> Result<Lock, LockFileError> {
        let path = self.path.clone();
        match FileInput::File(path.clone()).read(LOCK_LIMITS.max_bytes) {
            Ok(text) => Lock::parse(&text).map_err(|error| LockFileError::Syntax { path, error }),
            Err(Unreadable::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                if self.directory().is_dir() {
                    Ok(Lock::default())
                } else {
                    Err(LockFileError::NoDirectory { path })
                }
            }
            Err(error) => Err(LockFileError::Unreadable { path, error }),
        }
    }

    /// Changes it: reads what is there now, and writes what `change` makes of it.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be read or written.
    pub fn update(&self, change: impl FnOnce(&mut Lock)) -> Result<Lock, LockFileError> {
        let held = self.hold();
        let mut lock = self.read()?;
        let before = lock.clone();
        change(&mut lock);
        if lock != before || !self.path.exists() {
            let text = lock.to_text();
            write_files::create(&self.path, &text, true).map_err(|error| LockFileError::Write {
                path: error.path,
                error: error.error,
            })?;
        }
        drop(held);
        Ok(lock)
    }

    /// Removes it, if it is there.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be removed.
    pub fn remove(&self) -> Result<(), LockFileError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LockFileError::Write {
                path: self.path.clone(),
                error,
            }),
            _ => Ok(()),
        }
    }

    /// Holds the directory until the result is dropped. File systems without locks go on without.
    fn hold(&self) -> Option<File> {
        let directory = File::open(self.directory()).ok()?;
        directory.lock().ok()?;
        Some(directory)
    }

    fn directory(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }
}
