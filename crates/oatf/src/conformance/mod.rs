//! The public conformance suite: which suites there are, and how a case is run.
//!
//! The format of the vectors is public and not ours: a suite is a YAML file with a list of
//! `{name, id, input, expected}`, except `parse`, where each file is a case. Nothing here reads files: texts go in,
//! and what came of each case comes out.

mod documents;
mod evaluation;
mod primitives;

use proofhouse_source::{ReadLimits, Source};
use serde_json::Value;

use crate::ParseError;

/// How large a suite may be.
pub const MAX_BYTES: usize = 16 << 20;

/// The outcome of one case.
#[derive(Debug)]
pub struct CaseResult {
    /// The suite.
    pub suite: String,
    /// The id of the case; for documents, the name of the file.
    pub id: String,
    /// What the case is about.
    pub name: String,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// What a case checks: `Ok` when it holds, and otherwise what was found instead.
type CaseCheck = Result<(), CaseFailure>;

/// Why a case does not hold.
#[derive(Debug, thiserror::Error)]
enum CaseFailure {
    /// The case itself lacks something, or has it in a form that no case has.
    #[error("{0}")]
    Malformed(&'static str),
    /// Something of the case cannot be read, for these reasons.
    #[error("{0}")]
    Unreadable(String),
    #[error("parsed, but must not")]
    Parsed,
    #[error("expected {expected}, found {found}")]
    Different { expected: String, found: String },
    /// The value at a key is not the expected one.
    #[error("{key}: {failure}")]
    At {
        key: String,
        failure: Box<CaseFailure>,
    },
    #[error("normalizing twice changes it")]
    NormalizedTwice,
    #[error("the document changes on the way")]
    DocumentChanges,
    #[error("the canonical text changes on the way")]
    TextChanges,
}

impl CaseFailure {
    /// Something of the case that a reader refuses.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass the errors that they map"
    )]
    fn unreadable(error: impl ToString) -> Self {
        Self::Unreadable(error.to_string())
    }

    /// A part of the case that a parser refuses, with everything it says.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass the errors that they map"
    )]
    fn refused(errors: Vec<ParseError>) -> Self {
        let errors = errors.iter().map(ToString::to_string);
        Self::Unreadable(errors.collect::<Vec<_>>().join("; "))
    }

    fn different(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Different {
            expected: expected.into(),
            found: found.into(),
        }
    }
}

/// A function that runs one case of a suite.
type RunCase = fn(&ConformanceCase<'_>) -> CaseCheck;

/// One case of a suite file.
struct ConformanceCase<'c> {
    whole: &'c Value,
    input: &'c Value,
    expected: &'c Value,
}

impl ConformanceCase<'_> {
    /// A field of the input; null when absent.
    fn field(&self, key: &str) -> &Value {
        self.input.get(key).unwrap_or(&Value::Null)
    }
}

/// Every suite file, and what runs its cases.
const SUITES: &[(&str, RunCase)] = &[
    ("validate/suite.yaml", documents::validate_case),
    ("validate/warnings.yaml", documents::validate_case),
    ("normalize/suite.yaml", documents::normalize_case),
    ("roundtrip/suite.yaml", documents::roundtrip_case),
    ("evaluate/pattern.yaml", evaluation::indicator_case),
    ("evaluate/expression.yaml", evaluation::indicator_case),
    ("evaluate/semantic.yaml", evaluation::indicator_case),
    ("verdict/any.yaml", evaluation::verdict_case),
    ("verdict/all.yaml", evaluation::verdict_case),
    (
        "primitives/compute-effective-state.yaml",
        primitives::effective_state,
    ),
    ("primitives/evaluate-condition.yaml", primitives::condition),
    ("primitives/evaluate-extractor.yaml", primitives::extractor),
    ("primitives/evaluate-predicate.yaml", primitives::predicate),
    ("primitives/evaluate-trigger.yaml", primitives::trigger),
    ("primitives/extract-protocol.yaml", primitives::protocol),
    ("primitives/interpolate-template.yaml", primitives::template),
    ("primitives/interpolate-value.yaml", primitives::value),
    ("primitives/parse-duration.yaml", primitives::duration),
    (
        "primitives/resolve-simple-path.yaml",
        primitives::simple_path,
    ),
    (
        "primitives/resolve-wildcard-path.yaml",
        primitives::wildcard_path,
    ),
    ("primitives/select-response.yaml", primitives::response),
];

/// The folders of documents, each of which is a case: those that must be parsed, and those that must not.
pub const DOCUMENT_FOLDERS: [(&str, bool); 2] = [("parse/valid", true), ("parse/invalid", false)];

/// The files of suites, below the directory of the vectors.
pub fn suite_files() -> impl Iterator<Item = &'static str> {
    SUITES.iter().map(|(file, _)| *file)
}

/// A suite that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SuiteError {
    /// There is no suite of this name.
    #[error("there is no such suite")]
    Unknown,
    /// It is not YAML.
    #[error("{0}")]
    NotYaml(String),
    /// It has no cases.
    #[error("not a list of cases")]
    NoCases,
}

/// Judges a document of a folder: the reason why its case fails, if it does.
#[must_use]
pub fn parse_failure(text: &str, must_parse: bool) -> Option<String> {
    let failure = documents::parse_case(text, must_parse).err();
    failure.map(|failure| failure.to_string())
}

/// Runs the cases of a suite, given the name of its file and its text.
///
/// # Errors
///
/// Returns an error when the text is no suite.
pub fn run_suite(file: &str, text: &str) -> Result<Vec<CaseResult>, SuiteError> {
    let mut suites = SUITES.iter();
    let (_, run_case) = suites
        .find(|(known, _)| *known == file)
        .ok_or(SuiteError::Unknown)?;
    let limits = ReadLimits {
        max_bytes: MAX_BYTES,
        ..ReadLimits::default()
    };
    let source = Source::read(text, &limits).map_err(|errors| {
        let first = errors.into_iter().next();
        SuiteError::NotYaml(first.map(|error| error.message).unwrap_or_default())
    })?;
    let suite = source.root().to_value(&mut |_| {});
    let cases = suite.as_array().ok_or(SuiteError::NoCases)?;
    let null = &Value::Null;
    let results = cases.iter().enumerate().map(|(index, whole)| {
        let text = |key: &str| whole.get(key).and_then(Value::as_str).map(str::to_owned);
        let case = ConformanceCase {
            whole,
            input: whole.get("input").unwrap_or(null),
            expected: whole.get("expected").unwrap_or(null),
        };
        CaseResult {
            suite: file.trim_end_matches(".yaml").to_owned(),
            id: text("id").unwrap_or_else(|| format!("#{}", index + 1)),
            name: text("name").unwrap_or_default(),
            failure: run_case(&case).err().map(|failure| failure.to_string()),
        }
    });
    Ok(results.collect())
}

/// Compares what was found with what was expected.
#[expect(
    clippy::needless_pass_by_value,
    reason = "callers pass small values they just made"
)]
fn expect<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> CaseCheck {
    if found == expected {
        Ok(())
    } else {
        Err(CaseFailure::different(
            format!("{expected:?}"),
            format!("{found:?}"),
        ))
    }
}

/// Compares values as the specification does: numbers by value, objects whatever their order.
fn expect_value(found: &Value, expected: &Value) -> CaseCheck {
    if crate::deep_equal(found, expected) {
        Ok(())
    } else {
        Err(CaseFailure::different(
            expected.to_string(),
            found.to_string(),
        ))
    }
}

/// Reads a part of a document from a case.
fn part<T: crate::Fragment>(value: &Value) -> Result<T, CaseFailure> {
    T::from_value(value).map_err(CaseFailure::refused)
}
