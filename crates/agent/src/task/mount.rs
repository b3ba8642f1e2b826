//! Mounts: a directory that expressions of an agent's tools may read and write, and nothing outside.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use proofhouse_manifest::MountScope;
use proofhouse_tools::runtime::{Files, MountError};

/// What one file may hold.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// How deep directories may lie.
const MAX_DEPTH: usize = 16;

/// Directories on this machine, one for each scope of an agent.
#[derive(Debug, Clone)]
pub struct DirectoryMount {
    scopes: Vec<(MountScope, ScopeDirectory)>,
}

/// The directory of one scope.
#[derive(Debug, Clone)]
struct ScopeDirectory {
    root: PathBuf,
}

impl DirectoryMount {
    /// The part of `root` that a task of an agent may use; `None` if the agent has no mount.
    #[must_use]
    pub fn scoped(
        root: &Path,
        scopes: &[MountScope],
        namespace: &str,
        agent: &str,
        task: &str,
    ) -> Option<Self> {
        let directory = |scope: MountScope| {
            let mut directory = root.join(safe(namespace));
            match scope {
                MountScope::Workspace => {}
                MountScope::Agent => directory.push(safe(agent)),
                MountScope::Task => {
                    directory.push(safe(agent));
                    directory.push(safe(task));
                }
            }
            ScopeDirectory { root: directory }
        };
        let scopes = scopes.iter().map(|scope| (*scope, directory(*scope)));
        let scopes: Vec<_> = scopes.collect();
        (!scopes.is_empty()).then_some(Self { scopes })
    }

    /// Where the first of its scopes is, as `{mount.prefix}` says it.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.scopes
            .first()
            .map_or(Path::new(""), |(_, directory)| &directory.root)
    }

    /// The directory and the path in it that a reference means: `agent://notes/one.txt`, or a path alone where there is but
    /// one scope.
    fn find<'r>(&self, reference: &'r str) -> Result<(&ScopeDirectory, &'r str), MountError> {
        let (scheme, path) = match reference.split_once("://") {
            Some((scheme, path)) => (Some(scheme), path),
            None => (None, reference),
        };
        let found = match (scheme, &self.scopes[..]) {
            (None, [(_, only)]) => Some(only),
            (None, _) => None,
            (Some(scheme), scopes) => {
                let mut scopes = scopes.iter();
                let found = scopes.find(|(scope, _)| scope.name() == scheme);
                found.map(|(_, directory)| directory)
            }
        };
        let found = found.ok_or_else(|| {
            let roots = self.scopes.iter();
            let roots: Vec<String> = roots
                .map(|(scope, _)| format!("{}://", scope.name()))
                .collect();
            MountError::NoSuchRoot {
                path: reference.to_owned(),
                roots: roots.join(", "),
            }
        })?;
        Ok((found, path))
    }
}

impl Files for DirectoryMount {
    fn read(&self, path: &str) -> Result<String, MountError> {
        let (directory, path) = self.find(path)?;
        directory.read(path)
    }

    fn write(&self, path: &str, content: &str) -> Result<(), MountError> {
        let (directory, path) = self.find(path)?;
        directory.write(path, content)
    }
}

impl ScopeDirectory {
    fn read(&self, path: &str) -> Result<String, MountError> {
        let file = self.resolve(path)?;
        let file = fs::File::open(&file).map_err(|error| failed(path, error))?;
        let mut bytes = Vec::new();
        #[expect(clippy::disallowed_methods, reason = "`take` caps it")]
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| failed(path, error))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(MountError::TooLarge {
                path: path.to_owned(),
                max_bytes: MAX_FILE_BYTES,
            });
        }
        String::from_utf8(bytes).map_err(|_| MountError::NotText {
            path: path.to_owned(),
        })
    }

    fn write(&self, path: &str, content: &str) -> Result<(), MountError> {
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(MountError::TooLargeToWrite {
                path: path.to_owned(),
                max_bytes: MAX_FILE_BYTES,
            });
        }
        let file = self.resolve(path)?;
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).map_err(|error| failed(path, error))?;
        }
        // Directories may be there since before; a link among them must not lead out.
        self.stays_inside(&file, path)?;
        fs::write(&file, content).map_err(|error| failed(path, error))
    }
    fn resolve(&self, path: &str) -> Result<PathBuf, MountError> {
        let relative = Path::new(path.trim_start_matches('/'));
        let plain = relative
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let depth = relative.components().count();
        if !plain || depth == 0 || depth > MAX_DEPTH || path.contains('\0') {
            return Err(outside(path));
        }
        let file = self.root.join(relative);
        self.stays_inside(&file, path)?;
        Ok(file)
    }

    /// Whether what is there already of a path, links resolved, lies inside the mount.
    fn stays_inside(&self, file: &Path, path: &str) -> Result<(), MountError> {
        fs::create_dir_all(&self.root).map_err(|error| failed(path, error))?;
        let root = self
            .root
            .canonicalize()
            .map_err(|error| failed(path, error))?;
        let there = file
            .ancestors()
            .find(|part| part.symlink_metadata().is_ok());
        match there.map(Path::canonicalize) {
            Some(Ok(real)) if real.starts_with(&root) => Ok(()),
            _ => Err(outside(path)),
        }
    }
}

fn outside(path: &str) -> MountError {
    MountError::Outside {
        path: path.to_owned(),
    }
}

fn failed(path: &str, source: io::Error) -> MountError {
    MountError::Io {
        path: path.to_owned(),
        source,
    }
}

/// A name as one part of a path.
fn safe(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = name
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    if name.is_empty() {
        "_".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_is_reached() {
        let directory = tempfile::tempdir().unwrap();
        let outside = directory.path().join("outside.txt");
        fs::write(&outside, "secret").unwrap();
        let mount =
            DirectoryMount::scoped(directory.path(), &[MountScope::Task], "demo", "a", "t/../1")
                .unwrap();
        assert!(mount.root().ends_with("demo/a/t____1"));
        mount.write("notes/one.txt", "first").unwrap();
        assert_eq!(mount.read("/notes/one.txt").unwrap(), "first");
        for path in [
            "../outside.txt",
            "notes/../../../../outside.txt",
            "",
            "/",
            "a\0b",
            "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r",
        ] {
            assert!(mount.read(path).is_err(), "{path}");
            assert!(mount.write(path, "x").is_err(), "{path}");
        }
        std::os::unix::fs::symlink(&outside, mount.root().join("link.txt")).unwrap();
        std::os::unix::fs::symlink(directory.path(), mount.root().join("up")).unwrap();
        for path in ["link.txt", "up/outside.txt", "up/new.txt"] {
            assert!(mount.read(path).is_err(), "{path}");
            assert!(mount.write(path, "x").is_err(), "{path}");
        }
        assert_eq!(fs::metadata(&outside).unwrap().len(), 6);
    }

    #[test]
    fn scopes_are_directories() {
        let root = Path::new("/m");
        let of = |scopes: &[MountScope]| {
            let mount = DirectoryMount::scoped(root, scopes, "n", "a", "t");
            mount.map(|mount| mount.root().to_owned())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[MountScope::Workspace]), Some("/m/n".into()));
        assert_eq!(of(&[MountScope::Agent]), Some("/m/n/a".into()));
        assert_eq!(of(&[MountScope::Task]), Some("/m/n/a/t".into()));
    }

    #[test]
    fn a_reference_names_its_scope() {
        let directory = tempfile::tempdir().unwrap();
        let scopes = [MountScope::Workspace, MountScope::Agent];
        let mount = DirectoryMount::scoped(directory.path(), &scopes, "n", "a", "t").unwrap();
        mount.write("agent://notes/one.txt", "own").unwrap();
        mount.write("workspace://notes/one.txt", "shared").unwrap();
        assert_eq!(mount.read("agent://notes/one.txt").unwrap(), "own");
        assert_eq!(mount.read("workspace://a/notes/one.txt").unwrap(), "own");
        for refused in [
            "task://x",
            "notes/one.txt",
            "file:///etc/passwd",
            "Agent://x",
        ] {
            let error = mount.read(refused).unwrap_err().to_string();
            assert!(error.contains("workspace://, agent://"), "{error}");
        }
        for outside in ["agent://../x", "agent:///", "agent://a://../../x"] {
            assert!(mount.write(outside, "x").is_err(), "{outside}");
        }
        // With one scope a path alone will do.
        let scopes = [MountScope::Agent];
        let mount = DirectoryMount::scoped(directory.path(), &scopes, "n", "a", "t").unwrap();
        assert_eq!(mount.read("notes/one.txt").unwrap(), "own");
        assert_eq!(mount.read("agent://notes/one.txt").unwrap(), "own");
    }
}
