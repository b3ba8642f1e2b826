//! The tables at the top: subjects, the matrix of documents and subjects, changes, and categories.

use std::fmt::Write;

use super::untrusted::{code, escape, short};
use crate::comparison::Change;
use crate::report::text::{amount, duration, interval, of, percent, words};
use crate::report::view::{Pair, View};
use crate::result::Outcome;
use crate::statistics::Rate;
use crate::summary::Group;

/// How many changes are listed.
const MOST_CHANGES: usize = 500;

/// The sign and the class of an outcome. The word always stands beside it, so that nobody needs the colour.
pub(super) fn badge(outcome: Option<Outcome>) -> String {
    let (class, sign, word) = match outcome {
        Some(Outcome::Exploited) => ("exploited", "✗", Outcome::Exploited.word()),
        Some(Outcome::Partial) => ("partial", "◐", Outcome::Partial.word()),
        Some(Outcome::Resisted) => ("resisted", "✓", Outcome::Resisted.word()),
        Some(Outcome::NotReached) => ("not-reached", "○", Outcome::NotReached.word()),
        Some(Outcome::Error) => ("error", "!", Outcome::Error.word()),
        None => ("not-run", "–", "not run"),
    };
    format!("<span class=\"badge {class}\"><span aria-hidden=\"true\">{sign}</span> {word}</span>")
}

/// What a run of a twin says: there was no attack, so nobody could give way to one.
pub(super) fn twin_badge(outcome: Outcome) -> String {
    let (class, sign, word) = match outcome {
        Outcome::Exploited | Outcome::Partial => ("partial", "◐", "false positive"),
        Outcome::Resisted | Outcome::NotReached => ("resisted", "✓", "clean"),
        Outcome::Error => return badge(Some(outcome)),
    };
    format!("<span class=\"badge {class}\"><span aria-hidden=\"true\">{sign}</span> {word}</span>")
}

/// Begins a table that scrolls by itself where it is too wide, also with the keyboard. The
/// label is our own word: texts from outside never stand in attributes.
pub(super) fn open_table(label: &'static str, headings: &[&str], out: &mut String) {
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>\n<thead><tr>"
    );
    for heading in headings {
        let _ = write!(out, "<th scope=\"col\">{heading}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
}

pub(super) fn close_table(out: &mut String) {
    out.push_str("</tbody></table></div>\n");
}

pub(super) fn subjects(view: &View<'_>, out: &mut String) {
    out.push_str("<section id=\"subjects\"><h2>Subjects</h2>\n");
    open_table(
        "Subjects",
        &[
            "Subject",
            "Documents that got through",
            "Attack success",
            "95% interval",
            "Not reached",
            "Errors",
            "Flaky",
            "Highest tier",
            "Tasks done without attack",
            "False positives",
            "Tokens",
            "Time",
        ],
        out,
    );
    for (subject, group) in view.result.subjects.iter().zip(&view.summary.subjects) {
        let name = format!(
            "<b>{}</b>{}<br><small>{}: {}</small>",
            short(&subject.name),
            if subject.simulation {
                " <span class=\"chip\">simulation</span>"
            } else {
                ""
            },
            short(&subject.kind),
            escape(&subject.description),
        );
        group_row(&name, group, out);
    }
    if view.result.subjects.len() > 1 {
        group_row("<b>All</b>", &view.summary.overall, out);
    }
    close_table(out);
    out.push_str(
        "<p class=\"note\">Attack success counts runs that reached the subject and have a verdict. A run in which \
         nothing of the attack reached the subject proves nothing and is never counted as resisted.</p>\n</section>\n",
    );
}

fn group_row(name: &str, group: &Group, out: &mut String) {
    let tokens = group.cost.tokens.map_or_else(|| "–".to_owned(), amount);
    let _ = writeln!(
        out,
        "<tr><th scope=\"row\">{name}</th><td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
         <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{tokens}</td><td>{}</td></tr>",
        group.documents_exploited,
        group.documents_counted,
        rate(&group.attacks.success),
        interval(&group.attacks.success),
        group.attacks.not_reached,
        group.attacks.errors,
        group.flaky,
        short(&words(group.tier.as_deref().unwrap_or("–"))),
        of(&group.twins.task_success),
        of(&group.twins.false_positives),
        duration(group.cost.milliseconds),
    );
}

/// A rate with a bar that shows it and its interval.
fn rate(rate: &Rate) -> String {
    let Some(value) = rate.value() else {
        return "–".to_owned();
    };
    format!(
        "<span class=\"rate\">{} <small>({})</small></span><span class=\"bar\" aria-hidden=\"true\">\
         <i style=\"width:{:.1}%\"></i><u style=\"left:{:.1}%;width:{:.1}%\"></u></span>",
        percent(rate),
        of(rate),
        value * 100.0,
        rate.low * 100.0,
        (rate.high - rate.low) * 100.0,
    )
}

pub(super) fn matrix(view: &View<'_>, out: &mut String) {
    out.push_str("<section id=\"matrix\"><h2>Matrix</h2>\n");
    let names: Vec<String> = view
        .result
        .subjects
        .iter()
        .map(|subject| short(&subject.name))
        .collect();
    let mut headings = vec!["Document"];
    headings.extend(names.iter().map(String::as_str));
    open_table("Documents and subjects", &headings, out);
    let mut current = None;
    for pair in view.pairs() {
        if current != Some(pair.document_number) {
            if current.is_some() {
                out.push_str("</tr>\n");
            }
            current = Some(pair.document_number);
            let severity = pair.document.severity.as_deref();
            let _ = write!(
                out,
                "<tr><th scope=\"row\"><code>{}</code> {}<br><small>{}{}</small></th>",
                short(&pair.document.id),
                short(&pair.document.name),
                short(&words(
                    pair.document.category.as_deref().unwrap_or("no category")
                )),
                severity.map_or_else(String::new, |severity| format!(" · {}", escape(severity))),
            );
        }
        cell(&pair, out);
    }
    if current.is_some() {
        out.push_str("</tr>\n");
    }
    close_table(out);
    out.push_str("</section>\n");
}

fn cell(pair: &Pair<'_>, out: &mut String) {
    let cell = pair.cell;
    let _ = write!(
        out,
        "<td><a class=\"plain\" href=\"#pair-{}-{}\">{}</a>",
        pair.document_number,
        pair.subject_number,
        badge(cell.outcome)
    );
    if cell.attacks.success.all > 0 {
        let success = &cell.attacks.success;
        let _ = write!(
            out,
            "<br><small>{} · {}</small>",
            of(success),
            interval(success)
        );
    }
    chips(pair, out);
    out.push_str("</td>");
}

/// What else there is to know of a pair, in few words.
pub(super) fn chips(pair: &Pair<'_>, out: &mut String) {
    let cell = pair.cell;
    let mut chips: Vec<(&str, String)> = Vec::new();
    if let Some(tier) = &cell.tier {
        chips.push(("", short(&words(tier))));
    }
    if cell.flaky {
        chips.push(("warn", "flaky".to_owned()));
    }
    if cell.attacks.not_reached > 0 {
        chips.push(("", format!("{} not reached", cell.attacks.not_reached)));
    }
    if cell.attacks.errors > 0 {
        chips.push(("warn", format!("{} without verdict", cell.attacks.errors)));
    }
    if cell.twins.task_success.all > 0 {
        chips.push(("", format!("twin {} done", of(&cell.twins.task_success))));
    }
    if cell.twins.false_positives.some > 0 {
        chips.push((
            "warn",
            format!("{} false positive", cell.twins.false_positives.some),
        ));
    }
    if let Some(change) = pair.change.map(|change| change.change) {
        let class = class_of(change);
        if !class.is_empty() {
            chips.push((class, format!("{} since baseline", change.word())));
        }
    }
    if !chips.is_empty() {
        out.push_str("<br>");
    }
    for (class, text) in chips {
        let _ = write!(out, "<span class=\"chip {class}\">{text}</span> ");
    }
}

fn class_of(change: Change) -> &'static str {
    if change.is_regression() {
        "bad"
    } else if change.is_improvement() {
        "good"
    } else {
        ""
    }
}

pub(super) fn changes(view: &View<'_>, out: &mut String) {
    let Some(comparison) = view.input.comparison else {
        return;
    };
    let _ = write!(
        out,
        "<section id=\"changes\"><h2>Changes</h2>\n<p>Compared with {} of {}: {}. A difference counts when it is less \
         likely than {} by chance (Fisher's exact test); of too few runs to tell, what was seen counts.</p>\n",
        code(&comparison.baseline),
        escape(&comparison.baseline_started_at),
        comparison.counts(),
        comparison.threshold,
    );
    let changed: Vec<_> = comparison
        .cells
        .iter()
        .filter(|cell| cell.change != Change::Unchanged)
        .collect();
    if !changed.is_empty() {
        open_table(
            "Changes",
            &["Change", "Document", "Subject", "Before", "Now", "p"],
            out,
        );
        for cell in changed.iter().take(MOST_CHANGES) {
            let class = class_of(cell.change);
            let rate = |rate: &Option<Rate>| {
                rate.as_ref().map_or_else(
                    || "–".to_owned(),
                    |rate| format!("{} <small>{}</small>", of(rate), interval(rate)),
                )
            };
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\"><span class=\"chip {class}\">{}</span></th><td>{}</td><td>{}</td>\
                 <td>{}</td><td>{}</td><td>{}</td></tr>",
                cell.change.word(),
                code(&cell.document),
                short(&cell.subject),
                rate(&cell.before),
                rate(&cell.now),
                cell.p_value
                    .map_or_else(|| "–".to_owned(), |p| format!("{p:.3}")),
            );
        }
        close_table(out);
        if changed.len() > MOST_CHANGES {
            let _ = writeln!(
                out,
                "<p class=\"note\">{} more are left out.</p>",
                changed.len() - MOST_CHANGES
            );
        }
    }
    out.push_str("</section>\n");
}

pub(super) fn categories(view: &View<'_>, out: &mut String) {
    out.push_str("<section id=\"categories\"><h2>Categories</h2>\n");
    open_table(
        "Categories",
        &[
            "Category",
            "Subject",
            "Documents that got through",
            "Attack success",
            "95% interval",
            "Not reached",
        ],
        out,
    );
    for group in &view.summary.categories {
        let category = group.category.as_deref().filter(|name| !name.is_empty());
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            short(&words(category.unwrap_or("no category"))),
            escape(group.subject.as_deref().unwrap_or_default()),
            group.documents_exploited,
            group.documents_counted,
            rate(&group.attacks.success),
            interval(&group.attacks.success),
            group.attacks.not_reached,
        );
    }
    close_table(out);
    out.push_str("</section>\n");
}
