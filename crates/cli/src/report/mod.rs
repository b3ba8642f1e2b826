//! Findings in the formats people and programs read, one file each.

pub(crate) mod attack;
pub(crate) mod explain_verdict;
mod github;
pub(crate) mod human;
mod json;
mod sarif;
pub(crate) mod scan;

use clap::ValueEnum;
use proofhouse_oatf::{Diagnostic, DiagnosticSeverity, Span};

use crate::output::{CommandError, StdoutData};

macro_rules! formats {
    ($($(#[doc = $about:literal])+ $format:ident, $write:path;)+) => {
        /// How findings are printed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
        pub(crate) enum FindingFormat {
            $($(#[doc = $about])+ $format,)+
        }

        impl FindingFormat {
            /// Prints the findings of all documents.
            pub(crate) fn write(self, data: &mut StdoutData, checked: &[Checked]) -> Result<(), CommandError> {
                match self {
                    $(Self::$format => $write(data, checked),)+
                }
            }
        }
    };
}

// The one table of formats of `validate`: what it is for, its name, and the function that writes it.
formats! {
    /// For people: the place in the source, underlined
    Human, human::write;
    /// For programs
    Json, json::write;
    /// SARIF 2.1.0, for code scanning
    Sarif, sarif::write;
    /// Annotations for GitHub Actions
    Github, github::write;
}

/// A document and what was found in it.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) name: String,
    /// The text, kept where there are findings to show in it.
    pub(crate) text: String,
    pub(crate) findings: Vec<Diagnostic>,
}

impl Checked {
    pub(crate) fn is_valid(&self) -> bool {
        self.count(DiagnosticSeverity::Error) == 0
    }

    pub(crate) fn count(&self, severity: DiagnosticSeverity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    }

    /// The column after a place, as programs count them: at least one character is shown.
    pub(crate) fn end_column(&self, span: Span) -> usize {
        let shown = self.text.get(span.range()).unwrap_or_default();
        span.column.saturating_add(shown.chars().count().max(1))
    }
}

/// A number of things, such as `1 document` or `2 documents`.
pub(crate) fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Totals over all documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FindingTotals {
    pub(crate) files: usize,
    pub(crate) valid: usize,
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
}

impl FindingTotals {
    pub(crate) fn of(checked: &[Checked]) -> Self {
        let total = |severity| checked.iter().map(|file| file.count(severity)).sum();
        Self {
            files: checked.len(),
            valid: checked.iter().filter(|file| file.is_valid()).count(),
            errors: total(DiagnosticSeverity::Error),
            warnings: total(DiagnosticSeverity::Warning),
        }
    }
}
