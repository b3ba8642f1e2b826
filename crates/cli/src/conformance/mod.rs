//! The public conformance suite: which suites there are, and how a case is run.
//!
//! The format of the vectors is public and not ours: a suite is a YAML file with a list of
//! `{name, id, input, expected}`, except `parse`, where each file is a case.

mod documents;
mod evaluation;
mod primitives;

use std::path::Path;

use proofhouse_source::{ReadLimits, Source};
use serde_json::Value;

use crate::input::Input;
use crate::output::{CommandError, shown_path};

/// How large a suite may be.
const MAX_BYTES: usize = 16 << 20;

/// The outcome of one case.
#[derive(Debug)]
pub(crate) struct CaseResult {
    pub(crate) suite: String,
    pub(crate) id: String,
    pub(crate) name: String,
    /// Why it failed, if it did.
    pub(crate) failure: Option<String>,
}

/// What a case checks: `Ok` when it holds, and otherwise what was found instead.
type Outcome = Result<(), String>;

/// A function that runs one case of a suite.
type RunCase = fn(&Case<'_>) -> Outcome;

/// One case of a suite file.
struct Case<'c> {
    whole: &'c Value,
    input: &'c Value,
    expected: &'c Value,
}

impl Case<'_> {
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

/// Runs every suite in `dir`.
pub(crate) fn run(dir: &Path) -> Result<Vec<CaseResult>, CommandError> {
    if !dir.is_dir() {
        return Err(CommandError::usage(format!(
            "{}: no such directory",
            shown_path(dir)
        )));
    }
    let mut results = Vec::new();
    documents::parse_cases(dir, &mut results)?;
    for (file, run_case) in SUITES {
        let path = dir.join(file);
        if path.exists() {
            run_suite(file, &path, *run_case, &mut results)?;
        }
    }
    if results.is_empty() {
        return Err(CommandError::usage(format!(
            "{}: no suite in this directory",
            shown_path(dir)
        )));
    }
    Ok(results)
}

fn run_suite(
    file: &str,
    path: &Path,
    run_case: RunCase,
    results: &mut Vec<CaseResult>,
) -> Result<(), CommandError> {
    let suite = read_value(path)?;
    let Some(cases) = suite.as_array() else {
        return Err(CommandError::usage(format!(
            "{}: not a list of cases",
            shown_path(path)
        )));
    };
    for (index, whole) in cases.iter().enumerate() {
        let text = |key: &str| whole.get(key).and_then(Value::as_str).map(str::to_owned);
        let null = &Value::Null;
        let case = Case {
            whole,
            input: whole.get("input").unwrap_or(null),
            expected: whole.get("expected").unwrap_or(null),
        };
        results.push(CaseResult {
            suite: file.trim_end_matches(".yaml").to_owned(),
            id: text("id").unwrap_or_else(|| format!("#{}", index + 1)),
            name: text("name").unwrap_or_default(),
            failure: run_case(&case).err(),
        });
    }
    Ok(())
}

/// Reads a YAML file of the suite as a value.
fn read_value(path: &Path) -> Result<Value, CommandError> {
    let failed = |reason: String| CommandError::usage(format!("{}: {reason}", shown_path(path)));
    let text = Input::File(path.to_owned())
        .read(MAX_BYTES)
        .map_err(|error| failed(error.to_string()))?;
    let limits = ReadLimits {
        max_bytes: MAX_BYTES,
        ..ReadLimits::default()
    };
    let source = Source::read(&text, &limits).map_err(|errors| {
        failed(
            errors
                .first()
                .map(|e| e.message.clone())
                .unwrap_or_default(),
        )
    })?;
    Ok(source.root().to_value(&mut |_| {}))
}

/// Compares what was found with what was expected.
#[expect(
    clippy::needless_pass_by_value,
    reason = "callers pass small values they just made"
)]
fn expect<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(format!("expected {expected:?}, found {found:?}"))
    }
}

/// Compares values as the specification does: numbers by value, objects whatever their order.
fn expect_value(found: &Value, expected: &Value) -> Outcome {
    if proofhouse_oatf::deep_equal(found, expected) {
        Ok(())
    } else {
        Err(format!("expected {expected}, found {found}"))
    }
}

/// Reads a part of a document from a case.
fn part<T: proofhouse_oatf::Fragment>(value: &Value) -> Result<T, String> {
    T::from_value(value).map_err(|errors| {
        errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ")
    })
}
