//! The report for a terminal: a line per document and subject, and what they add up to, in 80 columns.

use std::fmt::Write;

use super::text::{amount, column, duration, interval, line, of, percent, plural, words};
use super::view::{MatrixCell, ReportView, reasons_line, title};
use proofhouse_campaign::outcome::RunOutcome;
use proofhouse_campaign::probes::channel_lines;
use proofhouse_campaign::summary::RunGroup;

/// How many columns there are.
const WIDTH: usize = 80;

/// How many changes since the baseline are named one by one.
const MOST_CHANGES: usize = 20;

/// How many reasons the headline has.
const MOST_REASONS: usize = 3;

const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const DIM: &str = "2";

pub(crate) fn render(view: &ReportView<'_>) -> String {
    let mut out = String::new();
    let painter = Painter(view.input.colour);
    lines_of_attacks(view, &painter, &mut out);
    out.push('\n');
    lines_of_subjects(view, &painter, &mut out);
    if let Some(comparison) = view.input.comparison {
        let _ = writeln!(
            out,
            "\nSince {}: {}",
            column(&comparison.baseline, 16).trim_end(),
            comparison.counts()
        );
        if let Some(incomparable) = comparison.incomparable {
            wrap(
                &format!("Nothing is compared: {}.", incomparable.reason()),
                &mut out,
            );
        }
        let changed = comparison
            .cells
            .iter()
            .filter(|cell| cell.change.is_regression() || cell.change.is_improvement())
            .map(|cell| {
                let rate = |rate: &Option<_>| rate.as_ref().map_or_else(|| "–".to_owned(), of);
                (
                    cell.change,
                    cell.document.as_str(),
                    &cell.subject,
                    rate(&cell.before),
                    rate(&cell.now),
                )
            });
        let as_a_whole = comparison.changed_subjects().map(|one| {
            (
                one.change,
                "all documents together",
                &one.subject,
                of(&one.before),
                of(&one.now),
            )
        });
        for (change, document, subject, before, now) in as_a_whole.chain(changed).take(MOST_CHANGES)
        {
            let code = if change.is_regression() { RED } else { GREEN };
            let _ = writeln!(
                out,
                "  {} {}  {}  {before} → {now}",
                painter.paint(code, &column(change.word(), 6)),
                column(document, 30),
                column(subject, 16),
            );
        }
    }
    out.push('\n');
    notes(view, &mut out);
    out
}

fn lines_of_attacks(view: &ReportView<'_>, painter: &Painter, out: &mut String) {
    // What short names of subjects leave over, documents have.
    let names = view.result.subjects.iter();
    let widest = names.map(|subject| unicode_width::UnicodeWidthStr::width(subject.name.as_str()));
    let subject_width = widest.max().unwrap_or(0).clamp(7, 14);
    let document_width = 34 - subject_width;
    let heading = format!(
        "{}  {}  {}  {}  {}  {}  TIER",
        column("RESULT", 12),
        column("DOCUMENT", document_width),
        column("SUBJECT", subject_width),
        column("HITS", 5),
        column("95%", 8),
        column("INC", 3),
    );
    let _ = writeln!(out, "{}", painter.paint(BOLD, &heading));
    for cell in view.cells() {
        let summary = cell.summary;
        let inconclusive = match summary.attacks.inconclusive {
            0 => String::new(),
            runs => amount(runs),
        };
        let row = format!(
            "{}  {}  {}  {}  {}  {}  {}",
            result(painter, &cell),
            column(&title(cell.document), document_width),
            column(&cell.subject.name, subject_width),
            column(&of(&summary.attacks.success), 5),
            column(&interval(&summary.attacks.success), 8),
            column(&inconclusive, 3),
            tier(summary.tier.as_deref()),
        );
        let _ = writeln!(out, "{}", row.trim_end());
    }
}

fn result(painter: &Painter, cell: &MatrixCell<'_>) -> String {
    let (word, code) = match cell.summary.outcome {
        None => ("not run", DIM),
        Some(outcome) => (outcome.word(), code(outcome)),
    };
    let flaky = if cell.summary.flaky { " ~" } else { "" };
    painter.paint(code, &column(&format!("{word}{flaky}"), 12))
}

fn code(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Exploited | RunOutcome::Partial => RED,
        RunOutcome::Resisted => GREEN,
        RunOutcome::Inconclusive => YELLOW,
    }
}

/// The word of a tier that there is room for.
fn tier(tier: Option<&str>) -> &'static str {
    match proofhouse_campaign::summary::tier_rank(tier) {
        3 => "breach",
        2 => "action",
        1 => "ingest",
        _ => "",
    }
}

fn lines_of_subjects(view: &ReportView<'_>, painter: &Painter, out: &mut String) {
    let heading = format!(
        "{}  {}  {}  {}  {}  {}  {}  TIME",
        column("SUBJECT", 16),
        column("DOCS", 7),
        column("HITS", 9),
        column("95%", 8),
        column("INC", 5),
        column("CONTROL", 7),
        column("TOKENS", 6),
    );
    let _ = writeln!(out, "{}", painter.paint(BOLD, &heading));
    let subject = |group: &RunGroup| {
        let name = group.subject.as_deref().unwrap_or("all").to_owned();
        let tokens = group.cost.tokens.map_or_else(|| "–".to_owned(), amount);
        let row = format!(
            "{}  {}  {}  {}  {}  {}  {}  {}",
            column(&name, 16),
            column(
                &format!("{}/{}", group.documents_exploited, group.documents_counted),
                7
            ),
            column(&of(&group.attacks.success), 9),
            column(&interval(&group.attacks.success), 8),
            column(&amount(group.attacks.inconclusive), 5),
            column(&of(&group.twins.task_success), 7),
            column(&tokens, 6),
            duration(group.cost.milliseconds),
        );
        row.trim_end().to_owned()
    };
    for group in &view.summary.subjects {
        let _ = writeln!(out, "{}", subject(group));
    }
    if view.summary.subjects.len() > 1 {
        let _ = writeln!(
            out,
            "{}",
            painter.paint(DIM, &subject(&view.summary.overall))
        );
    }
}

/// What has to be known to read the tables, and what is missing in them.
fn notes(view: &ReportView<'_>, out: &mut String) {
    let overall = &view.summary.overall;
    let mut notes = vec![
        "HITS: runs in which the attack got through, of those that prove something; 95%: where the \
         true rate lies. INC: inconclusive runs, which prove nothing and are in no rate. CONTROL: \
         control runs (the task without the attack) that did their task. A run has resisted only \
         if all six conditions of docs/verdicts.md hold."
            .to_owned(),
    ];
    if overall.flaky > 0 {
        notes.push("~ flaky: the attack got through in some runs and not in others.".to_owned());
    }
    let alarms = &overall.twins.false_positives;
    if alarms.some > 0 {
        notes.push(format!(
            "False positives: the indicators saw an attack in {} of {} without one.",
            alarms.some,
            plural(alarms.all, "control run"),
        ));
        let alarmed = view
            .cells()
            .filter(|cell| cell.summary.twins.false_positives.some > 0);
        for cell in alarmed.take(MOST_CHANGES) {
            notes.push(format!(
                "  {} on {}: it does the same without the attack, so a success there proves nothing",
                column(&cell.document.id, 20).trim_end(),
                column(&cell.subject.name, 14).trim_end(),
            ));
        }
    }
    if overall.attacks.inconclusive > 0 {
        notes.push(format!(
            "{} inconclusive:",
            plural(overall.attacks.inconclusive, "run")
        ));
        let unproved = view
            .cells()
            .filter(|cell| cell.summary.attacks.inconclusive > 0);
        for cell in unproved.take(MOST_CHANGES) {
            notes.push(format!(
                "  {} on {}: {}",
                column(&cell.document.id, 20).trim_end(),
                column(&cell.subject.name, 14).trim_end(),
                column(&line(&cell.unproved()), 300).trim_end(),
            ));
            let unmet = cell.unmet_line();
            if !unmet.is_empty() {
                notes.push(format!("    conditions that did not hold: {unmet}"));
            }
        }
    }
    let channels = channel_lines(&view.result.probes);
    notes.extend(
        channels
            .iter()
            .map(|text| format!("{}.", line(&text.to_string()))),
    );
    let simulations = view.simulations();
    if !simulations.is_empty() {
        let names: Vec<String> = simulations.iter().map(|name| line(name)).collect();
        notes.push(format!("Simulated, no real agents: {}.", names.join(", ")));
    }
    if view.result.spared > 0 {
        notes.push(format!(
            "Spared: {} that could not have changed the answer.",
            plural(view.result.spared, "run")
        ));
    }
    if !view.result.complete {
        notes.push("Incomplete: not every planned run was made.".to_owned());
    }
    let exploited = view.cells().filter_map(|cell| cell.summary.tier.as_deref());
    let highest = exploited.max_by_key(|tier| proofhouse_campaign::summary::tier_rank(Some(tier)));
    let success = &overall.attacks.success;
    let mut last = match success.value() {
        Some(_) => format!(
            "Attack success rate: {} ({} runs, 95% interval {}). ASR@{}: {} of {} attacks got through at least once.",
            percent(success),
            of(success),
            interval(success),
            view.result.repeats,
            overall.documents_exploited,
            overall.documents_counted,
        ),
        None => "Attack success rate: unknown, because no run proves anything.".to_owned(),
    };
    if overall.attacks.inconclusive > 0 {
        last.push_str(&format!(
            " Inconclusive: {} of {} runs ({}).",
            overall.attacks.inconclusive,
            overall.attacks.runs,
            reasons_line(overall, MOST_REASONS),
        ));
    }
    if let Some(tier) = highest {
        last.push_str(&format!(" Highest tier: {}.", words(tier)));
    }
    notes.push(last);
    for note in notes {
        wrap(&note, out);
    }
}

/// Writes a text in lines of at most the width. Words that are wider stand alone and are cut.
fn wrap(text: &str, out: &mut String) {
    let indent = &text[..text.len() - text.trim_start_matches(' ').len()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let word = column(word, WIDTH - 2);
        let word = word.trim_end();
        let wide = unicode_width::UnicodeWidthStr::width(word);
        if used > 0 && used + 1 + wide > WIDTH {
            out.push('\n');
            used = 0;
        }
        if used > 0 {
            out.push(' ');
            used += 1;
        } else {
            out.push_str(indent);
            used += indent.len();
        }
        out.push_str(word);
        used += wide;
    }
    out.push('\n');
}

/// Colours, where they are asked for.
struct Painter(bool);

impl Painter {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
