//! Pieces that several sections of the page have: badges, chips, lists of facts, tables.

use maud::{Markup, Render, html};

use super::untrusted::name;
use crate::text::{of, words};
use crate::view::{MatrixCell, severity_rank};
use proofhouse_campaign::comparison::Change;
use proofhouse_campaign::outcome::{ControlState, RunOutcome};
use proofhouse_campaign::result::RunRecord;
use proofhouse_campaign::summary::top_reasons;
use proofhouse_detect::TraceMessage;

/// The sign and the class of an outcome. The word always stands beside it, so that nobody needs the colour.
pub(super) fn badge(outcome: Option<RunOutcome>) -> Markup {
    let (class, sign) = match outcome {
        Some(RunOutcome::Exploited) => ("exploited", "✗"),
        Some(RunOutcome::Partial) => ("partial", "◐"),
        Some(RunOutcome::Resisted) => ("resisted", "✓"),
        Some(RunOutcome::Inconclusive) => ("inconclusive", "?"),
        None => ("not-run", "–"),
    };
    signed_badge(class, sign, outcome.map_or("not run", RunOutcome::word))
}

/// What a control run says: there was no attack, so nobody could give way to one.
pub(super) fn twin_badge(run: &RunRecord) -> Markup {
    if run.outcome.gave_way() {
        return signed_badge("partial", "◐", "false positive");
    }
    match ControlState::of(run) {
        ControlState::Done { .. } => signed_badge("resisted", "✓", "task done"),
        ControlState::Absent { .. } | ControlState::Pending | ControlState::Failed { .. } => {
            signed_badge("inconclusive", "?", "task not done")
        }
    }
}

fn signed_badge(class: &str, sign: &str, word: &str) -> Markup {
    html! { span class={ "badge " (class) } { span aria-hidden="true" { (sign) } " " (word) } }
}

/// What else there is to know of a document against a subject, in few words.
pub(super) fn chips(cell: &MatrixCell<'_>) -> Markup {
    let summary = cell.summary;
    let mut chips: Vec<(&str, Markup)> = Vec::new();
    if let Some(tier) = &summary.tier {
        chips.push(("", name(&words(tier))));
    }
    if summary.flaky {
        chips.push(("warn", html! { "flaky" }));
    }
    for (reason, runs) in top_reasons(&summary.reasons) {
        chips.push((
            "warn",
            html! { (runs) " inconclusive: " span title=(reason.sentence()) { (reason.code()) } },
        ));
    }
    let twins = &summary.twins;
    if twins.task_success.all > 0 {
        chips.push(("", html! { "control " (of(&twins.task_success)) " done" }));
    }
    if twins.false_positives.some > 0 {
        chips.push((
            "warn",
            html! { (twins.false_positives.some) " false positive" },
        ));
    }
    if let Some(change) = cell.change.map(|change| change.change) {
        let class = class_of(change);
        if !class.is_empty() {
            chips.push((class, html! { (change.word()) " since baseline" }));
        }
    }
    html! {
        @if !chips.is_empty() { br; }
        @for (class, text) in chips { span class={ "chip " (class) } { (text) } " " }
    }
}

/// The class of a chip that tells of a change.
pub(super) fn class_of(change: Change) -> &'static str {
    if change.is_regression() {
        "bad"
    } else if change.is_improvement() {
        "good"
    } else {
        ""
    }
}

/// What the filters tell cells by.
pub(super) fn cell_class(cell: &MatrixCell<'_>) -> &'static str {
    match cell.summary.outcome {
        Some(RunOutcome::Exploited | RunOutcome::Partial) => "is-through",
        Some(RunOutcome::Resisted) => "is-resisted",
        Some(RunOutcome::Inconclusive) | None => "is-unproved",
    }
}

/// The class of a level. Texts from outside never stand in attributes.
pub(super) fn severity_class(level: Option<&str>) -> &'static str {
    match severity_rank(level) {
        5 => "critical",
        4 => "high",
        3 => "medium",
        2 => "low",
        _ => "informational",
    }
}

/// The severity of a document; a level that the format does not have is none.
pub(super) fn severity_chip(severity: Option<&str>) -> Markup {
    let rank = severity_rank(severity);
    let class = match rank {
        4.. => "bad",
        3 => "warn",
        _ => "",
    };
    let known = severity.filter(|_| rank > 0);
    html! { span class={ "chip " (class) } { (name(known.unwrap_or("unrated"))) } }
}

/// The tool that a message is about: the one it names, or for an answer the one that was called last.
pub(super) fn tool_of<'m>(
    messages: &'m [TraceMessage],
    message: &'m TraceMessage,
) -> Option<&'m str> {
    let named = |message: &'m TraceMessage| {
        let content = &message.content;
        let names = ["/name", "/params/name", "/toolCallName"];
        names
            .iter()
            .find_map(|pointer| content.pointer(pointer)?.as_str())
    };
    let is_call = |operation: &str| {
        matches!(operation, "tools/call" | "prompts/get") || operation.starts_with("tool_call")
    };
    if !is_call(&message.operation) {
        return None;
    }
    named(message).or_else(|| {
        let earlier = messages.iter().filter(|one| {
            one.sequence < message.sequence
                && one.actor == message.actor
                && one.operation == message.operation
        });
        earlier.filter_map(named).next_back()
    })
}

/// Where the page shows a message of a run, by the place of the run among those of its cell.
pub(super) fn message_anchor(cell: &MatrixCell<'_>, run: usize, sequence: u64) -> String {
    format!(
        "message-{}-{}-{run}-{sequence}",
        cell.document_number, cell.subject_number
    )
}

/// Where the page tells of a document against a subject, by their numbers.
pub(super) fn anchor(document: usize, subject: usize) -> String {
    format!("pair-{document}-{subject}")
}

/// A list of names and values.
pub(super) fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts { div { dt { (name) } dd { (value) } } }
        } "\n"
    }
}

/// A table that scrolls by itself where it is too wide, also with the keyboard. The label is our own
/// word: texts from outside never stand in attributes.
pub(super) fn table(label: &'static str, headings: &[impl Render], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table { "\n"
                thead { tr { @for heading in headings { th scope="col" { (heading) } } } } "\n"
                tbody { "\n" (rows) }
            }
        } "\n"
    }
}
