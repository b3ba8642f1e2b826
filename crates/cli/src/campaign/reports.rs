//! The reports of a campaign: on stdout, and as files beside the result.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal};
use std::path::Path;

use proofhouse_campaign::comparison::Comparison;
use proofhouse_campaign::report::{self, FORMAT_NAMES, Format, ReportInput};
use proofhouse_campaign::result::CampaignResult;
use proofhouse_detect::{Item, Message, TraceReader};

use crate::output::{CommandError, shown_path};

/// Messages of one run that a report shows.
const MAX_MESSAGES: usize = 500;
/// Messages of all runs together; a page with more is no page.
const MAX_ALL: usize = 50_000;

/// The messages of runs, by the id of the run.
pub(crate) type Traces = BTreeMap<String, Vec<Message>>;

/// Reads the name of a format.
pub(crate) fn format(name: &str) -> Result<Format, String> {
    Format::named(name).ok_or_else(|| format!("write one of {}", FORMAT_NAMES.join(", ")))
}

/// What `--help` says of the option that takes the name of a format.
pub(crate) fn format_help() -> String {
    let names = match FORMAT_NAMES.split_last() {
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    };
    format!("How to print the result: {names}")
}

/// The recordings of a campaign. One that cannot be read is left out: the result has what matters.
pub(crate) fn traces(result: &CampaignResult, directory: &Path) -> Traces {
    let mut traces = Traces::new();
    let mut left = MAX_ALL;
    for run in &result.runs {
        // A result that was made elsewhere must not make us read elsewhere.
        let is_ours = |file: &&String| file.starts_with("traces/") && !file.contains("..");
        let Some(file) = run.trace.as_ref().filter(is_ours) else {
            continue;
        };
        let Ok(file) = File::open(directory.join(file)) else {
            continue;
        };
        let messages: Vec<Message> = TraceReader::new(BufReader::new(file))
            .map_while(Result::ok)
            .filter_map(|item| match item {
                Item::Message { message, .. } => Some(message),
                Item::Problem(_) => None,
            })
            .take(MAX_MESSAGES.min(left))
            .collect();
        left -= messages.len();
        traces.insert(run.id.clone(), messages);
    }
    traces
}

/// A report for stdout.
pub(crate) fn render(
    format: Format,
    result: &CampaignResult,
    traces: &Traces,
    comparison: Option<&Comparison>,
) -> String {
    let input = ReportInput {
        result,
        traces,
        comparison,
        colour: io::stdout().is_terminal(),
    };
    report::render(format, &input)
}

/// The result with its summary, as it is kept.
pub(crate) fn json(result: &CampaignResult, comparison: Option<&Comparison>) -> String {
    let input = ReportInput {
        result,
        traces: &Traces::new(),
        comparison,
        colour: false,
    };
    report::render(Format::Json, &input)
}

/// Writes a report into a directory. The result itself is there already.
pub(crate) fn write(
    format: Format,
    directory: &Path,
    result: &CampaignResult,
    traces: &Traces,
    comparison: Option<&Comparison>,
) -> Result<(), CommandError> {
    if format == Format::Json {
        return Ok(());
    }
    let input = ReportInput {
        result,
        traces,
        comparison,
        colour: false,
    };
    let path = directory.join(format.info().file);
    std::fs::write(&path, report::render(format, &input)).map_err(|error| {
        CommandError::cannot_run(format!("{}: cannot write: {error}", shown_path(&path)))
    })
}
