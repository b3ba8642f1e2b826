//! `proofhouse conformance`: runs the public vector suite.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use proofhouse_oatf::ReadLimits;
use proofhouse_oatf::conformance::{self, CaseResult, DOCUMENT_FOLDERS};
use proofhouse_wire::files::files_in;
use serde_json::json;

use crate::exit_code::Exit;
use crate::input::{FileInput, Unreadable};
use crate::output::{CommandError, StdoutData, printable_line};

/// Run the OATF conformance tests in a directory
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    proofhouse conformance vectors/oatf-conformance\n\n\
    The last line of the human output is `N passed, M failed`.\n\n\
    Exit codes:\n  \
    0   all cases passed\n  \
    1   some cases failed\n  \
    64  invalid arguments")]
pub(crate) struct Conformance {
    /// The directory that contains parse/, validate/, normalize/ and the other suites
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Also list the cases that passed
    #[arg(long)]
    verbose: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t = ConformanceFormat::Human)]
    format: ConformanceFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ConformanceFormat {
    Human,
    Json,
}

impl Conformance {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let results = run(&self.dir)?;
        let failed = results
            .iter()
            .filter(|result| result.failure.is_some())
            .count();
        let passed = results.len() - failed;
        let mut data = StdoutData::new();
        match self.format {
            ConformanceFormat::Human => {
                for CaseResult {
                    suite,
                    id,
                    name,
                    failure,
                } in &results
                {
                    match failure {
                        Some(failure) => {
                            data.line(&format!("FAIL {suite} {id} {name}\n     {failure}"))?;
                        }
                        None if self.verbose => data.line(&format!("ok   {suite} {id} {name}"))?,
                        None => {}
                    }
                }
                data.line(&format!("{passed} passed, {failed} failed"))?;
            }
            ConformanceFormat::Json => {
                let cases: Vec<_> = results
                    .iter()
                    .map(|result| {
                        json!({
                            "suite": result.suite,
                            "id": result.id,
                            "name": result.name,
                            "passed": result.failure.is_none(),
                            "failure": result.failure,
                        })
                    })
                    .collect();
                data.json(&json!({"passed": passed, "failed": failed, "cases": cases}))?;
            }
        }
        data.finish()?;
        Ok(if failed == 0 {
            Exit::Success
        } else {
            Exit::Failure
        })
    }
}

/// Runs every suite in a directory.
fn run(directory: &Path) -> Result<Vec<CaseResult>, CommandError> {
    let wrong = |path: &Path, reason: &dyn std::fmt::Display| {
        CommandError::usage(printable_line(&format!("{}: {reason}", path.display())))
    };
    if !directory.is_dir() {
        return Err(wrong(directory, &"no such directory"));
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
            let text = text.map_err(|error| wrong(&path, &error))?;
            let cases = conformance::run_suite(file, &text);
            results.extend(cases.map_err(|error| wrong(&path, &error))?);
        }
    }
    if results.is_empty() {
        return Err(wrong(directory, &"no suite in this directory"));
    }
    Ok(results)
}

/// Runs a folder in which each file is a case.
fn documents(
    suite: &str,
    folder: &Path,
    must_parse: bool,
    results: &mut Vec<CaseResult>,
) -> Result<(), CommandError> {
    for input in files_in(folder)? {
        let FileInput::File(path) = &input else {
            continue;
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".meta.yaml") {
            continue;
        }
        let failure = match input.read(ReadLimits::default().max_bytes) {
            Ok(text) => conformance::parse_failure(&text, must_parse),
            Err(Unreadable::Io(error)) => return Err(error.into()),
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
