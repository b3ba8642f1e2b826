//! Reports: what a campaign found, for people and for programs. Each is a pure function to one text.
//!
//! Beside them: what a plan [would do](listing), why a campaign [stopped before it began](preflight), [how far](progress) it is, and what a comparison
//! [can find](power). And what other commands found, for programs: [findings] in files that people write, [scan]s of
//! traces, [why](explain_verdict) indicators judged as they did, and [replay]ed runs.
//!
//! Everything in a result comes from outside: documents, subjects, models. Each format escapes what its
//! readers could take for their own, shows what cannot be seen, and cuts what is long.

pub mod attack;
pub mod conversation;
pub mod coverage;
pub mod explain_verdict;
pub mod findings;
mod github;
mod guard;
mod html;
mod json;
mod junit;
pub mod listing;
mod markdown;
pub mod power;
pub mod preflight;
pub mod progress;
pub mod quoting;
pub mod replay;
pub mod replay_text;
mod sarif;
pub mod sarif_log;
pub mod scan;
mod terminal;
mod text;
mod view;

use std::collections::BTreeMap;

use proofhouse_campaign::comparison::Comparison;
use proofhouse_campaign::report_format::ReportFormat;
use proofhouse_campaign::result::CampaignResult;
use proofhouse_detect::TraceMessage;

use view::ReportView;

pub use json::json_schema;

/// What reports are made of.
#[derive(Debug, Clone, Copy)]
pub struct ReportInput<'a> {
    /// What the campaign found.
    pub result: &'a CampaignResult,
    /// The messages of runs, by the id of the run. The HTML report shows those it finds; what must not be
    /// seen has to be taken out before.
    pub traces: &'a BTreeMap<String, Vec<TraceMessage>>,
    /// What changed since an earlier campaign.
    pub comparison: Option<&'a Comparison>,
    /// The file of the user that results of shipped documents point at, such as `proofhouse.yaml`.
    pub config: Option<&'a str>,
    /// The directory of the campaign, from where the user is.
    pub directory: Option<&'a str>,
    /// Whether the report for people may have colour.
    pub colour: bool,
    /// How many columns the report for people has.
    pub width: usize,
}

/// Makes a report.
#[must_use]
pub fn render(format: ReportFormat, input: &ReportInput<'_>) -> String {
    let render = match format {
        ReportFormat::Human => terminal::render,
        ReportFormat::Json => json::render,
        ReportFormat::Junit => junit::render,
        ReportFormat::Sarif => sarif::render,
        ReportFormat::Markdown => markdown::render,
        ReportFormat::Github => github::render,
        ReportFormat::Html => html::render,
    };
    render(&ReportView::new(input))
}
