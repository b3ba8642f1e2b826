//! What is wrong with files that people write, and its forms, one file each.

pub mod github;
pub mod human;
pub mod json;
pub mod sarif;

use proofhouse_source::{Diagnostic, DiagnosticSeverity, Span};

/// A document and what was found in it.
#[derive(Debug)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// The text, kept where there are findings to show in it.
    pub text: String,
    /// What was found, in the order of the places.
    pub findings: Vec<Diagnostic>,
}

impl Checked {
    /// Whether there is no error in it.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.count(DiagnosticSeverity::Error) == 0
    }

    /// How many findings are of this severity.
    #[must_use]
    pub fn count(&self, severity: DiagnosticSeverity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    }

    /// The column after a place, as programs count them: at least one character is shown.
    #[must_use]
    pub fn end_column(&self, span: Span) -> usize {
        let shown = self.text.get(span.range()).unwrap_or_default();
        span.column.saturating_add(shown.chars().count().max(1))
    }
}

/// Totals over all documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingTotals {
    /// All of them.
    pub files: usize,
    /// Those without errors.
    pub valid: usize,
    /// The errors in the others.
    pub errors: usize,
    /// The warnings in all of them.
    pub warnings: usize,
}

impl FindingTotals {
    /// Counts them.
    #[must_use]
    pub fn of(checked: &[Checked]) -> Self {
        let total = |severity| checked.iter().map(|file| file.count(severity)).sum();
        Self {
            files: checked.len(),
            valid: checked.iter().filter(|file| file.is_valid()).count(),
            errors: total(DiagnosticSeverity::Error),
            warnings: total(DiagnosticSeverity::Warning),
        }
    }
}
