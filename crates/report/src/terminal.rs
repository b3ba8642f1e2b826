//! The report for people at a terminal: a line per attack and subject by severity, what they add up to, and the worst findings
//! with their evidence and how to fix them. It is as wide as the terminal.

use std::fmt::Write;

use super::guard;
use super::text::{
    amount, column, cut, duration, full_stop, in_a_sentence, interval, line, of, percent, plural,
    words,
};
use super::view::{InconclusiveGroup, MatrixCell, ReportView, reasons_line, severity_rank, title};
use proofhouse_campaign::outcome::{InconclusiveReason, RunOutcome};
use proofhouse_campaign::probes::channel_lines;
use proofhouse_campaign::summary::RunGroup;

/// The fewest columns that are used, and the most.
const WIDTHS: (usize, usize) = (60, 160);

/// Below this width, the table of subjects leaves out controls, tokens and times.
const NARROW: usize = 80;

/// Below this width, the table of attacks leaves out intervals and tiers, so that their names can be read.
const NARROW_FOR_ATTACKS: usize = 100;

/// How many findings are shown with evidence and fix.
const MOST_FINDINGS: usize = 3;

/// How much of a piece of evidence is shown.
const MOST_EVIDENCE: usize = 160;

/// How much of a title, of what happened and of a fix is shown.
const MOST_OF_TEXT: usize = 300;

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
    let painter = Painter {
        colour: view.input.colour,
        width: view.input.width.clamp(WIDTHS.0, WIDTHS.1),
    };
    lines_of_attacks(view, &painter, &mut out);
    out.push('\n');
    lines_of_subjects(view, &painter, &mut out);
    lines_of_guards(view, &painter, &mut out);
    if let Some(comparison) = view.input.comparison {
        out.push('\n');
        painter.wrap(
            &format!(
                "Since {}: {}",
                line(&comparison.baseline),
                comparison.counts()
            ),
            &mut out,
        );
        if let Some(standing) = comparison.standing() {
            painter.wrap(&standing, &mut out);
        }
        if let Some(obstacle) = comparison.obstacle() {
            painter.wrap(&format!("Nothing is compared: {obstacle}."), &mut out);
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
                "all attacks together",
                &one.subject,
                of(&one.before),
                of(&one.now),
            )
        });
        // Beside it there are a word, a subject and two rates.
        let document_width = (painter.width - 44).min(30);
        for (change, document, subject, before, now) in as_a_whole.chain(changed).take(MOST_CHANGES)
        {
            let code = if change.is_regression() { RED } else { GREEN };
            let _ = writeln!(
                out,
                "  {} {}  {}  {before} → {now}",
                painter.paint(code, &column(change.word(), 6)),
                column(document, document_width),
                column(subject, 16),
            );
        }
    }
    out.push('\n');
    notes(view, &painter, &mut out);
    findings(view, &painter, &mut out);
    headline(view, &painter, &mut out);
    out
}

fn lines_of_attacks(view: &ReportView<'_>, painter: &Painter, out: &mut String) {
    // What short names of subjects leave over, attacks have.
    let names = view.result.subjects.iter();
    let widest = names.map(|subject| unicode_width::UnicodeWidthStr::width(subject.name.as_str()));
    let subject_width = widest.max().unwrap_or(0).clamp(7, painter.width / 5);
    let is_narrow = painter.width < NARROW_FOR_ATTACKS;
    let fixed = if is_narrow { 28 } else { 46 };
    let cells = view.by_severity();
    let longest = cells.iter().map(|cell| title(cell.document));
    let longest = longest.map(|title| unicode_width::UnicodeWidthStr::width(title.as_str()));
    // No wider than its names, so that a row can be followed.
    let document_width = painter
        .width
        .saturating_sub(fixed + subject_width)
        .min(longest.max().unwrap_or(0).max(6));
    let mut heading = format!(
        "{}  {}  {}  {}",
        column("RESULT", 12),
        column("ATTACK", document_width),
        column("SUBJECT", subject_width),
        column("HITS", 5),
    );
    heading.push_str(if is_narrow {
        "  INC"
    } else {
        "  95%       INC  TIER"
    });
    let _ = writeln!(out, "{}", painter.paint(BOLD, &heading));
    for level in cells.chunk_by(|one, next| level_of(one) == level_of(next)) {
        if let Some(first) = level.first() {
            let _ = writeln!(out, "{}", painter.paint(DIM, level_of(first)));
        }
        for cell in level {
            let summary = cell.summary;
            let inconclusive = match summary.attacks.inconclusive {
                0 => String::new(),
                runs => amount(runs),
            };
            let mut row = format!(
                "{}  {}  {}  {}",
                result(view, painter, cell),
                column(&title(cell.document), document_width),
                column(&cell.subject.name, subject_width),
                column(&of(&summary.attacks.success), 5),
            );
            if !is_narrow {
                let interval = interval(&summary.attacks.success);
                row.push_str(&format!("  {}", column(&interval, 8)));
            }
            row.push_str(&format!("  {}", column(&inconclusive, 3)));
            if !is_narrow {
                row.push_str(&format!("  {}", tier(summary.tier.as_deref())));
            }
            let _ = writeln!(out, "{}", row.trim_end());
        }
    }
}

/// The severity of a cell, as a heading.
fn level_of(cell: &MatrixCell<'_>) -> &'static str {
    match severity_rank(cell.document.severity.as_deref()) {
        5 => "Critical",
        4 => "High",
        3 => "Medium",
        2 => "Low",
        1 => "Informational",
        _ => "Unrated",
    }
}

fn result(view: &ReportView<'_>, painter: &Painter, cell: &MatrixCell<'_>) -> String {
    let (word, code) = match cell.summary.outcome {
        None => (cell.absence(), DIM),
        Some(_) if view.is_accepted(cell) => ("accepted", YELLOW),
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
    let is_narrow = painter.width < NARROW;
    let mut heading = format!(
        "{}  {}  {}  {}  {}",
        column("SUBJECT", 16),
        column("ATTACKS", 7),
        column("HITS", 9),
        column("95%", 8),
        column("INC", 5),
    );
    if !is_narrow {
        heading.push_str(&format!("  CONTROL  {}  TIME", column("TOKENS", 6)));
    }
    let _ = writeln!(out, "{}", painter.paint(BOLD, heading.trim_end()));
    let subject = |group: &RunGroup| {
        let name = group.subject.as_deref().unwrap_or("all").to_owned();
        let tokens = group.cost.tokens.map_or_else(|| "–".to_owned(), amount);
        let mut row = format!(
            "{}  {}  {}  {}  {}",
            column(&name, 16),
            column(
                &format!("{}/{}", group.documents_exploited, group.documents_counted),
                7
            ),
            column(&of(&group.attacks.success), 9),
            column(&interval(&group.attacks.success), 8),
            column(&amount(group.attacks.inconclusive), 5),
        );
        if !is_narrow {
            row.push_str(&format!(
                "  {}  {}  {}",
                column(&of(&group.twins.task_success), 7),
                column(&tokens, 6),
                duration(group.cost.milliseconds),
            ));
        }
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

/// Every guarded subject twice: without the guard, and with it.
fn lines_of_guards(view: &ReportView<'_>, painter: &Painter, out: &mut String) {
    if view.summary.guards.is_empty() {
        return;
    }
    let is_narrow = painter.width < NARROW;
    let (subject_width, guard_width) = if is_narrow { (10, 8) } else { (16, 12) };
    let row = |[
        subject,
        guard,
        attacks,
        hits,
        inconclusive,
        control,
        asks,
        blocks,
    ]: [&str; 8]| {
        let control = if is_narrow {
            String::new()
        } else {
            format!("{}  ", column(control, 7))
        };
        let row = format!(
            "{}  {}  {}  {}  {}  {control}{}  {blocks}",
            column(subject, subject_width),
            column(guard, guard_width),
            column(attacks, 7),
            column(hits, 9),
            column(inconclusive, 3),
            column(asks, 5),
        );
        row.trim_end().to_owned()
    };
    let heading = row([
        "SUBJECT", "GUARD", "ATTACKS", "HITS", "INC", "CONTROL", "ASKS", "BLOCKS",
    ]);
    let _ = writeln!(out, "\n{}", painter.paint(BOLD, &heading));
    for side in guard::rows(&view.summary.guards) {
        let line = row([
            side.subject,
            side.guard,
            &side.attacks(),
            &of(&side.group.attacks.success),
            &amount(side.group.attacks.inconclusive),
            &of(&side.group.twins.task_success),
            &side.asks(),
            &side.blocks(),
        ]);
        let _ = writeln!(out, "{line}");
    }
    out.push('\n');
    painter.wrap(
        "ASKS, BLOCKS: in attack runs and in control runs, with the guard.",
        out,
    );
    for note in guard::notes(&view.summary.guards) {
        painter.wrap(&line(&note), out);
    }
}

/// What has to be known to read the tables, and what is missing in them.
fn notes(view: &ReportView<'_>, painter: &Painter, out: &mut String) {
    let overall = &view.summary.overall;
    let control = if painter.width < NARROW {
        ""
    } else {
        " CONTROL: control runs (the task without the attack) that did their task. TIME: all runs added up, although \
         they overlap."
    };
    let mut notes = vec![format!(
        "HITS: runs in which the attack got through, of all conclusive runs. 95%: confidence interval \
         of that rate. INC: inconclusive runs, which count in no rate.{control} A run has resisted only \
         if all six conditions hold (see: proofhouse explain resisted)."
    )];
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
                "  {} on {}: the agent does the same without the attack, so a hit there may not be the attack's doing.",
                column(&cell.document.id, 20).trim_end(),
                column(&cell.subject.name, 14).trim_end(),
            ));
        }
    }
    if overall.attacks.inconclusive > 0 {
        notes.push(format!(
            "Inconclusive: {}",
            plural(overall.attacks.inconclusive, "run")
        ));
        let groups = view.inconclusive();
        for group in groups.iter().take(MOST_CHANGES) {
            notes.extend(lines_of_inconclusive(group));
        }
    }
    let channels = channel_lines(&view.result.probes);
    notes.extend(
        channels
            .iter()
            .map(|text| full_stop(&line(&text.to_string()))),
    );
    let simulations = view.simulations();
    if !simulations.is_empty() {
        let names: Vec<String> = simulations.iter().map(|name| line(name)).collect();
        notes.push(format!("Simulated, not real agents: {}.", names.join(", ")));
    }
    if view.result.spared > 0 {
        notes.push(format!(
            "Skipped {} that could not have changed the result.",
            plural(view.result.spared, "run")
        ));
    }
    if !view.result.complete {
        notes.push("Incomplete: not every planned run was made.".to_owned());
    }
    let accepted = view.result.acceptances();
    notes.extend(
        accepted
            .map(|(risk, state, runs)| full_stop(&line(&state.sentence(view.result, risk, runs)))),
    );
    for note in notes {
        painter.wrap(&note, out);
    }
}

/// Why runs of a subject are inconclusive, of which attacks, and what to do about it.
fn lines_of_inconclusive(group: &InconclusiveGroup<'_>) -> Vec<String> {
    let ids = group.documents.iter().take(MOST_CHANGES);
    let mut ids: Vec<String> = ids.map(|id| column(id, 20).trim_end().to_owned()).collect();
    if group.documents.len() > MOST_CHANGES {
        ids.push(format!("{} more", group.documents.len() - MOST_CHANGES));
    }
    let code = group.reason.map_or("failed", InconclusiveReason::code);
    let first = if group.runs > 1 { "first run: " } else { "" };
    let why = group.why.map(|why| format!(" ({first}{why})"));
    let what = format!("{}{}", group.what, why.unwrap_or_default());
    let mut lines = vec![
        format!(
            "  {}, {} ({code}): {}",
            column(group.subject, 20).trim_end(),
            plural(group.runs, "run"),
            line(&cut(&what, MOST_OF_TEXT)),
        ),
        format!("    Attacks: {}.", ids.join(", ")),
    ];
    if let Some(advice) = group.advice {
        lines.push(format!("    Next: {advice}"));
    }
    lines
}

/// The worst findings, each with what happened, its evidence and how to fix it.
fn findings(view: &ReportView<'_>, painter: &Painter, out: &mut String) {
    let worst = view.worst();
    if worst.is_empty() {
        return;
    }
    let heading = match worst.len() {
        1 => "\nThe finding".to_owned(),
        all if all <= MOST_FINDINGS => format!("\nThe {all} findings, the worst first"),
        all => format!("\nThe {MOST_FINDINGS} worst of {all} findings"),
    };
    let _ = writeln!(out, "{}", painter.paint(BOLD, &heading));
    for (number, cell) in (1..).zip(worst.iter().take(MOST_FINDINGS)) {
        let accepted = if view.is_accepted(cell) {
            ", accepted"
        } else {
            ""
        };
        let mut heading = String::new();
        painter.wrap(
            &format!(
                "   [{}{accepted}] {}",
                level_of(cell).to_lowercase(),
                line(&cut(&title(cell.document), MOST_OF_TEXT))
            ),
            &mut heading,
        );
        let _ = write!(out, "{number}.{}", heading.get(2..).unwrap_or_default());
        let sentence = cut(&cell.sentence(), MOST_OF_TEXT);
        painter.wrap(&format!("   {}", line(&sentence)), out);
        let found = cell.findings();
        let shown = found
            .iter()
            .find_map(|finding| Some((finding.run, finding.evidence?)));
        if let Some((run, evidence)) = shown {
            let place = evidence
                .path
                .as_deref()
                .map(|path| format!(", {}", line(path)));
            let text = evidence
                .text
                .as_deref()
                .map(|text| format!(": {}", line(&cut(text, MOST_EVIDENCE))));
            painter.wrap(
                &format!(
                    "   Evidence: {} of run {}{}{}",
                    evidence.messages(),
                    line(&run.id),
                    place.unwrap_or_default(),
                    text.unwrap_or_default()
                ),
                out,
            );
        }
        if let Some((place, what)) = cell.document.mitigation.parts().next() {
            let what = line(&cut(what, MOST_OF_TEXT));
            painter.wrap(
                &format!("   Fix {}: {}", in_a_sentence(place), in_a_sentence(&what)),
                out,
            );
        }
    }
    out.push('\n');
}

/// The attack success rate with its interval, which is what people look for at the end.
fn headline(view: &ReportView<'_>, painter: &Painter, out: &mut String) {
    let overall = &view.summary.overall;
    let exploited = view.cells().filter_map(|cell| cell.summary.tier.as_deref());
    let highest = exploited.max_by_key(|tier| proofhouse_campaign::summary::tier_rank(Some(tier)));
    let success = &overall.attacks.success;
    let mut last = match success.value() {
        Some(_) => format!(
            "Attack success rate: {} ({} runs, 95% interval {}). {}",
            percent(success),
            of(success),
            interval(success),
            view.success_at_repeats(),
        ),
        None => "Attack success rate: unknown, because no run is conclusive.".to_owned(),
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
    painter.wrap(&last, out);
    for effect in &view.summary.guards {
        let success = |group: &RunGroup| {
            let success = &group.attacks.success;
            format!("{} ({})", percent(success), of(success))
        };
        let text = format!(
            "With the guard, {}: attack success {} instead of {}, control tasks done {} instead of {}.",
            line(&effect.subject),
            success(&effect.with),
            success(&effect.without),
            of(&effect.with.twins.task_success),
            of(&effect.without.twins.task_success),
        );
        painter.wrap(&text, out);
    }
}

/// Colours, where they are asked for, and the width.
struct Painter {
    colour: bool,
    width: usize,
}

impl Painter {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Writes a text in lines of at most the width. Words that are wider stand alone and are cut.
    fn wrap(&self, text: &str, out: &mut String) {
        let indent = &text[..text.len() - text.trim_start_matches(' ').len()];
        let mut used = 0;
        for word in text.split_whitespace() {
            let word = column(word, self.width - indent.len());
            let word = word.trim_end();
            let wide = unicode_width::UnicodeWidthStr::width(word);
            if used > 0 && used + 1 + wide > self.width {
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
}
