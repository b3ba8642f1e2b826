//! Where the guards of one session find each other: a directory that only their user can enter, with a socket for each.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proofhouse_wire::files::FileInput;
use proofhouse_wire::fnv;
use tokio::net::UnixListener;

/// How long one waits for others that join or leave.
const LOCK_TIME: Duration = Duration::from_secs(5);

/// How often one looks whether they are done.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The longest path that a socket can have everywhere.
const MAX_SOCKET_PATH: usize = 103;

/// The longest name of a session.
const MAX_NAME: usize = 200;

/// The most that the system says about a process.
const MAX_STAT: usize = 64 << 10;

/// What the names of sockets end with.
const SOCKET: &str = "sock";

/// Sockets that this process made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Why guards cannot share a session.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// The name says nothing, or too much.
    #[error("a session has a name of 1 to {MAX_NAME} bytes")]
    Name,
    /// There is no process that started this one and is still there.
    #[error("the process that started this guard cannot be told")]
    Parent,
    /// Others could get at the directory.
    #[error("{}: {problem}", path.display())]
    Place {
        /// The directory.
        path: PathBuf,
        /// Why it cannot be used.
        problem: &'static str,
    },
    /// The system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Which guards share a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedBy {
    /// Those that were given this name.
    Name(String),
    /// Those that the process started that started this one.
    Parent,
}

/// Which guards share a session, and where they meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareSetup {
    /// Which.
    pub by: SharedBy,
    /// The directory for sockets of this user, such as that of `XDG_RUNTIME_DIR`; one for temporary files where there is none.
    pub runtime: Option<PathBuf>,
}

impl ShareSetup {
    /// Those of a name if there is one, or else those of the parent, unless a guard is to be alone.
    #[must_use]
    pub fn chosen(name: Option<String>, is_alone: bool, runtime: Option<String>) -> Option<Self> {
        let parent = (!is_alone).then_some(SharedBy::Parent);
        Some(Self {
            by: name.map(SharedBy::Name).or(parent)?,
            runtime: runtime.map(PathBuf::from),
        })
    }
}

impl SharedBy {
    /// What the directory is called.
    fn key(&self) -> Result<String, ShareError> {
        let text = match self {
            Self::Name(name) if name.trim().is_empty() || name.len() > MAX_NAME => {
                return Err(ShareError::Name);
            }
            Self::Name(name) => format!("name {name}"),
            Self::Parent => {
                let parent = std::os::unix::process::parent_id();
                // What the first process adopted was started by somebody who is gone.
                if parent <= 1 {
                    return Err(ShareError::Parent);
                }
                format!("parent {parent} {}", started_at(parent).unwrap_or_default())
            }
        };
        Ok(format!("{:016x}", fnv::hash_64(text.bytes())))
    }
}

/// When a process was started, where the system says so: numbers of processes are used again.
fn started_at(process: u32) -> Option<String> {
    let file = FileInput::File(format!("/proc/{process}/stat").into());
    let stat = file.read(MAX_STAT).ok()?;
    // The name before it may have anything in it.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19).map(str::to_owned)
}

/// The directory of one session.
#[derive(Debug, Clone)]
pub(super) struct SharePlace {
    base: PathBuf,
    directory: PathBuf,
}

/// A socket that others find, until it is dropped.
pub(super) struct OwnSocket {
    pub(super) listener: UnixListener,
    file: SocketFile,
}

/// The file of a socket.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    place: SharePlace,
}

impl SocketFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        // Only the last one succeeds. Whoever joins meanwhile makes it again.
        let _ = std::fs::remove_dir(&self.place.directory);
    }
}

impl OwnSocket {
    pub(super) fn into_parts(self) -> (UnixListener, SocketFile) {
        (self.listener, self.file)
    }
}

impl SharePlace {
    /// The place of a session, made if it is not there.
    pub(super) fn open(setup: &ShareSetup) -> Result<Self, ShareError> {
        let key = setup.by.key()?;
        let user = rustix::process::geteuid().as_raw();
        let runtime = setup.runtime.as_deref();
        let runtime = runtime.filter(|path| path.is_absolute() && path.is_dir());
        let base = match runtime {
            Some(runtime) => runtime.join("proofhouse-guard"),
            None => std::env::temp_dir().join(format!("proofhouse-guard-{user}")),
        };
        own_directory(&base, user)?;
        let directory = base.join(key);
        Ok(Self { base, directory })
    }

    /// Holds the place, so that one joins after the other.
    pub(super) async fn hold(&self) -> Result<File, ShareError> {
        let failed = |error| ShareError::Io {
            path: self.base.clone(),
            error,
        };
        let file = File::open(&self.base).map_err(failed)?;
        let locking = async {
            loop {
                match file.try_lock() {
                    Ok(()) => return Ok(()),
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
                    Err(TryLockError::Error(error)) => return Err(error),
                }
            }
        };
        let locked = tokio::time::timeout(LOCK_TIME, locking).await;
        let late = || io::Error::new(io::ErrorKind::TimedOut, "another guard keeps it locked");
        locked.map_err(|_| failed(late()))?.map_err(failed)?;
        Ok(file)
    }

    /// Makes a socket of our own.
    pub(super) fn bind(&self) -> Result<OwnSocket, ShareError> {
        let user = rustix::process::geteuid().as_raw();
        own_directory(&self.directory, user)?;
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{made}.{SOCKET}", std::process::id());
        let path = self.directory.join(name);
        if path.as_os_str().len() > MAX_SOCKET_PATH {
            let problem = "the path is too long for a socket";
            return Err(ShareError::Place { path, problem });
        }
        let failed = |error| ShareError::Io {
            path: path.clone(),
            error,
        };
        // One of a process that had our number before.
        let _ = std::fs::remove_file(&path);
        let listener = match UnixListener::bind(&path) {
            // Whoever left last took the directory with it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                own_directory(&self.directory, user)?;
                UnixListener::bind(&path).map_err(failed)?
            }
            bound => bound.map_err(failed)?,
        };
        let rights = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, rights).map_err(failed)?;
        Ok(OwnSocket {
            listener,
            file: SocketFile {
                path,
                place: self.clone(),
            },
        })
    }

    /// The sockets of others.
    pub(super) fn others(&self, own: &SocketFile) -> Result<Vec<PathBuf>, ShareError> {
        let failed = |error| ShareError::Io {
            path: self.directory.clone(),
            error,
        };
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_socket = path
                .extension()
                .is_some_and(|extension| extension == SOCKET);
            if is_socket && path != own.path {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Makes a directory that only we can enter, or makes sure that one is.
fn own_directory(path: &Path, user: u32) -> Result<(), ShareError> {
    let made = DirBuilder::new().mode(0o700).create(path);
    if let Err(error) = made
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        let path = path.to_owned();
        return Err(ShareError::Io { path, error });
    }
    let known = std::fs::symlink_metadata(path).map_err(|error| ShareError::Io {
        path: path.to_owned(),
        error,
    })?;
    let problem = if !known.is_dir() {
        "this is no directory"
    } else if known.uid() != user {
        "this directory belongs to somebody else"
    } else if known.mode() & 0o077 != 0 {
        "others can enter this directory; take their rights away"
    } else {
        return Ok(());
    };
    let path = path.to_owned();
    Err(ShareError::Place { path, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_others_can_enter_is_not_used() {
        let scratch = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let path = scratch.path().join("place");
        own_directory(&path, user).unwrap();
        own_directory(&path, user).unwrap();
        assert!(own_directory(&path, user + 1).is_err(), "somebody else's");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        assert!(own_directory(&path, user).is_err(), "a group may enter it");
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(scratch.path(), &link).unwrap();
        assert!(own_directory(&link, user).is_err(), "a link");
    }

    #[test]
    fn names_and_parents_have_places_of_their_own() {
        let key = |name: &str| SharedBy::Name(name.to_owned()).key();
        assert_eq!(key("a").unwrap(), key("a").unwrap());
        assert_ne!(key("a").unwrap(), key("b").unwrap());
        assert_ne!(key("a").unwrap(), SharedBy::Parent.key().unwrap());
        assert!(matches!(key(" "), Err(ShareError::Name)));
        assert!(matches!(key(&"x".repeat(201)), Err(ShareError::Name)));
    }
}
