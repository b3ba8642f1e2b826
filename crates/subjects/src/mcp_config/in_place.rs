//! A file that is something else for a while: whatever happens, it becomes again what it was, byte for byte.
//!
//! While it is something else, the original is beside it, under another name and locked. Whoever finds it there
//! without the lock knows that its owner was killed, and puts it back.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::read;

/// What the name of an original ends with while another file has its place.
const BACKUP: &str = ".proofhouse-backup";

/// Why a file cannot be something else for a while.
#[derive(Debug, thiserror::Error)]
pub enum InPlaceError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The path has no last part.
    #[error("this is no file")]
    NoName,
    /// There is nothing there.
    #[error("no such file")]
    NoFile,
    /// The original that was left beside it cannot be looked at.
    #[error("{}: {error}", backup.display())]
    Backup {
        /// The original.
        backup: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Something else has the name of the original.
    #[error("{} must be a file", .0.display())]
    InTheWay(PathBuf),
    /// The original that was left beside it cannot take its place again.
    #[error("cannot be restored from {}: {error}", backup.display())]
    PutBack {
        /// The original.
        backup: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The original cannot be kept beside it.
    #[error("cannot be backed up to {}: {error}", backup.display())]
    Keep {
        /// The original.
        backup: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Somebody else has the lock.
    #[error("another campaign is using this file; wait until it is done")]
    Locked,
}

/// A file that can be something else for a while.
#[derive(Debug)]
pub(crate) struct InPlace {
    file: PathBuf,
    backup: PathBuf,
}

impl InPlace {
    /// Looks at a file, and whether an original is left beside it; that is put back, and `true` returned.
    pub(crate) fn new(file: &Path) -> Result<(Self, bool), InPlaceError> {
        // What links lead to is what is read, so that is what is replaced.
        let file = match file.canonicalize() {
            Ok(file) => file,
            Err(_) => std::path::absolute(file)?,
        };
        let mut name = file.file_name().ok_or(InPlaceError::NoName)?.to_owned();
        name.push(BACKUP);
        let backup = file.with_file_name(name);
        let this = Self { file, backup };
        let restored = this.put_right()?;
        if this.file.is_file() {
            Ok((this, restored))
        } else {
            Err(InPlaceError::NoFile)
        }
    }

    /// The file, whatever links led to it.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Puts back an original that nobody owns.
    fn put_right(&self) -> Result<bool, InPlaceError> {
        let unusable = |error| InPlaceError::Backup {
            backup: self.backup.clone(),
            error,
        };
        match self.backup.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(unusable(error)),
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(InPlaceError::InTheWay(self.backup.clone())),
        }
        let original = File::open(&self.backup).map_err(unusable)?;
        lock(&original)?;
        std::fs::rename(&self.backup, &self.file).map_err(|error| InPlaceError::PutBack {
            backup: self.backup.clone(),
            error,
        })?;
        // Where both names were of one file already, renaming does nothing.
        let _ = std::fs::remove_file(&self.backup);
        unlock(&original);
        Ok(true)
    }

    /// Makes the file this text until what is returned goes away.
    pub(crate) fn put(&self, text: &str) -> Result<Placed, InPlaceError> {
        let original = File::open(&self.file)?;
        lock(&original)?;
        let bytes = read(&self.file)?;
        let other = beside(&self.file, text.as_bytes())?;
        let permissions = original.metadata()?.permissions();
        other.as_file().set_permissions(permissions)?;
        // A second name for the same file: nothing of it can change on the way there and back.
        let linked = std::fs::hard_link(&self.file, &self.backup).or_else(|error| {
            match error.kind() {
                io::ErrorKind::AlreadyExists => Err(error),
                // Some file systems have no second names.
                _ => std::fs::copy(&self.file, &self.backup).map(drop),
            }
        });
        linked.map_err(|error| InPlaceError::Keep {
            backup: self.backup.clone(),
            error,
        })?;
        let placed = Placed {
            file: self.file.clone(),
            backup: self.backup.clone(),
            original: bytes,
            written: text.as_bytes().to_vec(),
            lock: original,
            is_back: false,
        };
        // From here on, dropping it puts everything back.
        other.persist(&self.file).map_err(|error| error.error)?;
        Ok(placed)
    }
}

/// A new file in the same directory, so that it can take the place of the other in one step.
fn beside(file: &Path, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut other = tempfile::Builder::new()
        .prefix(".proofhouse-")
        .tempfile_in(directory)?;
    other.write_all(bytes)?;
    Ok(other)
}

/// Takes the lock of an original, or says who has it.
fn lock(original: &File) -> Result<(), InPlaceError> {
    match original.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(InPlaceError::Locked),
        // Some file systems have no locks.
        Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Gives the lock of an original back. Closing the file is not enough: a process that is just being started holds it, too, until
/// it becomes another program.
fn unlock(original: &File) {
    // Where there are no locks, there is nothing to give back.
    let _ = original.unlock();
}

/// A file that is something else now. Dropping it puts the original back.
#[derive(Debug)]
pub(crate) struct Placed {
    file: PathBuf,
    backup: PathBuf,
    /// Should the subject lay hands on the backup.
    original: Vec<u8>,
    written: Vec<u8>,
    lock: File,
    is_back: bool,
}

impl Placed {
    /// Puts the original back and says what was odd about it.
    pub(crate) fn restore(mut self) -> Vec<String> {
        self.put_back()
    }

    fn put_back(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.is_back, true) {
            return Vec::new();
        }
        let name = self.file.display().to_string();
        let mut odd = Vec::new();
        if read(&self.file).ok().as_ref() != Some(&self.written) {
            odd.push(format!(
                "{name} was changed during the run; it is as it was before"
            ));
        }
        let is_whole = self
            .backup
            .symlink_metadata()
            .is_ok_and(|found| found.is_file())
            && read(&self.backup).is_ok_and(|bytes| bytes == self.original);
        let put = if is_whole {
            std::fs::rename(&self.backup, &self.file)
        } else {
            odd.push(format!("the backup of {name} was changed during the run"));
            // Not through whatever has the name now: that may lead elsewhere.
            let other = beside(&self.file, &self.original);
            other.and_then(|other| Ok(other.persist(&self.file).map(drop)?))
        };
        match put {
            Ok(()) => {
                let _ = std::fs::remove_file(&self.backup);
            }
            Err(error) => odd.push(format!(
                "{name} cannot be put back: {error}; the original is {}",
                self.backup.display()
            )),
        }
        odd
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        self.put_back();
        unlock(&self.lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINAL: &[u8] = b"\xef\xbb\xbf{ \"mcpServers\" :\r\n{} }";

    fn file() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mcp.json");
        std::fs::write(&file, ORIGINAL).unwrap();
        (directory, file)
    }

    fn check_back(directory: &Path, file: &Path) {
        assert_eq!(read(file).unwrap(), ORIGINAL);
        assert_eq!(
            std::fs::read_dir(directory).unwrap().count(),
            1,
            "nothing is left"
        );
    }

    #[test]
    fn it_becomes_what_it_was() {
        let (directory, file) = file();
        let (in_place, restored) = InPlace::new(&file).unwrap();
        assert!(!restored);
        for _ in 0..3 {
            let placed = in_place.put("{}").unwrap();
            assert_eq!(read(&file).unwrap(), b"{}");
            let busy = InPlace::new(&file).unwrap_err();
            assert!(matches!(busy, InPlaceError::Locked), "{busy}");
            assert!(placed.restore().is_empty());
            check_back(directory.path(), &file);
        }
        drop(in_place.put("{}").unwrap());
        check_back(directory.path(), &file);
    }

    #[test]
    fn the_next_one_puts_it_back_when_its_owner_was_killed() {
        let (directory, file) = file();
        let (in_place, _) = InPlace::new(&file).unwrap();
        let mut placed = in_place.put("{}").unwrap();
        // As if the process were gone: the lock with it, the file not put back.
        placed.is_back = true;
        drop(placed);
        assert_eq!(read(&file).unwrap(), b"{}");
        assert!(InPlace::new(&file).unwrap().1);
        check_back(directory.path(), &file);
        // The file itself may be gone, too.
        let mut placed = in_place.put("{}").unwrap();
        placed.is_back = true;
        drop(placed);
        std::fs::remove_file(&file).unwrap();
        assert!(InPlace::new(&file).unwrap().1);
        check_back(directory.path(), &file);
    }

    #[test]
    fn a_subject_that_lays_hands_on_it_changes_nothing() {
        let (directory, file) = file();
        let (in_place, _) = InPlace::new(&file).unwrap();
        let placed = in_place.put("{}").unwrap();
        std::fs::write(&file, "mine").unwrap();
        assert!(placed.restore()[0].contains("was changed during the run"));
        check_back(directory.path(), &file);
        let placed = in_place.put("{}").unwrap();
        std::fs::remove_file(&in_place.backup).unwrap();
        std::fs::write(&in_place.backup, "mine").unwrap();
        assert!(!placed.restore().is_empty());
        check_back(directory.path(), &file);
        let placed = in_place.put("{}").unwrap();
        std::fs::remove_file(&in_place.backup).unwrap();
        std::fs::remove_file(&file).unwrap();
        drop(placed);
        check_back(directory.path(), &file);
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        let placed = in_place.put("{}").unwrap();
        std::fs::remove_file(&in_place.backup).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &file).unwrap();
        drop(placed);
        check_back(directory.path(), &file);
        assert_eq!(read(elsewhere.path()).unwrap(), b"");
        std::fs::create_dir(&in_place.backup).unwrap();
        assert!(matches!(
            InPlace::new(&file),
            Err(InPlaceError::InTheWay(_))
        ));
    }
}
