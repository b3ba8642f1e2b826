//! The directory a command works in: a copy of another, if wanted, and not more in it than it may have.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use proofhouse_wire::CancellationToken;
use tokio::task::JoinHandle;

/// Files that are copied for a run. What has more, such as installed packages, is better used where it is.
const MAX_FILES: usize = 20_000;
/// Bytes that are copied for a run.
const MAX_BYTES: u64 = 512 << 20;
/// How deep directories are looked into.
const MAX_DEPTH: usize = 64;
/// What a run may write, if nobody says otherwise: far more than agents do, far less than disks have.
const USUAL_DISK: u64 = 1 << 30;
/// Files that a run may make, for the same reason; each needs a place, even when it is empty.
const MAX_FILES_OF_RUN: u64 = 200_000;
/// How often is looked how much there is.
const LOOK: Duration = Duration::from_millis(250);
/// Looking may take one part in this many of the time.
const SHARE: u32 = 10;

/// Where results and schemas of ours are kept in a project. An agent gets none of it: results say how it was attacked
/// before, and those of this campaign come and go while it is copied.
const OWN_DIRECTORY: &str = ".proofhouse";

/// Why a directory cannot be copied for a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    #[error("{}: cannot be copied: {error}", from.display())]
    Io { from: PathBuf, error: io::Error },
    #[error("{}: {what} cannot be copied for every run; run the command where it is", from.display())]
    TooMuch { from: PathBuf, what: String },
}

/// Copies what is in a directory into another that is there already.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), CopyError> {
    let mut left = (MAX_FILES, MAX_BYTES);
    copy_below(from, to, &mut left, 0)
}

fn copy_below(
    from: &Path,
    to: &Path,
    left: &mut (usize, u64),
    depth: usize,
) -> Result<(), CopyError> {
    let failed = |error: io::Error| CopyError::Io {
        from: from.to_owned(),
        error,
    };
    let too_much = |what: String| {
        Err(CopyError::TooMuch {
            from: from.to_owned(),
            what,
        })
    };
    if depth > MAX_DEPTH {
        return too_much(format!("more than {MAX_DEPTH} directories in each other"));
    }
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if depth == 0 && entry.file_name() == OWN_DIRECTORY {
            continue;
        }
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let found = source.symlink_metadata().map_err(failed)?;
        left.0 = left.0.saturating_sub(1);
        if left.0 == 0 {
            return too_much(format!("more than {MAX_FILES} files"));
        }
        if found.is_dir() {
            fs::create_dir(&target).map_err(failed)?;
            copy_below(&source, &target, left, depth + 1)?;
        } else if found.is_symlink() {
            let link = fs::read_link(&source).map_err(failed)?;
            symlink(link, &target).map_err(failed)?;
        } else if found.is_file() {
            left.1 = match left.1.checked_sub(found.len()) {
                Some(left) => left,
                None => return too_much(format!("more than {} MiB", MAX_BYTES >> 20)),
            };
            fs::copy(&source, &target).map_err(failed)?;
        }
        // Sockets and pipes belong to somebody who runs already.
    }
    Ok(())
}

/// How much is in a directory: bytes on the disk, and files.
fn usage(directory: &Path) -> (u64, u64) {
    let (mut bytes, mut files) = (0_u64, 0_u64);
    let mut open = vec![(directory.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            // Who has that many has too many, and we need not count them all.
            if files > 2 * MAX_FILES_OF_RUN {
                return (bytes, files);
            }
            let Ok(found) = entry.path().symlink_metadata() else {
                continue;
            };
            files += 1;
            bytes = bytes.saturating_add(found.blocks().saturating_mul(512));
            if found.is_dir() && depth < MAX_DEPTH {
                open.push((entry.path(), depth + 1));
            }
        }
    }
    (bytes, files)
}

/// Looks after how much is written into a directory.
pub(crate) struct Watch {
    full: CancellationToken,
    why: Arc<OnceLock<String>>,
    looking: JoinHandle<()>,
}

impl Watch {
    /// Begins to look; what is there now does not count. When there is too much, `end` is called.
    pub(crate) fn begin(
        directory: PathBuf,
        limit: Option<u64>,
        end: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let limit = limit.unwrap_or(USUAL_DISK);
        let (full, why) = (CancellationToken::new(), Arc::new(OnceLock::new()));
        let (is_full, reason, end) = (full.clone(), Arc::clone(&why), Arc::new(end));
        let looking = tokio::spawn(async move {
            let look = move || {
                let begun = Instant::now();
                (usage(&directory), begun.elapsed())
            };
            let look = Arc::new(look);
            let mut before = None;
            loop {
                let look = Arc::clone(&look);
                let Ok(((bytes, files), took)) = tokio::task::spawn_blocking(move || look()).await
                else {
                    return;
                };
                let (bytes_before, files_before) = *before.get_or_insert((bytes, files));
                let too_much = if bytes.saturating_sub(bytes_before) > limit {
                    Some(format!("more than {} into", shown(limit)))
                } else if files.saturating_sub(files_before) > MAX_FILES_OF_RUN {
                    Some(format!("more than {MAX_FILES_OF_RUN} files into"))
                } else {
                    None
                };
                if let Some(too_much) = too_much {
                    let _ = reason.set(format!(
                        "the command wrote {too_much} its directory, and was ended"
                    ));
                    is_full.cancel();
                    let _ = tokio::task::spawn_blocking(move || end()).await;
                    return;
                }
                tokio::time::sleep(LOOK.max(took * SHARE)).await;
            }
        });
        Self { full, why, looking }
    }

    /// Is cancelled when there is too much.
    pub(crate) fn full(&self) -> CancellationToken {
        self.full.clone()
    }

    /// Why the command was ended, if it was.
    pub(crate) fn reason(&self) -> Option<String> {
        self.why.get().cloned()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

fn shown(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 && bytes % (1 << 30) == 0 => format!("{} GiB", bytes >> 30),
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_everything_but_our_results_and_follows_no_link() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("sub")).unwrap();
        fs::write(from.path().join("sub/.hidden"), "x").unwrap();
        symlink("/", from.path().join("all")).unwrap();
        fs::create_dir_all(from.path().join(".proofhouse/results")).unwrap();
        copy(from.path(), to.path()).unwrap();
        assert!(to.path().join("sub/.hidden").is_file());
        assert!(to.path().join("all").is_symlink());
        assert!(!to.path().join(".proofhouse").exists(), "results of ours");
        assert_eq!(usage(to.path()).1, 3);
        let error = copy(&from.path().join("none"), to.path()).unwrap_err();
        assert!(matches!(error, CopyError::Io { .. }), "{error}");
    }

    #[test]
    fn sizes_are_readable() {
        for (bytes, text) in [(1 << 30, "1 GiB"), (5 << 20, "5 MiB"), (7, "7 bytes")] {
            assert_eq!(shown(bytes), text);
        }
    }
}
