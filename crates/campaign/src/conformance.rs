//! The public conformance suites of the threat format in a directory, run case by case.

use std::path::{Path, PathBuf};

use proofhouse_oatf::ReadLimits;
use proofhouse_oatf::conformance::{self, CaseResult, DOCUMENT_FOLDERS};
use proofhouse_wire::files::{FileInput, Unreadable, files_in};

/// Why suites could not be run.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ConformanceError {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

impl ConformanceError {
    fn new(path: &Path, reason: &dyn std::fmt::Display) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

/// Runs every suite in a directory.
///
/// # Errors
///
/// Returns an error when a suite cannot be read, or there is none.
pub fn run_suites(directory: &Path) -> Result<Vec<CaseResult>, ConformanceError> {
    if !directory.is_dir() {
        return Err(ConformanceError::new(directory, &"no such directory"));
    }
    let mut results = Vec::new();
    for (suite, must_parse) in DOCUMENT_FOLDERS {
        let folder = directory.join(suite);
        if folder.is_dir() {
            documents(suite, &folder, must_parse, &mut results)?;
        }
    }
    for file in conformance::suite_files() {
        let path = directory.join(file);
        if path.exists() {
            let text = FileInput::File(path.clone()).read(conformance::MAX_BYTES);
            let text = text.map_err(|error| ConformanceError::new(&path, &error))?;
            let cases = conformance::run_suite(file, &text);
            results.extend(cases.map_err(|error| ConformanceError::new(&path, &error))?);
        }
    }
    if results.is_empty() {
        return Err(ConformanceError::new(
            directory,
            &"no suite in this directory",
        ));
    }
    Ok(results)
}

/// Runs a folder in which each file is a case.
fn documents(
    suite: &str,
    folder: &Path,
    must_parse: bool,
    results: &mut Vec<CaseResult>,
) -> Result<(), ConformanceError> {
    let inputs = files_in(folder).map_err(|error| ConformanceError::new(folder, &error))?;
    for input in inputs {
        let FileInput::File(path) = &input else {
            continue;
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".meta.yaml") {
            continue;
        }
        let failure = match input.read(ReadLimits::default().max_bytes) {
            Ok(text) => conformance::parse_failure(&text, must_parse),
            Err(Unreadable::Io(error)) => return Err(ConformanceError::new(path, &error)),
            // What cannot be a text is not parsed, either.
            Err(error) => must_parse.then(|| error.to_string()),
        };
        results.push(CaseResult {
            suite: suite.to_owned(),
            id: name.into_owned(),
            name: String::new(),
            failure,
        });
    }
    Ok(())
}
