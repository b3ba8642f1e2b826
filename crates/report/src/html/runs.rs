//! Each document against each subject: facts, evidence, and its runs.

use maud::{Markup, html};
use proofhouse_detect::TraceMessage;

use super::elements::{anchor, badge, cell_class, chips, facts, severity_class, table, twin_badge};
use super::findings::fix;
use super::sequence::{diagram, quote};
use super::untrusted::{code, name, text};
use crate::text::{amount, duration, interval, of, plural, words};
use crate::view::{Finding, MatrixCell, ReportView};
use proofhouse_campaign::result::RunRecord;

/// How many attack runs are shown with their messages, all cells of the matrix together, and how many of
/// one cell. One twin run of each comes on top.
const MOST_FULL_RUNS: usize = 200;
const MOST_FULL_RUNS_OF_CELL: usize = 5;

/// How many runs of a cell are listed at all.
const MOST_RUNS_OF_CELL: usize = 100;

/// How many bytes all messages take together, so that a browser can still open the file.
const MOST_BYTES: usize = 16 << 20;

/// How many pieces of evidence of an indicator are shown.
const MOST_EVIDENCE: usize = 5;

/// What may still be shown in full.
struct ShownBudget {
    runs_of_cell: usize,
    bytes: usize,
}

impl ShownBudget {
    /// Each cell has the same share, and one run at least.
    fn new(view: &ReportView<'_>) -> Self {
        let share = MOST_FULL_RUNS / view.summary.cells.len().max(1);
        Self {
            runs_of_cell: share.clamp(1, MOST_FULL_RUNS_OF_CELL),
            bytes: MOST_BYTES,
        }
    }

    /// Which runs of a cell are shown with their messages, by position: those that tell most.
    fn choose(&self, view: &ReportView<'_>, cell: &MatrixCell<'_>) -> Vec<usize> {
        let recorded = |run: &RunRecord| view.input.traces.contains_key(&run.id);
        let runs = cell
            .runs
            .iter()
            .enumerate()
            .filter(|(_, run)| recorded(run));
        let (twins, mut attacks): (Vec<_>, Vec<_>) = runs.partition(|(_, run)| run.twin);
        attacks.sort_by_key(|(position, run)| (run.outcome, *position));
        let chosen = attacks.into_iter().take(self.runs_of_cell);
        let chosen = chosen.chain(twins.into_iter().take(1));
        chosen.map(|(position, _)| position).collect()
    }

    /// Counts what is shown of a run.
    fn spend(&mut self, run: Markup) -> Markup {
        self.bytes = self.bytes.saturating_sub(run.0.len());
        run
    }
}

pub(super) fn section(view: &ReportView<'_>) -> Markup {
    let mut budget = ShownBudget::new(view);
    html! {
        section #runs { h2 { "Runs" } "\n"
            @for cell in view.cells() { (article(view, &cell, &mut budget)) }
        } "\n"
    }
}

fn article(view: &ReportView<'_>, cell: &MatrixCell<'_>, budget: &mut ShownBudget) -> Markup {
    let anchor = anchor(cell.document_number, cell.subject_number);
    let document = cell.document;
    html! {
        article id=(anchor) class={ "cell " (cell_class(cell)) " " (severity_class(cell.document.severity.as_deref())) } aria-labelledby={ (anchor) "-title" } { "\n"
            h3 id={ (anchor) "-title" } {
                (code(&document.id)) " " (name(&document.name)) " "
                span.muted { "against" } " " (name(&cell.subject.name))
            } "\n"
            p { (badge(cell.summary.outcome)) (chips(cell)) } "\n"
            @if !document.description.is_empty() {
                p.description { (text(document.description.trim())) } "\n"
            }
            (facts(&facts_of_cell(cell)))
            (findings(&cell.findings()))
            (fix(cell))
            (runs(view, cell, budget))
            @if cell.runs.len() > MOST_RUNS_OF_CELL {
                p.note { (cell.runs.len() - MOST_RUNS_OF_CELL) " more runs are left out." } "\n"
            }
            p.back { a href="#matrix" { "Back to all attacks" } } "\n"
        } "\n"
    }
}

fn facts_of_cell(cell: &MatrixCell<'_>) -> Vec<(&'static str, Markup)> {
    let summary = cell.summary;
    let success = &summary.attacks.success;
    let mut facts = vec![(
        "Attack success",
        html! { (of(success)) " runs, 95% interval " (interval(success)) },
    )];
    if summary.attacks.inconclusive > 0 {
        let advice = cell.advice();
        facts.push((
            "Inconclusive",
            html! {
                (plural(summary.attacks.inconclusive, "run")) ": " (text(&cell.unproved()))
                @if let Some(advice) = advice { " " (advice) }
            },
        ));
    }
    if summary.attacks.runs > 0 {
        facts.push(("Conditions held", html! { (cell.conditions_line()) }));
    }
    let twins = &summary.twins;
    facts.push((
        "Control, without attack",
        html! {
            @if twins.runs == 0 {
                "not run"
            } @else {
                "task done " (of(&twins.task_success)) ", false positives " (of(&twins.false_positives))
            }
        },
    ));
    if let Some(change) = cell.change {
        let before = change.before.as_ref().map_or_else(|| "–".to_owned(), of);
        facts.push((
            "Since the baseline",
            html! {
                (change.change.word()) " (was " (before)
                @if let Some(p) = change.p_value { ", p = " (format_args!("{p:.3}")) }
                ")"
            },
        ));
    }
    facts.push((
        "Cost",
        html! { (duration(summary.cost.milliseconds)) (tokens(summary.cost.tokens)) },
    ));
    facts.push(("Document", code(&cell.document.path)));
    if let Some(prompt) = &cell.document.prompt {
        facts.push(("Prompt", text(prompt)));
    }
    facts
}

/// The number of tokens after something else, if it is known.
fn tokens(tokens: Option<u64>) -> Markup {
    html! { @if let Some(tokens) = tokens { ", " (amount(tokens)) " tokens" } }
}

fn findings(findings: &[Finding<'_>]) -> Markup {
    if findings.is_empty() {
        return html! {};
    }
    let rows = html! {
        @for finding in findings {
            @let about = finding.info.and_then(|info| info.description.as_deref());
            @let tier = finding.info.and_then(|info| info.tier.as_deref());
            tr {
                th scope="row" {
                    (code(&finding.indicator.id)) br;
                    small { (text(about.unwrap_or_default())) }
                }
                td { (name(&words(tier.unwrap_or("–")))) }
                td { (finding.runs) }
                td { @if let Some(evidence) = finding.evidence { (quote(evidence)) } }
            } "\n"
        }
    };
    table(
        "Evidence",
        &["Indicator", "Tier", "Runs", "Evidence"],
        &rows,
    )
}

/// The messages of a run.
enum RunMessages<'a> {
    Recorded(&'a [TraceMessage]),
    Missing,
    LeftOut,
}

fn runs(view: &ReportView<'_>, cell: &MatrixCell<'_>, budget: &mut ShownBudget) -> Markup {
    let chosen = budget.choose(view, cell);
    html! {
        @for (position, run) in cell.runs.iter().take(MOST_RUNS_OF_CELL).enumerate() {
            @let has_room = chosen.contains(&position) && budget.bytes > 0;
            @let messages = match view.input.traces.get(&run.id) {
                None => RunMessages::Missing,
                Some(_) if !has_room => RunMessages::LeftOut,
                Some(messages) => RunMessages::Recorded(messages),
            };
            (budget.spend(details(cell, run, position, &messages)))
        }
    }
}

fn details(
    cell: &MatrixCell<'_>,
    run: &RunRecord,
    position: usize,
    messages: &RunMessages<'_>,
) -> Markup {
    html! {
        details.run {
            summary {
                @if run.twin { "Control run " } @else { "Run " }
                (run.repeat) " "
                @if run.twin { (twin_badge(run)) } @else { (badge(Some(run.outcome))) }
                " "
                span.muted {
                    (plural(run.messages, "message")) ", " (duration(run.milliseconds)) (tokens(run.tokens))
                }
            } "\n"
            (facts(&facts_of_run(run)))
            (indicators(cell, run))
            @match messages {
                RunMessages::Recorded(messages) => { (diagram(cell, run, position, messages)) }
                RunMessages::Missing => { p.note { "No messages were recorded." } "\n" }
                RunMessages::LeftOut => {
                    p.note { "The messages are left out to keep this file small; the recording has them." } "\n"
                }
            }
        } "\n"
    }
}

fn facts_of_run(run: &RunRecord) -> Vec<(&'static str, Markup)> {
    let (sent, places) = run.carriers;
    let mut facts = vec![("Run", code(&run.id))];
    // A control run has no payload.
    if !run.twin {
        facts.push((
            "Payload",
            html! { "sent in " (sent) " of " (plural(places, "place")) },
        ));
    }
    if let Some(reason) = run.reason {
        facts.push((
            "Reason",
            html! { code { (reason.code()) } " " (reason.sentence()) },
        ));
    }
    if let Some(verdict) = &run.verdict {
        facts.push(("Verdict", name(&words(verdict))));
    }
    if !run.twin {
        facts.push(("Conditions", conditions(run)));
    }
    if let Some(tier) = &run.tier {
        facts.push(("Tier", name(&words(tier))));
    }
    if let Some(done) = run.task_done {
        facts.push(("Task", html! { @if done { "done" } @else { "not done" } }));
    }
    if let Some(answer) = &run.answer {
        facts.push(("Answer", text(answer)));
    }
    if let Some(error) = &run.error {
        facts.push(("Error", text(error)));
    }
    let warnings = run.warnings.iter().take(MOST_EVIDENCE);
    facts.extend(warnings.map(|warning| ("Warning", text(warning))));
    if let Some(stderr) = &run.stderr {
        facts.push(("The end of its stderr", text(stderr)));
    }
    if let Some(trace) = &run.trace {
        facts.push(("Recording", code(trace)));
    }
    facts
}

/// What had to hold before the run could be called resisted, and why it did or did not.
fn conditions(run: &RunRecord) -> Markup {
    html! {
        ul.conditions {
            @for (name, condition) in run.conditions.each() {
                li {
                    @if condition.held { "✓ " } @else { "✗ " }
                    (words(name))
                    @if !condition.why.is_empty() { ": " (text(&condition.why)) }
                }
            }
        }
    }
}

fn indicators(cell: &MatrixCell<'_>, run: &RunRecord) -> Markup {
    let meaning = |id: &str| {
        let mut declared = cell.document.indicators.iter();
        declared
            .find(|declared| declared.id == id)
            .and_then(|declared| declared.description.as_deref())
    };
    if run.indicators.is_empty() {
        return html! {};
    }
    html! {
        ul.indicators {
            @for indicator in &run.indicators {
                li {
                    (code(&indicator.id)) " " (name(&words(&indicator.result)))
                    @if let Some(meaning) = meaning(&indicator.id) { ": " (text(meaning)) }
                    @for evidence in indicator.evidence.iter().take(MOST_EVIDENCE) { br; (quote(evidence)) }
                }
            }
        } "\n"
    }
}
