//! The report as JUnit XML: a suite per subject, a case per document.
//!
//! An attack that got through is a failure, with its evidence; one that somebody accepted is skipped, with the same evidence.
//! One whose runs are inconclusive is skipped, so that no build server counts it as passed; where the runs themselves failed, it
//! is an error.

use std::fmt::Write;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::text::{cut, interval, is_hidden, number_of, of, percent, words};
use super::view::{MatrixCell, ReportView};
use proofhouse_campaign::outcome::RunOutcome;
use proofhouse_campaign::result::SubjectInfo;

/// How much of a text goes into one element or attribute.
const MOST_CHARACTERS: usize = 2_000;

/// How many indicators a failure tells of.
const MOST_FINDINGS: usize = 50;

pub(crate) fn render(view: &ReportView<'_>) -> String {
    let cells: Vec<MatrixCell<'_>> = view.cells().collect();
    let mut report = Report::new("proofhouse");
    report.set_time(Duration::from_millis(
        view.summary.overall.cost.milliseconds,
    ));
    for (number, subject) in view.result.subjects.iter().enumerate() {
        let of_subject = cells.iter().filter(|cell| cell.subject_number == number);
        report.add_test_suite(suite(view, number, subject, of_subject));
    }
    // Only a writer that fails makes this fail, and a text in memory does not.
    report.to_string().unwrap_or_default()
}

/// The runs against one subject.
fn suite<'a>(
    view: &ReportView<'_>,
    number: usize,
    subject: &SubjectInfo,
    cells: impl Iterator<Item = &'a MatrixCell<'a>>,
) -> TestSuite {
    let mut suite = TestSuite::new(attribute(&subject.name));
    let mut milliseconds = 0;
    for cell in cells {
        milliseconds += cell.summary.cost.milliseconds;
        suite.add_test_case(case(view, cell));
    }
    suite.set_time(Duration::from_millis(milliseconds));
    // The library counts what was skipped as disabled; nothing is disabled here.
    let skipped = std::mem::take(&mut suite.disabled);
    let started = &view.result.started_at;
    for (name, value) in [
        ("skipped", skipped.to_string()),
        ("id", number.to_string()),
        ("package", "proofhouse".to_owned()),
        // Build servers expect a time without a zone.
        ("timestamp", attribute(started.get(..19).unwrap_or(started))),
        ("hostname", "localhost".to_owned()),
    ] {
        suite.extra.insert(name.into(), value.into());
    }
    for (name, value) in [
        ("proofhouse.version", view.result.proofhouse.clone()),
        ("proofhouse.seed", view.result.seed.to_string()),
        ("proofhouse.complete", view.result.complete.to_string()),
        ("subject.kind", subject.kind.clone()),
        ("subject.simulation", subject.simulation.to_string()),
    ] {
        suite.add_property(Property::new(name, attribute(&value)));
    }
    suite
}

fn case(view: &ReportView<'_>, cell: &MatrixCell<'_>) -> TestCase {
    let mut case = TestCase::new(attribute(&cell.title()), status(view, cell));
    case.set_classname(attribute(&format!(
        "{}.{}",
        cell.subject.name,
        cell.document.category.as_deref().unwrap_or("uncategorised")
    )));
    case.set_time(Duration::from_millis(cell.summary.cost.milliseconds));
    case.set_system_out(xml_text(&counts(cell), MOST_CHARACTERS));
    case
}

/// What a document against a subject is to a build server.
fn status(view: &ReportView<'_>, cell: &MatrixCell<'_>) -> TestCaseStatus {
    let summary = cell.summary;
    match summary.outcome {
        Some(RunOutcome::Exploited | RunOutcome::Partial) => gave_way(view, cell),
        Some(RunOutcome::Resisted) => TestCaseStatus::success(),
        None => skipped(cell.absence()),
        Some(RunOutcome::Inconclusive) => {
            let why = format!("inconclusive: {}", cell.unproved());
            if summary.attacks.errors == 0 {
                return skipped(&why);
            }
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status
                .set_type("inconclusive")
                .set_message(attribute(&why))
                .set_description(xml_text(&why, MOST_CHARACTERS));
            status
        }
    }
}

fn skipped(why: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_description(xml_text(why, MOST_CHARACTERS));
    status
}

/// An attack that got through: a failure, unless somebody accepted it.
fn gave_way(view: &ReportView<'_>, cell: &MatrixCell<'_>) -> TestCaseStatus {
    let text = evidence(view, cell);
    if let Some(risk) = view.acceptance(cell) {
        // The schema of Jenkins knows no message here.
        return skipped(&format!(
            "accepted until {}: {}\n{text}",
            risk.until, risk.reason
        ));
    }
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status
        .set_type(cell.summary.outcome.map_or("", RunOutcome::word))
        .set_message(attribute(&success(cell)))
        .set_description(xml_text(&text, MOST_CHARACTERS * MOST_FINDINGS));
    status
}

/// In how many runs it got through, in one line.
fn success(cell: &MatrixCell<'_>) -> String {
    let summary = cell.summary;
    format!(
        "{} in {} runs ({}, 95% interval {}){}{}",
        summary.outcome.map_or("", RunOutcome::word),
        of(&summary.attacks.success),
        percent(&summary.attacks.success),
        interval(&summary.attacks.success),
        summary
            .tier
            .as_deref()
            .map_or_else(String::new, |tier| format!(", {}", words(tier))),
        if summary.flaky { ", flaky" } else { "" },
    )
}

/// What the indicators found, a line for each.
fn evidence(view: &ReportView<'_>, cell: &MatrixCell<'_>) -> String {
    let mut text = String::new();
    for finding in cell.findings().iter().take(MOST_FINDINGS) {
        let _ = write!(
            text,
            "{} matched in {} runs",
            finding.indicator.id, finding.runs
        );
        if let Some(evidence) = finding.evidence {
            let _ = write!(text, "; run {} {}", finding.run.id, evidence.messages());
            if let Some(path) = &evidence.path {
                let _ = write!(text, " at {}", cut(path, MOST_CHARACTERS));
            }
            if let Some(found) = &evidence.text {
                let _ = write!(text, ": {}", cut(found, MOST_CHARACTERS));
            }
        }
        if let Some(number) = finding.info.and_then(|info| info.line) {
            let (file, line) = view.place_of(cell.document, Some(number));
            let _ = write!(text, " ({file}:{line})");
        }
        text.push('\n');
    }
    text
}

fn counts(cell: &MatrixCell<'_>) -> String {
    let counts = &cell.summary.attacks;
    let mut text = format!(
        "runs {}: exploited {}, partial {}, resisted {}, inconclusive {}",
        counts.runs, counts.exploited, counts.partial, counts.resisted, counts.inconclusive
    );
    if counts.runs > 0 {
        let _ = write!(text, "\nconditions held: {}", cell.conditions_line());
    }
    let twins = &cell.summary.twins;
    if twins.runs > 0 {
        let _ = write!(
            text,
            "\ncontrol runs {}: task done {}, false positives {}",
            twins.runs,
            of(&twins.task_success),
            of(&twins.false_positives)
        );
    }
    if let Some(change) = cell.change {
        let _ = write!(text, "\nsince the baseline: {}", change.change.word());
    }
    text
}

/// A text for an attribute: on one line, as readers of XML take line ends there for spaces.
fn attribute(text: &str) -> String {
    xml_text(text, MOST_CHARACTERS).replace('\n', " ")
}

/// A text with nothing in it that the library would drop without a word: what XML does not allow, and what
/// cannot be seen, is written by its number, and tabs become spaces. The library escapes the rest.
fn xml_text(text: &str, most: usize) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in cut(text, most).chars() {
        match c {
            '\n' => safe.push('\n'),
            '\t' => safe.push(' '),
            c if is_hidden(c) => safe.push_str(&number_of(c)),
            // The last two of every plane are no characters.
            c if u32::from(c) & 0xfffe == 0xfffe => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}
