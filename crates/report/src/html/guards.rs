//! The section about guards: every guarded subject without the guard and with it, side by side, and what it stopped.

use maud::{Markup, html};

use super::elements::table;
use super::untrusted::{name, text};
use crate::guard::{HEADINGS, notes, rows};
use crate::text::of;
use crate::view::ReportView;

/// How many runs that a guard disturbed are shown.
const MOST_RUNS: usize = 200;

pub(super) fn section(view: &ReportView<'_>) -> Markup {
    let effects = &view.summary.guards;
    if effects.is_empty() {
        return html! {};
    }
    let sides = html! {
        @for row in rows(effects) {
            tr {
                th scope="row" { (name(row.subject)) }
                td { (name(row.guard)) }
                td { (row.attacks()) }
                td { (row.success()) }
                td { (row.group.attacks.inconclusive) }
                td { (of(&row.group.twins.task_success)) }
                td { (row.asks()) }
                td { (row.blocks()) }
            } "\n"
        }
    };
    let runs = view.result.runs.iter();
    let stopped = runs.filter_map(|run| {
        let counts = run.guard.as_ref()?;
        (!counts.findings.is_empty()).then_some((run, counts))
    });
    let findings = html! {
        @for (run, counts) in stopped.take(MOST_RUNS) {
            tr {
                th scope="row" { (name(&run.id)) }
                td { @if run.twin { "control" } @else { (run.outcome.word()) } }
                td { @for line in &counts.findings { (text(line)) br; } }
            } "\n"
        }
    };
    html! {
        section #guards { h2 { "Without and with the guard" } "\n"
            (table("Without and with the guard", &HEADINGS, &sides))
            @for note in notes(effects) { p.note { (text(&note)) } "\n" }
            h3 { "What the guard stopped" } "\n"
            (table("What the guard stopped", &["Run", "Result", "Findings"], &findings))
        } "\n"
    }
}
