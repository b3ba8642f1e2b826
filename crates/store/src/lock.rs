//! The lock of an SQLite store that is served: two servers on one file would each believe to be the only one.
//!
//! It is a lock of the system on a file beside the database, so that it ends with the process, however that ends. `keys` does not
//! take it: what it does is one transaction.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Why a store cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file of the database has several names.
    #[error(
        "{}: this file has more than one name (hard links), and SQLite keeps a log beside each: what is written \
         under one is not seen under the other; remove the other names or copy the file",
        .0.display()
    )]
    OtherNames(PathBuf),
    /// The file of the lock cannot be made.
    #[error("{}: cannot lock it: {error}", database.display())]
    Cannot {
        /// The database.
        database: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another process has the lock.
    #[error(
        "{}: another `proofhouse serve` uses this file; end it first, or give all processes the same PostgreSQL with \
         --store postgres://…",
        .0.display()
    )]
    Held(PathBuf),
}

/// Held by the process that serves a store, until it is dropped.
#[derive(Debug)]
pub struct StoreLock {
    file: Result<File, io::Error>,
}

impl StoreLock {
    /// Takes the lock of the database at this path, which need not be there yet.
    ///
    /// # Errors
    ///
    /// Returns an error when another process has it, or when a lock would not help.
    pub fn take(database: &Path) -> Result<Self, LockError> {
        if has_other_names(database) {
            return Err(LockError::OtherNames(database.to_owned()));
        }
        let file = lock_file(database).and_then(open);
        let file = file.map_err(|error| LockError::Cannot {
            database: database.to_owned(),
            error,
        })?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file: Ok(file) }),
            Err(TryLockError::WouldBlock) => Err(LockError::Held(database.to_owned())),
            // Some file systems have no locks.
            Err(TryLockError::Error(error)) => Ok(Self { file: Err(error) }),
        }
    }

    /// Why nothing is locked, where the file system has no locks: then somebody else must see to it that only one
    /// process serves the store.
    #[must_use]
    pub fn failure(&self) -> Option<&io::Error> {
        self.file.as_ref().err()
    }
}

#[cfg(unix)]
fn has_other_names(database: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    database
        .metadata()
        .is_ok_and(|file| file.is_file() && file.nlink() > 1)
}

#[cfg(not(unix))]
fn has_other_names(_: &Path) -> bool {
    false
}

/// The same file for every way to it.
fn lock_file(database: &Path) -> io::Result<PathBuf> {
    let real = match database.canonicalize() {
        Ok(real) => real,
        Err(_) => {
            let name = database.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            let parent = database.parent().filter(|parent| *parent != Path::new(""));
            parent
                .unwrap_or_else(|| Path::new("."))
                .canonicalize()?
                .join(name)
        }
    };
    let mut name = real.into_os_string();
    name.push(".lock");
    Ok(name.into())
}

/// It stays when the server ends: whoever removed it could remove one that another process has just locked.
fn open(path: PathBuf) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_by_whatever_name_until_it_lets_go() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let held = StoreLock::take(&path).unwrap();
        File::create(&path).unwrap();
        let detour = directory.path().join(".").join("store.db");
        let refused = StoreLock::take(&detour).unwrap_err();
        assert!(matches!(refused, LockError::Held(_)), "{refused}");
        #[cfg(unix)]
        {
            let link = directory.path().join("link.db");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            StoreLock::take(&link).unwrap_err();
            let (one, other) = (
                directory.path().join("one.db"),
                directory.path().join("2.db"),
            );
            File::create(&one).unwrap();
            std::fs::hard_link(&one, &other).unwrap();
            for name in [&one, &other] {
                let refused = StoreLock::take(name).unwrap_err();
                assert!(matches!(refused, LockError::OtherNames(_)), "{refused}");
            }
        }
        StoreLock::take(&directory.path().join("other.db")).unwrap();
        drop(held);
        StoreLock::take(&path).unwrap();
    }
}
