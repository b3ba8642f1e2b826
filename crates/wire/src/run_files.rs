//! Files that a run writes: a trace that grows line by line and belongs to one run at a time, and a verdict that is
//! written beside its place and moved there when it is whole.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::write_files::WriteError;

/// A trace that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TraceFileError {
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Another run has it.
    #[error("{}: another run is writing this trace", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
}

fn cannot_write(path: &Path, error: io::Error) -> WriteError {
    WriteError {
        path: path.to_owned(),
        error,
    }
}

/// Opens a file for the trace of a run and empties it, unless another run is writing to it.
///
/// # Errors
///
/// Returns an error when another run has it, or it cannot be written.
pub fn create_trace(path: &Path) -> Result<File, TraceFileError> {
    let mut options = OpenOptions::new();
    // Whoever has it must not lose it to us, so it is emptied only once it is ours.
    let opened = options.write(true).create(true).truncate(false).open(path);
    let file = opened.map_err(|error| cannot_write(path, error))?;
    match file.try_lock() {
        // Pipes and devices have no locks, and nothing to lose.
        Ok(()) | Err(TryLockError::Error(_)) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(TraceFileError::Busy {
                path: path.to_owned(),
            });
        }
    }
    if file.metadata().is_ok_and(|found| found.is_file()) {
        file.set_len(0).map_err(|error| cannot_write(path, error))?;
    }
    Ok(file)
}

/// A file that gets its content in one step: until then, what was there before is there.
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    file: File,
    /// Where the content is until it is whole; absent for pipes and devices, which cannot be replaced.
    beside: Option<PathBuf>,
}

impl WholeFile {
    /// Makes sure that the file can be written, and leaves it as it is.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be written.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let failed = |error: io::Error| cannot_write(path, error);
        // A link is followed, so that the file behind it is replaced and the link stays.
        let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if place.metadata().is_ok_and(|found| !found.is_file()) {
            let file = OpenOptions::new()
                .write(true)
                .open(&place)
                .map_err(failed)?;
            return Ok(Self {
                path: place,
                file,
                beside: None,
            });
        }
        if place.exists() {
            // Who may not write the file may not replace it either.
            OpenOptions::new()
                .write(true)
                .open(&place)
                .map_err(failed)?;
        }
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let beside = place.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let file = File::create(&beside).map_err(failed)?;
        Ok(Self {
            path: place,
            file,
            beside: Some(beside),
        })
    }

    /// Writes the content and moves it into its place.
    ///
    /// # Errors
    ///
    /// Returns an error when it cannot be written; what was there before is still there.
    pub fn finish(mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.file.flush()?;
        let Some(beside) = &self.beside else {
            return Ok(());
        };
        self.file.sync_all()?;
        if let Ok(before) = self.path.metadata() {
            self.file.set_permissions(before.permissions())?;
        }
        std::fs::rename(beside, &self.path)?;
        self.beside = None;
        Ok(())
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = std::fs::remove_file(beside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &Path) -> String {
        #[expect(clippy::disallowed_methods, reason = "a file of this test")]
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn what_was_there_stays_until_the_new_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("verdict.json");
        std::fs::write(&path, "old").unwrap();
        let files = || std::fs::read_dir(directory.path()).unwrap().count();
        drop(WholeFile::create(&path).unwrap());
        assert_eq!((text(&path).as_str(), files()), ("old", 1));
        let file = WholeFile::create(&path).unwrap();
        assert_eq!(text(&path), "old");
        file.finish("new\n").unwrap();
        assert_eq!((text(&path).as_str(), files()), ("new\n", 1));
        assert!(WholeFile::create(&directory.path().join("no/where")).is_err());
    }

    #[test]
    fn a_trace_belongs_to_one_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.jsonl");
        std::fs::write(&path, "old").unwrap();
        let mut first = create_trace(&path).unwrap();
        assert_eq!(text(&path), "");
        first.write_all(b"line\n").unwrap();
        let second = create_trace(&path).unwrap_err();
        assert!(matches!(second, TraceFileError::Busy { .. }), "{second}");
        assert_eq!(text(&path), "line\n", "nothing is lost");
        drop(first);
        assert!(create_trace(&path).is_ok());
    }
}
