//! Runs a document with one `mcp_client` actor against a URL, for the conformance suite of MCP.
//!
//! `mcp_client DIRECTORY URL`: the document is `DIRECTORY/<scenario>.yaml`, where the suite names
//! the scenario in `MCP_CONFORMANCE_SCENARIO`, with `/` as `-`.

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

use proofhouse_range::{ActorEndpoint, RunHandle, RunOptions, run};

#[tokio::main]
async fn main() -> ExitCode {
    match play().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            #[expect(clippy::print_stderr, reason = "a program that people run")]
            {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn play() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(url)) = (arguments.next(), arguments.next()) else {
        return Err("usage: mcp_client DIRECTORY URL".to_owned());
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "this is how the suite names the scenario"
    )]
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").map_err(|error| error.to_string())?;
    let path = format!("{directory}/{}.yaml", scenario.replace('/', "-"));
    #[expect(
        clippy::disallowed_methods,
        reason = "our own documents, of a few lines"
    )]
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let document = proofhouse_oatf::load(&text)
        .map_err(|errors| format!("{path}: {errors:?}"))?
        .document;
    let options = RunOptions {
        endpoints: HashMap::from([("default".to_owned(), ActorEndpoint::Url(url))]),
        grace: Duration::ZERO,
        max_session: Duration::from_secs(20),
        ..RunOptions::default()
    };
    let report = run(&document, options, &RunHandle::default())
        .await
        .map_err(|error| error.to_string())?;
    #[expect(clippy::print_stderr, reason = "a program that people run")]
    for warning in &report.warnings {
        eprintln!("warning: {warning}");
    }
    match report.errors.first() {
        Some(error) => Err(error.to_string()),
        None => Ok(()),
    }
}
