//! The typed errors of the entry points, evaluation and generation.

use std::fmt;

use proofhouse_source::{Diagnostic, DiagnosticSeverity, Span};
use serde::Serialize;

use crate::model::closed_enum;

closed_enum! {
    /// Why text could not be turned into a document.
    pub enum ParseErrorKind {
        /// The text is not a single well-formed YAML document of the accepted subset.
        Syntax => "syntax",
        /// A field is missing, misplaced or of the wrong type.
        TypeMismatch => "type_mismatch",
        /// A closed enumeration holds a value that is not one of its members.
        UnknownVariant => "unknown_variant",
    }
}

closed_enum! {
    /// Why an indicator could not be evaluated.
    pub enum EvaluationErrorKind {
        /// A path could not be resolved where it had to be.
        PathResolution => "path_resolution",
        /// A regular expression exceeded its limits.
        RegexTimeout => "regex_timeout",
        /// A CEL expression failed.
        CelError => "cel_error",
        /// A result had the wrong type, for example a non-boolean CEL result.
        TypeError => "type_error",
        /// A semantic evaluator failed.
        SemanticError => "semantic_error",
        /// The evaluator does not support what the indicator asks for.
        UnsupportedMethod => "unsupported_method",
    }
}

closed_enum! {
    /// Why content could not be generated.
    pub enum GenerationErrorKind {
        /// No provider is configured or it cannot be reached.
        ProviderUnavailable => "provider_unavailable",
        /// The model answered with an error.
        ModelError => "model_error",
        /// The generated content does not conform to the protocol.
        ValidationFailure => "validation_failure",
        /// The provider took too long.
        Timeout => "timeout",
        /// The provider refused the prompt.
        ContentPolicy => "content_policy",
    }
}

/// A reason why text is not an OATF document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParseError {
    /// The class of the error.
    pub kind: ParseErrorKind,
    /// The rule that is broken (`V-…`), or our own code (`PH-…`) where no rule covers it.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where in the document.
    pub path: Option<String>,
    /// Where in the source text.
    pub span: Option<Span>,
    /// What to do about it.
    pub help: Option<String>,
}

/// The code of a value that is no member of its enumeration, whose errors are of a kind of their own.
pub(crate) const UNKNOWN_VARIANT: &str = "V-005";

impl From<Diagnostic> for ParseError {
    /// What the decoder found.
    fn from(finding: Diagnostic) -> Self {
        Self {
            kind: if finding.code == UNKNOWN_VARIANT {
                ParseErrorKind::UnknownVariant
            } else {
                ParseErrorKind::TypeMismatch
            },
            code: finding.code,
            message: finding.message,
            path: finding.path,
            span: finding.span,
            help: finding.help,
        }
    }
}

impl ParseError {
    /// The line of the error, from 1, when it has a place.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.span.map(|span| span.line)
    }

    /// The column of the error, from 1, when it has a place.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.span.map(|span| span.column)
    }

    pub(crate) fn offset(&self) -> Option<usize> {
        self.span.map(|span| span.offset)
    }
}

/// A violated validation rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValidationError {
    /// The rule, for example `V-013`.
    pub rule: &'static str,
    /// The section of the specification that states the rule.
    pub spec_ref: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where in the document.
    pub path: String,
    /// Where in the source text.
    pub span: Option<Span>,
    /// What to do about it.
    pub help: Option<String>,
}

/// Any error of [`load`](crate::load).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum OatfError {
    /// The text could not be parsed.
    Parse(ParseError),
    /// The document breaks a rule.
    Validation(ValidationError),
}

/// A failed evaluation of an indicator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvaluationError {
    /// The class of the error.
    pub kind: EvaluationErrorKind,
    /// What went wrong.
    pub message: String,
    /// The indicator that was being evaluated, when known.
    pub indicator_id: Option<String>,
}

impl EvaluationError {
    /// An error without an indicator.
    ///
    /// ```
    /// use proofhouse_oatf::{EvaluationError, EvaluationErrorKind};
    /// let error = EvaluationError::new(EvaluationErrorKind::CelError, "no such field");
    /// assert_eq!(error.to_string(), "cel_error: no such field");
    /// ```
    #[must_use]
    pub fn new(kind: EvaluationErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            indicator_id: None,
        }
    }
}

/// A failed generation of content for a `synthesize` block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GenerationError {
    /// The class of the error.
    pub kind: GenerationErrorKind,
    /// What went wrong.
    pub message: String,
    /// The phase that asked; the provider does not know it, its caller fills it in.
    pub phase_name: Option<String>,
    /// The first 200 characters of the prompt.
    pub prompt_preview: Option<String>,
}

impl GenerationError {
    /// An error that keeps the first 200 characters of the prompt.
    ///
    /// ```
    /// use proofhouse_oatf::{GenerationError, GenerationErrorKind};
    /// let error = GenerationError::new(GenerationErrorKind::Timeout, "too slow", &"x".repeat(300));
    /// assert_eq!(error.prompt_preview.map(|p| p.len()), Some(200));
    /// ```
    #[must_use]
    pub fn new(kind: GenerationErrorKind, message: impl Into<String>, prompt: &str) -> Self {
        Self {
            kind,
            message: message.into(),
            phase_name: None,
            prompt_preview: Some(prompt.chars().take(200).collect()),
        }
    }
}

impl From<ParseError> for Diagnostic {
    fn from(error: ParseError) -> Self {
        Self {
            severity: DiagnosticSeverity::Error,
            code: error.code,
            path: error.path,
            span: error.span,
            message: error.message,
            help: error.help,
        }
    }
}

impl From<ValidationError> for Diagnostic {
    fn from(error: ValidationError) -> Self {
        Self {
            severity: DiagnosticSeverity::Error,
            code: error.rule,
            path: Some(error.path),
            span: error.span,
            message: error.message,
            help: error.help,
        }
    }
}

impl From<OatfError> for Diagnostic {
    fn from(error: OatfError) -> Self {
        match error {
            OatfError::Parse(error) => error.into(),
            OatfError::Validation(error) => error.into(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Diagnostic::from(self.clone()).fmt(f)
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Diagnostic::from(self.clone()).fmt(f)
    }
}

impl fmt::Display for OatfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parse(error) => error.fmt(f),
            Self::Validation(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = &self.indicator_id {
            write!(f, "{id}: ")?;
        }
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl fmt::Display for GenerationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(phase) = &self.phase_name {
            write!(f, "phase {phase}: ")?;
        }
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for ParseError {}
impl std::error::Error for ValidationError {}
impl std::error::Error for OatfError {}
impl std::error::Error for EvaluationError {}
impl std::error::Error for GenerationError {}
