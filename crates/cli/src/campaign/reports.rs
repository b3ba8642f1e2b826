//! The reports of a campaign: on stdout, and as files beside the result.

use std::io::{self, IsTerminal};
use std::path::Path;

use proofhouse_campaign::comparison::Comparison;
use proofhouse_campaign::replay::Traces;
use proofhouse_campaign::report_format::{FORMAT_NAMES, ReportFormat};
use proofhouse_campaign::result::CampaignResult;
use proofhouse_report::{self as report, ReportInput};

use crate::output::{CommandError, shown_path};

/// A name that no format of reports has.
#[derive(Debug, thiserror::Error)]
#[error("write one of {}", FORMAT_NAMES.join(", "))]
pub(crate) struct UnknownReportFormat;

/// Reads the name of a format.
pub(crate) fn format(name: &str) -> Result<ReportFormat, UnknownReportFormat> {
    ReportFormat::named(name).ok_or(UnknownReportFormat)
}

/// What `--help` says of the option that takes the name of a format.
pub(crate) fn format_help() -> String {
    let names = match FORMAT_NAMES.split_last() {
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    };
    format!("How to print the result: {names}")
}

/// A report for stdout.
pub(crate) fn render(
    format: ReportFormat,
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
    report::render(ReportFormat::Json, &input)
}

/// Writes a report into a directory. The result itself is there already.
pub(crate) fn write(
    format: ReportFormat,
    directory: &Path,
    result: &CampaignResult,
    traces: &Traces,
    comparison: Option<&Comparison>,
) -> Result<(), CommandError> {
    if format == ReportFormat::Json {
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
