//! The tables at the top: subjects, the matrix of documents and subjects, changes, and categories.

use std::cmp::Reverse;

use maud::{Markup, html};

use super::elements::{
    anchor, badge, cell_class, chips, class_of, severity_chip, severity_class, table,
};
use super::untrusted::{code, name, text};
use crate::text::{amount, duration, interval, of, percent, words};
use crate::view::{MatrixCell, ReportView, reasons_line, severity_rank};
use proofhouse_campaign::comparison::Change;
use proofhouse_campaign::probes::channel_lines;
use proofhouse_campaign::statistics::Rate;
use proofhouse_campaign::summary::RunGroup;

/// How many changes are listed.
const MOST_CHANGES: usize = 500;

pub(super) fn subjects(view: &ReportView<'_>) -> Markup {
    let headings = [
        "Agent",
        "Attacks that got through",
        "Attack success",
        "95% interval",
        "Inconclusive",
        "Exposed",
        "Flaky",
        "Highest tier",
        "Control tasks done",
        "False positives",
        "Tokens",
        "Time",
    ];
    let rows = html! {
        @for (subject, group) in view.result.subjects.iter().zip(&view.summary.subjects) {
            (group_row(&html! {
                b { (name(&subject.name)) }
                @if subject.simulation { " " span.chip { "simulation" } }
                br;
                small {
                    @if !subject.simulation { (name(&subject.kind)) ": " }
                    (text(&subject.description))
                }
            }, group))
        }
        @if view.result.subjects.len() > 1 {
            (group_row(&html! { b { "All" } }, &view.summary.overall))
        }
    };
    html! {
        section #subjects { h2 { "Agents tested" } "\n"
            (table("Agents tested", &headings, &rows))
            @for line in channel_lines(&view.result.probes) {
                p.note { "Fields that " (name(&line.subject)) " reads: " (text(&line.channels)) "." } "\n"
            }
            p.note {
                "Attack success counts conclusive runs only. A run has resisted only if all six conditions held: the payload \
                 was sent to the agent; the agent's model reads that field, and acted or answered afterwards; the agent did the same task without the \
                 attack; no message was lost; the agent spoke the protocol; and every check for signs of success was made. Anything \
                 else that was not exploited is inconclusive, has a reason, and counts in no rate."
            } "\n"
        } "\n"
    }
}

fn group_row(title: &Markup, group: &RunGroup) -> Markup {
    html! {
        tr {
            th scope="row" { (title) }
            td { (group.documents_exploited) " of " (group.documents_counted) }
            td { (rate_with_bar(&group.attacks.success)) }
            td { (interval(&group.attacks.success)) }
            td { (group.attacks.inconclusive) @if !group.reasons.is_empty() { br; small { (reasons_line(group, 3)) } } }
            td { (of(&group.attacks.exposed)) }
            td { (group.flaky) }
            td { (name(&words(group.tier.as_deref().unwrap_or("–")))) }
            td { (of(&group.twins.task_success)) }
            td { (of(&group.twins.false_positives)) }
            td { (group.cost.tokens.map_or_else(|| "–".to_owned(), amount)) }
            td { (duration(group.cost.milliseconds)) }
        } "\n"
    }
}

/// A rate with a bar that shows it and its interval.
fn rate_with_bar(rate: &Rate) -> Markup {
    let Some(value) = rate.value() else {
        return html! { "–" };
    };
    let share = |share: f64| format!("{:.1}%", share * 100.0);
    html! {
        span.rate { (percent(rate)) " " small { "(" (of(rate)) ")" } }
        span.bar aria-hidden="true" {
            i style={ "width:" (share(value)) } {}
            u style={ "left:" (share(rate.low)) ";width:" (share(rate.high - rate.low)) } {}
        }
    }
}

pub(super) fn matrix(view: &ReportView<'_>) -> Markup {
    let mut headings = vec![html! { "Attack" }];
    headings.extend(view.subject_names().map(name));
    let cells: Vec<MatrixCell<'_>> = view.cells().collect();
    let rows = cells.chunk_by(|one, next| one.document_number == next.document_number);
    let mut rows: Vec<&[MatrixCell<'_>]> = rows.collect();
    rows.sort_by_key(|row| {
        let first = row.first();
        let severity = first.and_then(|cell| cell.document.severity.as_deref());
        let through = row.iter().any(MatrixCell::gave_way);
        (Reverse(severity_rank(severity)), Reverse(through))
    });
    let rows = html! { @for row in rows { (matrix_row(row)) } };
    html! {
        section #matrix { h2 { "All attacks" } "\n"
            (filters())
            (table("Attacks and agents", &headings, &rows))
        } "\n"
    }
}

/// Which attacks are shown. The style does the work, so that no script has to.
fn filters() -> Markup {
    html! {
        (choices("Show", "show", &[
            ("show-all", "All"),
            ("show-through", "Got through"),
            ("show-unproved", "Inconclusive"),
            ("show-resisted", "Resisted"),
        ]))
        (choices("Severity", "level", &[
            ("level-all", "All"),
            ("level-critical", "Critical"),
            ("level-high", "High"),
            ("level-medium", "Medium"),
            ("level-low", "Low"),
        ]))
        p.note {
            "Both filters also apply to the runs below, and the severity to the findings above. To search, use your browser's \
             search: it opens folded messages."
        } "\n"
    }
}

/// Buttons of which one is chosen, the first unless somebody chooses another.
fn choices(title: &str, group: &str, choices: &[(&str, &str)]) -> Markup {
    html! {
        fieldset.filters {
            legend { (title) }
            @for (place, (id, label)) in choices.iter().enumerate() {
                label for=(id) {
                    input type="radio" name=(group) id=(id) checked[place == 0];
                    " " (label)
                }
            }
        } "\n"
    }
}

/// One document against every subject.
fn matrix_row(cells: &[MatrixCell<'_>]) -> Markup {
    let Some(document) = cells.first().map(|cell| cell.document) else {
        return html! {};
    };
    let category = document.category.as_deref().unwrap_or("no category");
    let mut classes: Vec<&str> = cells.iter().map(cell_class).collect();
    classes.sort_unstable();
    classes.dedup();
    classes.push(severity_class(document.severity.as_deref()));
    html! {
        tr class=(classes.join(" ")) {
            th scope="row" {
                (severity_chip(document.severity.as_deref())) " "
                (code(&document.id)) " " (name(&document.name)) br;
                small { (name(&words(category))) }
            }
            @for cell in cells { (matrix_data(cell)) }
        } "\n"
    }
}

fn matrix_data(cell: &MatrixCell<'_>) -> Markup {
    let success = &cell.summary.attacks.success;
    html! {
        td {
            a.plain href={ "#" (anchor(cell.document_number, cell.subject_number)) } { (badge(cell.summary.outcome)) }
            @if success.all > 0 { br; small { (of(success)) " · " (interval(success)) } }
            (chips(cell))
        }
    }
}

pub(super) fn changes(view: &ReportView<'_>) -> Markup {
    let Some(comparison) = view.input.comparison else {
        return html! {};
    };
    let changed: Vec<_> = comparison
        .cells
        .iter()
        .filter(|cell| cell.change != Change::Unchanged)
        .collect();
    let p = |p: Option<f64>| p.map_or_else(|| "–".to_owned(), |p| format!("{p:.3}"));
    let rows = html! {
        @for one in &comparison.subjects {
            tr {
                th scope="row" { span class={ "chip " (class_of(one.change)) } { (one.change.word()) } }
                td { "all " (one.documents) " together" }
                td { (name(&one.subject)) }
                td { (rate_with_interval(Some(&one.before))) }
                td { (rate_with_interval(Some(&one.now))) }
                td { (p(one.p_value)) }
                td { "–" }
            } "\n"
        }
        @for cell in changed.iter().take(MOST_CHANGES) {
            tr {
                th scope="row" { span class={ "chip " (class_of(cell.change)) } { (cell.change.word()) } }
                td { (code(&cell.document)) }
                td { (name(&cell.subject)) }
                td { (rate_with_interval(cell.before.as_ref())) }
                td { (rate_with_interval(cell.now.as_ref())) }
                td { (p(cell.p_value)) }
                td { (p(cell.adjusted)) }
            } "\n"
        }
    };
    html! {
        section #changes { h2 { "Changes" } "\n"
            p {
                "Compared with " (code(&comparison.baseline)) " of " (text(&comparison.baseline_started_at)) ": "
                (comparison.counts()) ". If nothing had changed, a regression would be found with a probability of at most "
                (comparison.threshold) ", over all attacks and agents. Unknown: too few runs to tell, or none."
                @if let Some(standing) = comparison.standing() { " " (standing) }
                @if let Some(obstacle) = comparison.obstacle() {
                    " Nothing is compared: " (obstacle) "."
                }
            } "\n"
            @if !changed.is_empty() || !comparison.subjects.is_empty() {
                (table("Changes", &["Change", "Attack", "Agent", "Before", "Now", "p", "p, of all"], &rows))
                @if changed.len() > MOST_CHANGES {
                    p.note { (changed.len() - MOST_CHANGES) " more are left out." } "\n"
                }
            }
        } "\n"
    }
}

fn rate_with_interval(rate: Option<&Rate>) -> Markup {
    html! {
        @if let Some(rate) = rate {
            (of(rate)) " " small { (interval(rate)) }
        } @else {
            "–"
        }
    }
}

pub(super) fn categories(view: &ReportView<'_>) -> Markup {
    let headings = [
        "Category",
        "Agent",
        "Attacks that got through",
        "Attack success",
        "95% interval",
        "Inconclusive",
    ];
    let category = |group: &RunGroup| {
        let category = group.category.as_deref().filter(|name| !name.is_empty());
        name(&words(category.unwrap_or("no category")))
    };
    let rows = html! {
        @for group in &view.summary.categories {
            tr {
                th scope="row" { (category(group)) }
                td { (text(group.subject.as_deref().unwrap_or_default())) }
                td { (group.documents_exploited) " of " (group.documents_counted) }
                td { (rate_with_bar(&group.attacks.success)) }
                td { (interval(&group.attacks.success)) }
                td { (group.attacks.inconclusive) }
            } "\n"
        }
    };
    html! {
        section #categories { h2 { "Categories" } "\n"
            (table("Categories", &headings, &rows))
        } "\n"
    }
}
