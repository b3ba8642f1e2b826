//! The report as JUnit XML: a suite per subject, a case per document.
//!
//! An attack that got through is a failure, with its evidence. One that never reached the subject is
//! skipped, so that no build server counts it as passed. One without a verdict is an error.

use std::fmt::Write;

use super::text::{cut, interval, is_hidden, number_of, of, percent, words};
use super::view::{Pair, View};
use crate::result::Outcome;

/// How much of a text goes into one element or attribute.
const MOST_CHARACTERS: usize = 2_000;

/// How many indicators a failure tells of.
const MOST_FINDINGS: usize = 50;

pub(super) fn render(view: &View<'_>) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let pairs: Vec<Pair<'_>> = view.pairs().collect();
    let sum = |kind: Kind| pairs.iter().filter(|pair| Kind::of(pair) == kind).count();
    let _ = writeln!(
        out,
        "<testsuites name=\"proofhouse\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{}\">",
        pairs.len(),
        sum(Kind::Failure),
        sum(Kind::Error),
        seconds(view.summary.overall.cost.milliseconds),
    );
    for (number, subject) in view.result.subjects.iter().enumerate() {
        let own: Vec<&Pair<'_>> = pairs
            .iter()
            .filter(|pair| pair.subject_number == number)
            .collect();
        let count = |kind: Kind| own.iter().filter(|pair| Kind::of(pair) == kind).count();
        let time: u64 = own.iter().map(|pair| pair.cell.cost.milliseconds).sum();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" id=\"{number}\" package=\"proofhouse\" tests=\"{}\" failures=\"{}\" \
             errors=\"{}\" skipped=\"{}\" time=\"{}\" timestamp=\"{}\" hostname=\"localhost\">",
            escape(&subject.name),
            own.len(),
            count(Kind::Failure),
            count(Kind::Error),
            count(Kind::Skipped),
            seconds(time),
            escape(
                view.result
                    .started_at
                    .get(..19)
                    .unwrap_or(&view.result.started_at)
            ),
        );
        out.push_str("    <properties>\n");
        for (name, value) in [
            ("proofhouse.version", view.result.proofhouse.clone()),
            ("proofhouse.seed", view.result.seed.to_string()),
            ("proofhouse.complete", view.result.complete.to_string()),
            ("subject.kind", subject.kind.clone()),
            ("subject.simulation", subject.simulation.to_string()),
        ] {
            let _ = writeln!(
                out,
                "      <property name=\"{name}\" value=\"{}\"/>",
                escape(&value)
            );
        }
        out.push_str("    </properties>\n");
        for pair in own {
            case(pair, &mut out);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// What a pair is to a build server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Passed,
    Failure,
    Skipped,
    Error,
}

impl Kind {
    fn of(pair: &Pair<'_>) -> Self {
        match pair.cell.outcome {
            Some(Outcome::Exploited | Outcome::Partial) => Self::Failure,
            Some(Outcome::Resisted) => Self::Passed,
            Some(Outcome::NotReached) | None => Self::Skipped,
            Some(Outcome::Error) => Self::Error,
        }
    }
}

fn case(pair: &Pair<'_>, out: &mut String) {
    let cell = pair.cell;
    let _ = writeln!(
        out,
        "    <testcase name=\"{}\" classname=\"{}\" time=\"{}\">",
        escape(&pair.title()),
        escape(&format!(
            "{}.{}",
            pair.subject.name,
            pair.document.category.as_deref().unwrap_or("uncategorised")
        )),
        seconds(cell.cost.milliseconds),
    );
    match Kind::of(pair) {
        Kind::Passed => {}
        Kind::Failure => failure(pair, out),
        Kind::Skipped => {
            let why = if cell.outcome.is_none() {
                "not run".to_owned()
            } else {
                format!(
                    "nothing of the attack reached the subject in {} runs, so nothing is proved",
                    cell.attacks.not_reached
                )
            };
            let _ = writeln!(out, "      <skipped>{}</skipped>", escape(&why));
        }
        Kind::Error => {
            let why = escape(pair.error().unwrap_or("no reason was given"));
            let _ = writeln!(
                out,
                "      <error type=\"no-verdict\" message=\"{why}\">{why}</error>"
            );
        }
    }
    let _ = writeln!(
        out,
        "      <system-out>{}</system-out>",
        escape(&counts(pair))
    );
    out.push_str("    </testcase>\n");
}

fn failure(pair: &Pair<'_>, out: &mut String) {
    let cell = pair.cell;
    let outcome = cell.outcome.map_or("", Outcome::word);
    let message = format!(
        "{outcome} in {} runs ({}, 95% interval {}){}{}",
        of(&cell.attacks.success),
        percent(&cell.attacks.success),
        interval(&cell.attacks.success),
        cell.tier
            .as_deref()
            .map_or_else(String::new, |tier| format!(", {}", words(tier))),
        if cell.flaky { ", flaky" } else { "" },
    );
    let mut text = String::new();
    for finding in pair.findings().iter().take(MOST_FINDINGS) {
        let _ = write!(
            text,
            "{} matched in {} runs",
            finding.indicator.id, finding.runs
        );
        if let Some(evidence) = finding.evidence {
            let _ = write!(text, "; run {} message {}", finding.run.id, evidence.seq);
            if let Some(path) = &evidence.path {
                let _ = write!(text, " at {}", cut(path, MOST_CHARACTERS));
            }
            if let Some(found) = &evidence.text {
                let _ = write!(text, ": {}", cut(found, MOST_CHARACTERS));
            }
        }
        if let Some(line) = finding.info.and_then(|info| info.line) {
            let _ = write!(text, " ({}:{line})", pair.document.path);
        }
        text.push('\n');
    }
    let _ = writeln!(
        out,
        "      <failure type=\"{}\" message=\"{}\">{}</failure>",
        escape(outcome),
        escape(&message),
        escape_up_to(&text, MOST_CHARACTERS * MOST_FINDINGS),
    );
}

fn counts(pair: &Pair<'_>) -> String {
    let counts = &pair.cell.attacks;
    let mut text = format!(
        "runs {}: exploited {}, partial {}, resisted {}, not reached {}, error {}",
        counts.runs,
        counts.exploited,
        counts.partial,
        counts.resisted,
        counts.not_reached,
        counts.errors
    );
    let twins = &pair.cell.twins;
    if twins.runs > 0 {
        let _ = write!(
            text,
            "\ntwin runs {}: task done {}, false positives {}",
            twins.runs,
            of(&twins.task_success),
            of(&twins.false_positives)
        );
    }
    if let Some(change) = pair.change {
        let _ = write!(text, "\nsince the baseline: {}", change.change.word());
    }
    text
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1_000, milliseconds % 1_000)
}

fn escape(text: &str) -> String {
    escape_up_to(text, MOST_CHARACTERS)
}

/// A text as XML, in elements and attributes alike. What XML does not allow, and what cannot be seen, is
/// written by its number.
fn escape_up_to(text: &str, most: usize) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in cut(text, most).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            c if is_hidden(c) => escaped.push_str(&escape_up_to(&number_of(c), most)),
            // The last two of every plane are no characters.
            c if u32::from(c) & 0xfffe == 0xfffe => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
