//! `proofhouse conformance`: runs the public vector suite.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::conformance::{self, CaseResult};
use crate::exit_code::Exit;
use crate::output::{CommandError, Data};

/// Run a directory of OATF conformance vectors
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    proofhouse conformance vectors/oatf-conformance\n\n\
    The last line of the human output is `N passed, M failed`.\n\
    Exit codes: 0 all passed, 1 some failed, 64 usage.")]
pub(crate) struct Conformance {
    /// The directory that holds parse/, validate/, normalize/ and the other suites
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// List passed cases too
    #[arg(long)]
    verbose: bool,

    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Human,
    Json,
}

impl Conformance {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let results = conformance::run(&self.dir)?;
        let failed = results
            .iter()
            .filter(|result| result.failure.is_some())
            .count();
        let passed = results.len() - failed;
        let mut data = Data::new();
        match self.format {
            Format::Human => {
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
            Format::Json => {
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
