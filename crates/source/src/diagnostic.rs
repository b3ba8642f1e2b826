//! Diagnostics: what is wrong, where, and what to do about it, as plain data rendered elsewhere.

use std::fmt;

use serde::Serialize;

/// How serious a [`Diagnostic`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticSeverity {
    /// The document breaks a rule and cannot be used.
    Error,
    /// The document can be used, but probably does not say what its author means.
    Warning,
}

impl fmt::Display for DiagnosticSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// A place in the source text: where it starts and how far it reaches.
///
/// `line` and `column` count from 1; `column` counts characters, `offset` and `length` count bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Span {
    /// Byte offset of the first byte.
    pub offset: usize,
    /// Length in bytes; zero for a place between two characters.
    pub length: usize,
    /// Line of the first character, from 1.
    pub line: usize,
    /// Column of the first character, from 1, in characters.
    pub column: usize,
}

impl Span {
    /// The byte range the span covers.
    ///
    /// ```
    /// use proofhouse_source::Span;
    /// let span = Span { offset: 4, length: 3, line: 1, column: 5 };
    /// assert_eq!(span.range(), 4..7);
    /// ```
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset.saturating_add(self.length)
    }
}

/// One finding about a document.
///
/// It carries a stable code that the format's documentation explains, a path into the document,
/// and, when the document came from text, a span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: DiagnosticSeverity,
    /// A stable code such as `V-013` or `W-004`.
    pub code: &'static str,
    /// Where in the document, as a path such as `attack.indicators[0].target`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where in the source text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.severity, self.code)?;
        if let Some(span) = self.span {
            write!(f, " {}:{}", span.line, span.column)?;
        }
        if let Some(path) = &self.path {
            write!(f, " {path}")?;
        }
        write!(f, ": {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_code_place_path_and_message() {
        let diagnostic = Diagnostic {
            severity: DiagnosticSeverity::Warning,
            code: "W-001",
            path: Some("oatf".into()),
            span: Some(Span {
                offset: 0,
                length: 4,
                line: 3,
                column: 1,
            }),
            message: "`oatf` should come first".into(),
            help: None,
        };
        assert_eq!(
            diagnostic.to_string(),
            "warning[W-001] 3:1 oatf: `oatf` should come first"
        );
    }

    #[test]
    fn displays_without_place() {
        let diagnostic = Diagnostic {
            severity: DiagnosticSeverity::Error,
            code: "V-003",
            path: None,
            span: None,
            message: "no attack".into(),
            help: None,
        };
        assert_eq!(diagnostic.to_string(), "error[V-003]: no attack");
    }
}
