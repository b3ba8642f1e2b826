//! The report as Markdown for a comment on a pull request: short, with the details folded.

use std::collections::HashSet;
use std::fmt::Write;

use super::guard;
use super::text::{cut, full_stop, interval, line, of, percent, plural, words};
use super::view::{MatrixCell, ReportView, reasons_line};
use proofhouse_campaign::outcome::{InconclusiveReason, RunOutcome};
use proofhouse_campaign::probes::channel_lines;

/// How many rows a table has.
const MOST_ROWS: usize = 100;

/// How many reasons of inconclusive runs are explained.
const MOST_REASONS: usize = 20;

/// How many findings of one attack and subject have their evidence shown.
const MOST_EVIDENCE: usize = 3;

/// How many bytes there are before rows are left out: a comment has room for 65 536.
const MOST_BYTES: usize = 48 << 10;

/// How much of a text is shown.
const MOST_CHARACTERS: usize = 120;

/// How much of a fix is shown.
const MOST_OF_FIX: usize = 400;

pub(crate) fn render(view: &ReportView<'_>) -> String {
    let mut out = String::new();
    let overall = &view.summary.overall;
    let success = &overall.attacks.success;
    let verdict = match (overall.documents_exploited, overall.documents_counted) {
        (0, 0) => "no conclusive result".to_owned(),
        (0, all) if overall.documents_unproved == 0 => {
            format!("all {} resisted", plural(all, "attack"))
        }
        (0, all) => format!(
            "{} resisted, {} inconclusive",
            plural(all, "attack"),
            overall.documents_unproved
        ),
        (some, all) => format!("{some} of {} {}", view.counted(all), view.got_through()),
    };
    let _ = writeln!(out, "### Proofhouse: {verdict}\n");
    if overall.attacks.runs > 0 {
        let _ = write!(
            out,
            "Attack success rate: **{}** ({} runs, 95% interval {}). {}",
            percent(success),
            of(success),
            interval(success),
            view.success_at_repeats(),
        );
        if overall.attacks.inconclusive > 0 {
            let _ = write!(
                out,
                " **{} of {} runs inconclusive**: {}.",
                overall.attacks.inconclusive,
                overall.attacks.runs,
                reasons_line(overall, 3),
            );
        }
        out.push_str("\n\n");
    }
    subjects(view, &mut out);
    guards(view, &mut out);
    changes(view, &mut out);
    remarks(view, &mut out);
    let bad = view.worst();
    let mut good: Vec<MatrixCell<'_>> = view.by_severity();
    good.retain(|cell| !cell.gave_way());
    if !bad.is_empty() {
        let heading = format!("{} that got through", plural(count(&bad), "attack"));
        attacks(view, &heading, &bad, &mut out);
        evidence(&bad, &mut out);
    }
    if !good.is_empty() {
        let heading = format!(
            "{} that did not get through, were inconclusive or did not run",
            plural(count(&good), "attack")
        );
        attacks(view, &heading, &good, &mut out);
    }
    let _ = writeln!(
        out,
        "<sub>proofhouse {}, {} per attack and subject, seed {}</sub>",
        escape(&view.result.proofhouse),
        plural(u64::from(view.result.repeats), "run"),
        view.result.seed
    );
    out
}

fn count<T>(list: &[T]) -> u64 {
    list.len() as u64
}

fn subjects(view: &ReportView<'_>, out: &mut String) {
    out.push_str(
        "| subject | attacks that got through | attack success | 95% interval | inconclusive \
         | control tasks done | false positives |\n|---|---|---|---|---|---|---|\n",
    );
    let mut rows = 0;
    for (subject, group) in view
        .result
        .subjects
        .iter()
        .zip(&view.summary.subjects)
        .take(MOST_ROWS)
    {
        if out.len() > MOST_BYTES {
            break;
        }
        rows += 1;
        let _ = writeln!(
            out,
            "| {}{} | {} of {} | {} ({}) | {} | {} | {} | {} |",
            escape(&subject.name),
            if subject.simulation {
                " (simulation)"
            } else {
                ""
            },
            group.documents_exploited,
            group.documents_counted,
            percent(&group.attacks.success),
            of(&group.attacks.success),
            interval(&group.attacks.success),
            group.attacks.inconclusive,
            of(&group.twins.task_success),
            of(&group.twins.false_positives),
        );
    }
    left_out(view.result.subjects.len() - rows, out);
    out.push('\n');
}

/// Every guarded subject twice: without the guard, and with it.
fn guards(view: &ReportView<'_>, out: &mut String) {
    if view.summary.guards.is_empty() {
        return;
    }
    let _ = writeln!(out, "| {} |", guard::HEADINGS.join(" | "));
    let _ = writeln!(out, "|{}", "---|".repeat(guard::HEADINGS.len()));
    for row in guard::rows(&view.summary.guards).take(MOST_ROWS) {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            escape(row.subject),
            escape(row.guard),
            row.attacks(),
            row.success(),
            row.group.attacks.inconclusive,
            of(&row.group.twins.task_success),
            row.asks(),
            row.blocks(),
        );
    }
    out.push('\n');
    for note in guard::notes(&view.summary.guards) {
        let _ = writeln!(out, "{}\n", escape(&note));
    }
}

fn changes(view: &ReportView<'_>, out: &mut String) {
    let Some(comparison) = view.input.comparison else {
        return;
    };
    let _ = writeln!(
        out,
        "Since {}: **{}**: {}.\n",
        escape(&comparison.baseline),
        plural(comparison.regressions() as u64, "regression"),
        comparison.counts(),
    );
    if let Some(standing) = comparison.standing() {
        let _ = writeln!(out, "{standing}\n");
    }
    if let Some(obstacle) = comparison.obstacle() {
        let _ = writeln!(out, "Nothing is compared: {obstacle}.\n");
    }
    let changed: Vec<_> = comparison
        .cells
        .iter()
        .filter(|cell| cell.change.is_regression() || cell.change.is_improvement())
        .collect();
    if changed.is_empty() && comparison.changed_subjects().next().is_none() {
        return;
    }
    out.push_str("| change | attack | subject | before | now | p |\n|---|---|---|---|---|---|\n");
    for subject in comparison.changed_subjects().take(MOST_ROWS) {
        let _ = writeln!(
            out,
            "| {} | all attacks together | {} | {} | {} | {:.3} |",
            subject.change.word(),
            escape(&subject.subject),
            of(&subject.before),
            of(&subject.now),
            subject.p_value.unwrap_or(1.0),
        );
    }
    let mut rows = 0;
    for cell in changed.iter().take(MOST_ROWS) {
        if out.len() > MOST_BYTES {
            break;
        }
        rows += 1;
        let rate = |rate: &Option<_>| rate.as_ref().map_or_else(|| "–".to_owned(), of);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {:.3} |",
            cell.change.word(),
            escape(&cell.document),
            escape(&cell.subject),
            rate(&cell.before),
            rate(&cell.now),
            cell.adjusted.unwrap_or(1.0),
        );
    }
    left_out(changed.len() - rows, out);
    out.push('\n');
}

fn remarks(view: &ReportView<'_>, out: &mut String) {
    for line in channel_lines(&view.result.probes).iter().take(MOST_ROWS) {
        let subject = escape(&line.subject);
        let _ = writeln!(out, "Channels read by {subject}: {}.\n", line.channels);
    }
    for (risk, state, runs) in view.result.acceptances().take(MOST_ROWS) {
        let sentence = escape_up_to(&state.sentence(view.result, risk, runs), MOST_OF_FIX);
        let _ = writeln!(out, "{}\n", full_stop(&sentence));
    }
    if !view.result.complete {
        out.push_str("**Incomplete:** not every planned run was made.\n\n");
    }
    if view.summary.overall.attacks.inconclusive > 0 {
        out.push_str(
            "Inconclusive runs count in no rate. A run has resisted only if all six conditions held.\n\n",
        );
        for group in view.inconclusive().iter().take(MOST_REASONS) {
            let code = group.reason.map_or("failed", InconclusiveReason::code);
            let _ = writeln!(
                out,
                "- {}, {} ({code}): {} {}",
                escape(group.subject),
                plural(group.runs, "run"),
                escape_up_to(group.what, MOST_OF_FIX),
                escape_up_to(group.advice.unwrap_or_default(), MOST_OF_FIX),
            );
        }
        out.push('\n');
    }
}

fn attacks(view: &ReportView<'_>, heading: &str, cells: &[MatrixCell<'_>], out: &mut String) {
    let _ = writeln!(out, "<details><summary>{heading}</summary>\n");
    out.push_str("| result | attack | subject | success | 95% interval | inconclusive | tier |\n");
    out.push_str("|---|---|---|---|---|---|---|\n");
    let mut rows = 0;
    for cell in cells.iter().take(MOST_ROWS) {
        if out.len() > MOST_BYTES {
            break;
        }
        rows += 1;
        let summary = cell.summary;
        let outcome = summary.outcome.map_or(cell.absence(), RunOutcome::word);
        let _ = writeln!(
            out,
            "| {outcome}{}{} | {} | {} | {} | {} | {} | {} |",
            if summary.flaky { ", flaky" } else { "" },
            if view.is_accepted(cell) {
                ", accepted"
            } else {
                ""
            },
            escape(&cell.title()),
            escape(&cell.subject.name),
            of(&summary.attacks.success),
            interval(&summary.attacks.success),
            inconclusive(cell),
            escape(&words(summary.tier.as_deref().unwrap_or("–"))),
        );
    }
    left_out(cells.len() - rows, out);
    out.push_str("\n</details>\n\n");
}

/// How many runs are inconclusive, why, and which conditions did not hold.
fn inconclusive(cell: &MatrixCell<'_>) -> String {
    match (cell.summary.attacks.inconclusive, cell.reason()) {
        (0, _) => "0".to_owned(),
        (runs, None) => runs.to_string(),
        (runs, Some(reason)) => format!(
            "{runs}: {} (not held: {})",
            reason.code(),
            cell.unmet_line()
        ),
    }
}

fn evidence(cells: &[MatrixCell<'_>], out: &mut String) {
    out.push_str("<details><summary>Evidence and fixes</summary>\n\n");
    let mut shown = 0;
    // The fix of an attack is the same for all subjects.
    let mut fixed = HashSet::new();
    for cell in cells.iter().take(MOST_ROWS) {
        if out.len() > MOST_BYTES {
            break;
        }
        shown += 1;
        for finding in cell.findings().iter().take(MOST_EVIDENCE) {
            let _ = write!(
                out,
                "- {} on {}: {}",
                escape(&cell.document.id),
                escape(&cell.subject.name),
                escape(&finding.indicator.id),
            );
            if let Some(evidence) = finding.evidence {
                let _ = write!(out, ", {}", evidence.messages());
                if let Some(path) = &evidence.path {
                    let _ = write!(out, " at {}", code(path));
                }
                if let Some(text) = &evidence.text {
                    let _ = write!(out, ": {}", code(text));
                }
            }
            out.push('\n');
        }
        if !fixed.insert(cell.document_number) {
            continue;
        }
        for (place, what) in cell.document.mitigation.parts() {
            let what = escape_up_to(what, MOST_OF_FIX);
            let _ = writeln!(out, "  - Fix {}: {what}", place.to_lowercase());
        }
    }
    left_out(cells.len() - shown, out);
    out.push_str("\n</details>\n\n");
}

fn left_out(rows: usize, out: &mut String) {
    if rows > 0 {
        let _ = writeln!(out, "\n{rows} more are left out.");
    }
}

/// A text from outside: one line, cut, with everything that Markdown or HTML could take for its own
/// written as a reference.
fn escape(text: &str) -> String {
    escape_up_to(text, MOST_CHARACTERS)
}

/// The same with a length of its own.
fn escape_up_to(text: &str, most: usize) -> String {
    let mut escaped = String::new();
    for c in line(&cut(text, most)).chars() {
        if c.is_ascii_punctuation() && !matches!(c, '.' | ',' | '-' | '/') {
            let _ = write!(escaped, "&#{};", u32::from(c));
        } else {
            escaped.push(c);
        }
        // People and issues are looked for once references are read, and not across a comment.
        if matches!(c, '@' | '#') {
            escaped.push_str("<!-- -->");
        }
    }
    // An address is a link even without a sign around it.
    escaped.replace("www.", "www&#46;")
}

/// A text from outside as it is, in a fixed font.
fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}
