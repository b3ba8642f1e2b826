//! The formats of reports: their names, what they are for and the files they go to. The crate `report` makes them.

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
}

macro_rules! formats {
    ($($(#[doc = $about:literal])+ $format:ident, $name:literal, $file:literal;)+) => {
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
        },)+];

        /// The names of all formats, in the same order.
        pub const FORMAT_NAMES: &[&str] = &[$($name),+];
    };
}

// The one table of formats: what it is for, its name and its file.
formats! {
    /// A table for people at a terminal.
    Human, "human", "report.txt";
    /// Everything, for programs; a later campaign reads it as its baseline.
    Json, "json", "result.json";
    /// JUnit XML for build servers: a suite per subject, a case per document.
    Junit, "junit", "junit.xml";
    /// SARIF 2.1.0 for code scanning services.
    Sarif, "sarif", "report.sarif";
    /// Markdown for a comment on a pull request.
    Markdown, "markdown", "report.md";
    /// Annotations of a GitHub Actions run.
    Github, "github", "annotations.txt";
    /// One HTML file with findings, matrix, coverage and every message; no network.
    Html, "html", "report.html";
}

impl ReportFormat {
    /// The format of that name.
    ///
    /// ```
    /// use proofhouse_campaign::report_format::ReportFormat;
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
