//! The reports of a campaign: on stdout, and as files beside the result.

use std::path::Path;

use proofhouse_campaign::comparison::Comparison;
use proofhouse_campaign::replay::Traces;
use proofhouse_campaign::report_format::{FORMAT_NAMES, ReportFormat};
use proofhouse_campaign::result::CampaignResult;
use proofhouse_report::{self as report, ReportInput};

use crate::output::{CommandError, columns, has_color, shown_path};

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

/// How wide reports in files are.
const FILE_COLUMNS: usize = 100;

/// What the reports of a campaign are made of.
pub(crate) struct CampaignReports<'a> {
    pub(crate) result: &'a CampaignResult,
    pub(crate) traces: &'a Traces,
    pub(crate) comparison: Option<&'a Comparison>,
    /// The configuration that the campaign follows.
    pub(crate) config: Option<String>,
    /// Its directory.
    pub(crate) directory: Option<String>,
}

impl CampaignReports<'_> {
    fn input(&self, colour: bool, width: usize) -> ReportInput<'_> {
        ReportInput {
            result: self.result,
            traces: self.traces,
            comparison: self.comparison,
            config: self.config.as_deref(),
            directory: self.directory.as_deref(),
            colour,
            width,
        }
    }

    /// A report for stdout.
    pub(crate) fn render(&self, format: ReportFormat) -> String {
        report::render(format, &self.input(has_color(), columns()))
    }

    /// Writes a report into a directory. The result itself is there already.
    pub(crate) fn write(&self, format: ReportFormat, directory: &Path) -> Result<(), CommandError> {
        if format == ReportFormat::Json {
            return Ok(());
        }
        let path = directory.join(format.info().file);
        let text = report::render(format, &self.input(false, FILE_COLUMNS));
        std::fs::write(&path, text).map_err(|error| {
            CommandError::cannot_run(format!("{}: cannot write: {error}", shown_path(&path)))
        })
    }
}

/// The result with its summary, as it is kept.
pub(crate) fn json(result: &CampaignResult, comparison: Option<&Comparison>) -> String {
    let reports = CampaignReports {
        result,
        traces: &Traces::new(),
        comparison,
        config: None,
        directory: None,
    };
    reports.render(ReportFormat::Json)
}
