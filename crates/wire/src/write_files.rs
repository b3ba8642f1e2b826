//! Files that are written: which paths lead to one file, so that nothing that is read is written over, and new
//! files that take no other's place unless they are told to.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What is said of a file whose directory is missing.
const NO_DIRECTORY: &str = "its directory does not exist; create it first";

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot write: {}", path.display(), match error.kind() {
    ErrorKind::AlreadyExists => "it exists already".to_owned(),
    ErrorKind::NotFound => NO_DIRECTORY.to_owned(),
    ErrorKind::PermissionDenied => "permission denied; change to a directory that you may write to".to_owned(),
    _ => error.to_string(),
})]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub error: std::io::Error,
}

/// Writes a new file. One that is there is only replaced with `force`, and then in one step.
///
/// # Errors
///
/// Returns an error when there is one already, or it cannot be written.
pub fn create(path: &Path, text: &str, force: bool) -> Result<(), WriteError> {
    let created = OpenOptions::new().write(true).create_new(true).open(path);
    let written = match created {
        Ok(mut file) => file.write_all(text.as_bytes()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && force => replace(path, text),
        Err(error) => Err(error),
    };
    written.map_err(|error| WriteError {
        path: path.to_owned(),
        error,
    })
}

/// Replaces a file in one step: whoever looks sees the old text or the new one.
///
/// # Errors
///
/// Returns an error when it is not there, or cannot be written.
pub fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    // A link is followed, so that the file behind it is replaced and the link stays.
    let path = fs::canonicalize(path)?;
    let permissions = fs::metadata(&path)?.permissions();
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}

/// Writes a secret to a file that only its owner may read. One that is there is replaced in one step, and is as private then.
///
/// # Errors
///
/// Returns an error when it cannot be written.
pub fn create_private(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    // Such files are made for their owner alone.
    let mut file = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let private = fs::Permissions::from_mode(0o600);
        file.as_file().set_permissions(private)?;
    }
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Whether two paths lead to one file. Devices and pipes may be given twice.
#[must_use]
pub fn same_file(a: &Path, b: &Path) -> bool {
    let is_special = |path: &Path| path.metadata().is_ok_and(|found| !found.is_file());
    if is_special(a) || is_special(b) {
        return false;
    }
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (a.metadata(), b.metadata()) {
        use std::os::unix::fs::MetadataExt;
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// The whole path of a file that may not be there yet.
fn whole(path: &Path) -> Option<PathBuf> {
    if let Ok(found) = path.canonicalize() {
        return Some(found);
    }
    let directory = match path.parent()? {
        here if here.as_os_str().is_empty() => Path::new("."),
        directory => directory,
    };
    Some(directory.canonicalize().ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do() {
        let told = |kind: ErrorKind| {
            let (path, error) = (PathBuf::from("a.yaml"), kind.into());
            WriteError { path, error }.to_string()
        };
        assert_eq!(
            told(ErrorKind::PermissionDenied),
            "a.yaml: cannot write: permission denied; change to a directory that you may write to"
        );
        assert!(told(ErrorKind::AlreadyExists).ends_with("it exists already"));
    }
}
