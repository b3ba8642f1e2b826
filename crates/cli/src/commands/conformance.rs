//! `proofhouse conformance`: runs the public vector suite.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use proofhouse_campaign::conformance::run_suites;
use proofhouse_oatf::conformance::CaseResult;
use serde_json::json;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData};

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
        let results = run_suites(&self.dir);
        let results = results.map_err(|error| CommandError::of(&error, true))?;
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
