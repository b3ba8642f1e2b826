//! Bringing the program into a volume: what the init container of a worker does.

use std::io;
use std::path::{Path, PathBuf};

/// What the program is called there.
const NAME: &str = "proofhouse";

/// Why the program is not there.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {error}", path.display())]
pub struct ProgramInstallError {
    path: PathBuf,
    error: io::Error,
}

/// Copies a program into a directory, in one step, and returns where it is. Whoever looks meanwhile sees no half of it.
///
/// # Errors
///
/// If it cannot be read, or the directory cannot be written to.
pub fn install(program: &Path, directory: &Path) -> Result<PathBuf, ProgramInstallError> {
    let place = directory.join(NAME);
    let beside = directory.join(format!(".{NAME}.{}", std::process::id()));
    let copied = std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::copy(program, &beside))
        .and_then(|_| executable(&beside))
        .and_then(|()| std::fs::rename(&beside, &place));
    copied.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        ProgramInstallError {
            path: place.clone(),
            error,
        }
    })?;
    Ok(place)
}

#[cfg(unix)]
fn executable(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn executable(_file: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_copied_whole_and_can_be_run() {
        let directory = tempfile::tempdir().unwrap();
        let volume = directory.path().join("volume");
        let program = install(Path::new("/bin/sh"), &volume).unwrap();
        let ran = std::process::Command::new(&program)
            .args(["-c", "exit 7"])
            .status()
            .unwrap();
        assert_eq!(ran.code(), Some(7));
        let names: Vec<_> = std::fs::read_dir(&volume).unwrap().flatten().collect();
        assert_eq!(names.len(), 1);
        // A second worker of the same volume finds it in use.
        install(Path::new("/bin/sh"), &volume).unwrap();
        let error = install(Path::new("/nowhere"), &volume).unwrap_err();
        assert!(error.to_string().contains("cannot be written"), "{error}");
        assert!(program.exists());
    }
}
