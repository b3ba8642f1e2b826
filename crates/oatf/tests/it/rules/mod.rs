//! Every code with a document that keeps it and a twin that breaks it: exact codes, paths and
//! places.
//!
//! `»` in a failing document marks where a finding must start; it is removed before checking. The
//! findings of a failing document are exactly the expected ones, in the order of their marks.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod attack;
mod bindings;
mod execution;
mod expressions;
mod hints;
mod indicators;
mod normalization;
mod reader;
mod templates;

use std::collections::BTreeSet;

use proofhouse_oatf::{Diagnostic, DiagnosticSeverity, ExplanationKind, ReadLimits, explanations};

/// A document that keeps a rule, and one that breaks it.
struct Case {
    code: &'static str,
    about: String,
    passing: String,
    failing: String,
    /// Code and path of each finding; the place comes from the marks.
    findings: Vec<(&'static str, String)>,
}

/// A case whose only finding is the code itself, at `path`.
fn case(
    code: &'static str,
    about: &str,
    passing: impl Into<String>,
    failing: impl Into<String>,
    path: impl Into<String>,
) -> Case {
    Case {
        code,
        about: about.to_owned(),
        passing: passing.into(),
        failing: failing.into(),
        findings: vec![(code, path.into())],
    }
}

/// A case with several findings.
fn several(
    code: &'static str,
    about: &str,
    passing: impl Into<String>,
    failing: impl Into<String>,
    findings: &[(&'static str, &str)],
) -> Case {
    let findings = findings
        .iter()
        .map(|(code, path)| (*code, (*path).to_owned()));
    Case {
        findings: findings.collect(),
        ..case(code, about, passing, failing, "")
    }
}

fn indent(text: &str, by: usize) -> String {
    let pad = " ".repeat(by);
    text.lines().map(|line| format!("{pad}{line}\n")).collect()
}

/// A document whose attack holds these fields.
fn document(fields: &str) -> String {
    format!("oatf: \"0.1\"\nattack:\n{}", indent(fields, 2))
}

/// A document with a minimal execution, and these fields beside it.
fn attack(fields: &str) -> String {
    document(&format!(
        "execution: {{mode: mcp_server, state: {{}}}}\n{fields}"
    ))
}

/// A document whose execution holds these fields.
fn execution(fields: &str) -> String {
    document(&format!("execution:\n{}", indent(fields, 2)))
}

/// A single-phase MCP server with this state.
fn state(fields: &str) -> String {
    execution(&format!("mode: mcp_server\nstate:\n{}", indent(fields, 2)))
}

/// A multi-phase MCP server with these phases.
fn phases(list: &str) -> String {
    execution(&format!("mode: mcp_server\nphases:\n{}", indent(list, 2)))
}

/// An MCP server of one phase with these fields beside its state.
fn phase(fields: &str) -> String {
    phases(&format!("- state: {{}}\n{}", indent(fields, 2)))
}

/// A multi-actor document.
fn actors(list: &str) -> String {
    execution(&format!("actors:\n{}", indent(list, 2)))
}

/// A document with one indicator that has a target and these fields.
fn indicator(fields: &str) -> String {
    attack(&format!(
        "indicators:\n  - target: a\n{}",
        indent(fields, 4)
    ))
}

/// A document with one pattern indicator and these fields.
fn pattern(fields: &str) -> String {
    indicator(&format!("pattern: {{contains: x}}\n{fields}"))
}

/// Takes the marks out of a text and gives their lines and columns.
fn take_marks(marked: &str) -> (String, Vec<(usize, usize)>) {
    let mut text = String::new();
    let mut marks = Vec::new();
    for (line, content) in marked.split('\n').enumerate() {
        if line > 0 {
            text.push('\n');
        }
        let mut column = 1;
        for c in content.chars() {
            if c == '»' {
                marks.push((line + 1, column));
            } else {
                text.push(c);
                column += 1;
            }
        }
    }
    (text, marks)
}

fn findings(text: &str) -> Vec<Diagnostic> {
    proofhouse_oatf::check(text, &ReadLimits::default())
}

type Found = (String, String, Option<(usize, usize)>);

fn check(case: &Case) -> Result<(), String> {
    let about = format!("{} {}", case.code, case.about);
    let unwanted: Vec<String> = findings(&case.passing)
        .into_iter()
        .filter(|found| found.code == case.code || found.severity == DiagnosticSeverity::Error)
        .map(|found| found.to_string())
        .collect();
    if !unwanted.is_empty() {
        return Err(format!(
            "{about}: the passing document has {unwanted:#?}\n{}",
            case.passing
        ));
    }
    let (text, marks) = take_marks(&case.failing);
    let found: Vec<Found> = findings(&text)
        .into_iter()
        .map(|f| {
            let place = f.span.map(|span| (span.line, span.column));
            (f.code.to_owned(), f.path.unwrap_or_default(), place)
        })
        .collect();
    let marks = marks.into_iter().map(Some).chain(std::iter::repeat(None));
    let expected: Vec<Found> = case
        .findings
        .iter()
        .zip(marks)
        .map(|((code, path), mark)| ((*code).to_owned(), path.clone(), mark))
        .collect();
    if found != expected {
        return Err(format!(
            "{about}:\n{text}\nfound    {found:?}\nexpected {expected:?}"
        ));
    }
    Ok(())
}

fn all_cases() -> Vec<Case> {
    [
        attack::cases(),
        bindings::cases(),
        execution::cases(),
        expressions::cases(),
        hints::cases(),
        indicators::cases(),
        reader::cases(),
        templates::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_case_holds() {
    let failures: Vec<String> = all_cases()
        .iter()
        .filter_map(|case| check(case).err())
        .collect();
    assert!(
        failures.is_empty(),
        "{} cases fail\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

#[test]
fn every_code_has_a_case() {
    let cases = all_cases();
    let mut covered: BTreeSet<&str> = normalization::cases().map(|case| case.code).collect();
    for case in &cases {
        // The rule that `oatf` comes first is reported under the code of its warning.
        let reported = if case.code == "V-002" {
            "W-001"
        } else {
            case.code
        };
        assert!(
            case.findings.iter().any(|(code, _)| *code == reported),
            "{} {}: the failing document does not fail it",
            case.code,
            case.about
        );
        covered.insert(case.code);
    }
    let known: BTreeSet<&str> = explanations().map(|explanation| explanation.code).collect();
    let missing: Vec<_> = known.difference(&covered).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    let invented: Vec<_> = covered.difference(&known).collect();
    assert!(invented.is_empty(), "cases for unknown codes {invented:?}");
}

#[test]
fn findings_have_the_severity_their_explanation_gives() {
    for case in all_cases() {
        let (text, _) = take_marks(&case.failing);
        for found in findings(&text) {
            let kind = proofhouse_oatf::explain(found.code).unwrap().kind;
            let expected = match kind {
                ExplanationKind::Error => DiagnosticSeverity::Error,
                _ => DiagnosticSeverity::Warning,
            };
            assert_eq!(found.severity, expected, "{found}");
        }
    }
}

#[test]
fn parse_and_validate_find_what_check_finds() {
    for case in all_cases() {
        let (text, _) = take_marks(&case.failing);
        let expected: BTreeSet<&str> = case.findings.iter().map(|(code, _)| *code).collect();
        let reported: BTreeSet<&str> = match proofhouse_oatf::parse(&text) {
            Err(errors) => errors.iter().map(|error| error.code).collect(),
            Ok(document) => {
                let result = proofhouse_oatf::validate(&document);
                let errors = result.errors.iter().map(|error| error.rule);
                errors
                    .chain(result.warnings.iter().map(|warning| warning.code))
                    .collect()
            }
        };
        // A text that does not parse is not validated, so fewer codes are fine there.
        assert!(
            reported.is_subset(&expected) && !reported.is_empty(),
            "{} {}: {reported:?} {expected:?}",
            case.code,
            case.about
        );
    }
}
