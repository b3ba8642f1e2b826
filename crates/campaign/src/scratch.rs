//! The directories that runs have for themselves: all of a campaign in one, which goes away with it. What a
//! campaign left that was killed goes away when the next one begins.
//!
//! Whether a campaign still lives is told by a lock on a file in its directory, which the system gives back
//! when a process ends, however it does. Whoever has the lock owns the directory: its campaign, or a later
//! one that removes it. So nobody takes a directory from under a campaign that is just making it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// How the names of the directories begin.
const PREFIX: &str = "proofhouse-run-";
/// The file in the directory of a campaign that is locked while it lives.
const LOCK: &str = "campaign.lock";
/// Entries of the directory for temporary files that are looked at; more are somebody else's trouble.
const MAX_LOOKED_AT: usize = 100_000;
/// Directories that one campaign removes. What is left, the next ones do.
const MAX_REMOVED: usize = 1_000;
/// How often a directory may be taken away while it is made. Once is bad luck already.
const ATTEMPTS: usize = 10;

/// The directory of a campaign for those of its runs.
#[derive(Debug)]
pub struct ScratchDirectory {
    directory: TempDir,
    /// Given back when the campaign ends, after the directory is gone: fields are dropped in this order.
    _lock: File,
}

impl ScratchDirectory {
    /// Makes the directory of a campaign among the temporary files, and removes what others left there.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be made.
    pub fn new() -> io::Result<Self> {
        Self::below(&std::env::temp_dir())
    }

    fn below(parent: &Path) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            if let Some(lock) = own(directory.path())? {
                let scratch = Self {
                    directory,
                    _lock: lock,
                };
                scratch.sweep(parent);
                return Ok(scratch);
            }
        }
        Err(io::Error::other("others take the directory away"))
    }

    /// A directory for one run, which goes away with what is returned.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be made.
    pub fn run(&self) -> io::Result<TempDir> {
        tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(self.directory.path())
    }

    /// Removes the directories of campaigns that are gone. What cannot be removed is left alone.
    fn sweep(&self, parent: &Path) {
        let Ok(entries) = std::fs::read_dir(parent) else {
            return;
        };
        let left = entries
            .take(MAX_LOOKED_AT)
            .filter_map(Result::ok)
            .filter(|entry| {
                entry
                    .file_name()
                    .as_encoded_bytes()
                    .starts_with(PREFIX.as_bytes())
            })
            .map(|entry| entry.path())
            .filter(|path| path != self.directory.path() && self.is_of_the_same_user(path));
        for path in left.take(MAX_REMOVED) {
            remove(&path);
        }
    }

    /// Whether a path is a directory, not a link to one, of whoever runs this.
    fn is_of_the_same_user(&self, path: &Path) -> bool {
        let metadata = |path: &Path| std::fs::symlink_metadata(path).ok();
        let (Some(other), Some(ours)) = (metadata(path), metadata(self.directory.path())) else {
            return false;
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            other.is_dir() && other.uid() == ours.uid()
        }
        #[cfg(not(unix))]
        {
            let _ = ours;
            other.is_dir()
        }
    }
}

/// Takes a directory for oneself; `None` when somebody else has it, or had it and removed it.
fn own(directory: &Path) -> io::Result<Option<File>> {
    let path = directory.join(LOCK);
    // A subject may have put anything there, also what blocks whoever opens it.
    if std::fs::symlink_metadata(&path).is_ok_and(|there| !there.is_file()) {
        return Ok(None);
    }
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => Ok(is_still_there(&file, &path).then_some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Whether the file that is open is the one at this path, and not one that was removed meanwhile.
fn is_still_there(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (Ok(open), Ok(there)) = (file.metadata(), std::fs::symlink_metadata(path)) else {
            return false;
        };
        (open.dev(), open.ino()) == (there.dev(), there.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

fn remove(directory: &Path) {
    let Ok(Some(lock)) = own(directory) else {
        return;
    };
    // Under another name, so that whoever is just making it finds nothing there, and not a part of it.
    let mut gone = directory.as_os_str().to_owned();
    gone.push(".gone");
    if std::fs::rename(directory, &gone).is_ok() {
        let _ = std::fs::remove_dir_all(&gone);
    }
    drop(lock);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_campaign_left_goes_and_what_a_living_one_has_stays() {
        let parent = tempfile::tempdir().unwrap();
        let living = ScratchDirectory::below(parent.path()).unwrap();
        let run = living.run().unwrap();
        let dead = parent.path().join("proofhouse-run-dead");
        std::fs::create_dir_all(dead.join("run-1/deep")).unwrap();
        std::fs::write(dead.join(LOCK), "").unwrap();
        let older = parent.path().join("proofhouse-run-older");
        std::fs::create_dir(&older).unwrap();
        let others = parent.path().join("something-else");
        std::fs::create_dir(&others).unwrap();
        let next = ScratchDirectory::below(parent.path()).unwrap();
        assert!(!dead.exists() && !older.exists());
        assert!(run.path().exists() && others.exists());
        drop(run);
        drop(living);
        drop(next);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let (parent, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(elsewhere.path().join("precious"), "").unwrap();
        let link = parent.path().join("proofhouse-run-link");
        std::os::unix::fs::symlink(elsewhere.path(), link).unwrap();
        drop(ScratchDirectory::below(parent.path()).unwrap());
        assert!(elsewhere.path().join("precious").exists());
    }

    #[test]
    fn many_campaigns_begin_at_once() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let scratch = ScratchDirectory::below(parent.path()).unwrap();
                        let run = scratch.run().unwrap();
                        std::thread::yield_now();
                        assert!(run.path().exists(), "somebody took it");
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
