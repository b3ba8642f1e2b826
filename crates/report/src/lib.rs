//! Reports: what a campaign found, for people and for programs. Each is a pure function to one text.
//!
//! Everything in a result comes from outside: documents, subjects, models. Each format escapes what its
//! readers could take for their own, shows what cannot be seen, and cuts what is long.

mod github;
mod html;
mod json;
mod junit;
mod markdown;
mod sarif;
pub mod sarif_log;
mod terminal;
mod text;
mod view;

use std::collections::BTreeMap;

use proofhouse_detect::TraceMessage;

use crate::comparison::Comparison;
use crate::result::CampaignResult;
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
    /// Whether the terminal report may have colour.
    pub colour: bool,
}

/// One format of reports.
#[derive(Debug)]
pub struct ReportFormatInfo {
    /// The format.
    pub format: ReportFormat,
    /// The name on the command line.
    pub name: &'static str,
    /// What it is for, in a few words.
    pub about: &'static str,
    /// The file it goes to when none is named.
    pub file: &'static str,
    render: fn(&ReportView<'_>) -> String,
}

macro_rules! formats {
    ($($(#[doc = $about:literal])+ $format:ident, $name:literal, $file:literal, $render:path;)+) => {
        /// What a report can look like.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ReportFormat {
            $($(#[doc = $about])+ $format,)+
        }

        /// Every format there is.
        pub const FORMATS: &[ReportFormatInfo] = &[$(ReportFormatInfo {
            format: ReportFormat::$format,
            name: $name,
            about: concat!($($about),+),
            file: $file,
            render: $render,
        },)+];

        /// The names of all formats, in the same order.
        pub const FORMAT_NAMES: &[&str] = &[$($name),+];
    };
}

// The one table of formats: what it is for, its name, its file, and the function that makes it.
formats! {
    /// A table of 80 columns for people at a terminal.
    Terminal, "terminal", "report.txt", terminal::render;
    /// Everything, for programs; a later campaign reads it as its baseline.
    Json, "json", "result.json", json::render;
    /// JUnit XML for build servers: a suite per subject, a case per document.
    Junit, "junit", "junit.xml", junit::render;
    /// SARIF 2.1.0 for code scanning services.
    Sarif, "sarif", "report.sarif", sarif::render;
    /// Markdown for a comment on a pull request.
    Markdown, "markdown", "report.md", markdown::render;
    /// Annotations of a GitHub Actions run.
    Github, "github", "annotations.txt", github::render;
    /// One HTML file with matrix, coverage and every message; no scripts, no network.
    Html, "html", "report.html", html::render;
}

impl ReportFormat {
    /// The format of that name.
    ///
    /// ```
    /// use proofhouse_campaign::report::ReportFormat;
    ///
    /// assert_eq!(ReportFormat::named("junit"), Some(ReportFormat::Junit));
    /// assert_eq!(ReportFormat::named("pdf"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = FORMATS.iter().find(|info| info.name == name);
        found.map(|info| info.format)
    }

    /// Its row in the table.
    #[must_use]
    pub fn info(self) -> &'static ReportFormatInfo {
        // The rows are in the order of the variants, as they come from the same list.
        &FORMATS[self as usize]
    }
}

/// Makes a report.
#[must_use]
pub fn render(format: ReportFormat, input: &ReportInput<'_>) -> String {
    (format.info().render)(&ReportView::new(input))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_order_of_the_formats() {
        for (info, name) in FORMATS.iter().zip(FORMAT_NAMES) {
            assert_eq!(info.name, *name);
            assert_eq!(info.format.info().name, info.name);
            assert_eq!(ReportFormat::named(info.name), Some(info.format));
        }
    }
}
