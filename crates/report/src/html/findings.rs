//! What got through, the worst first: one sentence, the payload beside the message that shows it, and how to fix it.

use std::collections::HashSet;

use maud::{Markup, html};
use proofhouse_campaign::accepted::Acceptance;
use proofhouse_campaign::message_origin::is_by_subject;
use proofhouse_campaign::result::{RunEvidence, RunRecord};
use proofhouse_detect::TraceMessage;
use serde_json::Value;

use super::content::excerpt;
use super::elements::{anchor, message_anchor, severity_chip, severity_class, tool_of};
use super::untrusted::{code, name, text};
use crate::text::{full_stop, hidden_text, words};
use crate::view::{Finding, MatrixCell, ReportView};

/// How many findings are shown in full; the matrix has all of them.
const MOST_FINDINGS: usize = 60;

/// The shortest text that may be a payload: shorter ones are ids and numbers.
const LEAST_PAYLOAD: usize = 16;

/// Where MCP puts what implementations say about themselves.
const META: &str = "_meta";

/// How severe what was found is: a count per level, which leads to the findings.
pub(super) fn roll_up(view: &ReportView<'_>) -> Markup {
    html! {
        ul.roll-up aria-label="Findings by severity" {
            @for (level, some, all) in view.severities() {
                li class={ (severity_class(Some(&level))) @if some == 0 { " none" } } {
                    b { (some) } " " (level) br;
                    small { "of " (all) " tested" }
                }
            }
        } "\n"
    }
}

pub(super) fn section(view: &ReportView<'_>) -> Markup {
    let worst = view.worst();
    html! {
        section #findings { h2 { "Findings" } "\n"
            @if worst.is_empty() {
                p { "No attack got through." } "\n"
            }
            @for (risk, state, runs) in view.result.acceptances() {
                // What is accepted is told at its finding.
                @if state != Acceptance::Accepted {
                    p.notice.bad[state == Acceptance::Expired] { (text(&full_stop(&state.sentence(view.result, risk, runs)))) } "\n"
                }
            }
            @for (number, cell) in (1..).zip(worst.iter().take(MOST_FINDINGS)) { (article(view, cell, number)) }
            @if worst.len() > MOST_FINDINGS {
                p.note { (worst.len() - MOST_FINDINGS) " more findings are in the table below." } "\n"
            }
        } "\n"
    }
}

fn article(view: &ReportView<'_>, cell: &MatrixCell<'_>, number: usize) -> Markup {
    let id = format!("finding-{number}");
    let found = cell.findings();
    let shown = found.iter().find(|finding| finding.evidence.is_some());
    let accepted = view.acceptance(cell);
    let level = cell.document.severity.as_deref();
    html! {
        article id=(id) class={ "finding " (severity_class(level)) } aria-labelledby={ (id) "-title" } { "\n"
            h3 id={ (id) "-title" } {
                (severity_chip(cell.document.severity.as_deref())) " "
                (name(if cell.document.name.is_empty() { &cell.document.id } else { &cell.document.name })) " "
                span.muted { (code(&cell.document.id)) }
            } "\n"
            p { (text(&cell.sentence())) } "\n"
            @if let Some(risk) = accepted {
                p.notice {
                    strong { "Accepted until " (text(&risk.until)) "." } " " (text(&risk.reason))
                } "\n"
            }
            @if let Some(finding) = shown { (side_by_side(view, cell, finding)) }
            (fix(cell))
            p.back {
                a href={ "#" (anchor(cell.document_number, cell.subject_number)) } { "All runs of this attack" }
            } "\n"
        } "\n"
    }
}

/// What to change.
pub(super) fn fix(cell: &MatrixCell<'_>) -> Markup {
    let mitigation = &cell.document.mitigation;
    html! {
        @if !mitigation.is_empty() {
            h4 { "How to fix it" } "\n"
            dl.fix {
                @for (place, what) in mitigation.parts() { div { dt { (place) } dd { (text(what)) } } }
            } "\n"
        }
    }
}

/// The message that carried the payload beside the one that shows what the agent did.
fn side_by_side(view: &ReportView<'_>, cell: &MatrixCell<'_>, finding: &Finding<'_>) -> Markup {
    let Some(evidence) = finding.evidence else {
        return html! {};
    };
    let run = finding.run;
    let messages = view.input.traces.get(&run.id).map(Vec::as_slice);
    let messages = messages.unwrap_or_default();
    let shows = messages
        .iter()
        .find(|message| message.sequence == evidence.seq);
    let given = payload(view, cell, run, messages, evidence.seq);
    let position = cell
        .runs
        .iter()
        .position(|one| one.id == run.id)
        .unwrap_or_default();
    let link = |sequence: u64| message_anchor(cell, position, sequence);
    html! {
        div.beside { "\n"
            @if let Some((message, part)) = given {
                div {
                    h4 { "What the agent was given" }
                    p.note {
                        a href={ "#" (link(message.sequence)) } { "Message " (message.sequence) } ": "
                        (operation(messages, message))
                    }
                    pre tabindex="0" { (excerpt(&without_meta(&message.content, &part), &part)) }
                    @if let Some(hidden) = part.text.as_deref().and_then(hidden_text) {
                        p.note { "Hidden text, decoded: " (text(&hidden)) }
                    }
                } "\n"
            }
            div {
                h4 { "What the agent did" }
                p.note {
                    a.evidence href={ "#" (link(evidence.seq)) } { "Message " (evidence.seq) }
                    @if let Some(message) = shows { ": " (operation(messages, message)) }
                }
                @match shows {
                    Some(message) => { pre tabindex="0" { (excerpt(&without_meta(&message.content, evidence), evidence)) } }
                    None => { p { mark { (text(evidence.text.as_deref().unwrap_or("The recording has no such message."))) } } }
                }
            } "\n"
        } "\n"
    }
}

/// A content without what implementations say about themselves in every message, unless the evidence is there. The message
/// among the runs has all of it.
fn without_meta(content: &Value, evidence: &RunEvidence) -> Value {
    let mut content = content.clone();
    let path = evidence.path.as_deref().unwrap_or_default();
    if !path.is_empty()
        && !path.starts_with(META)
        && let Some(fields) = content.as_object_mut()
    {
        fields.remove(META);
    }
    content
}

/// The operation of a message, with the tool it is about.
fn operation(messages: &[TraceMessage], message: &TraceMessage) -> Markup {
    let tool = tool_of(messages, message);
    html! {
        (name(&words(&message.operation)))
        @if let Some(tool) = tool { " " b { (name(tool)) } }
    }
}

/// The message before the evidence that carried the payload, and where in it: the longest text of the attacking side that the
/// control run did not have.
fn payload<'m>(
    view: &ReportView<'_>,
    cell: &MatrixCell<'_>,
    run: &RunRecord,
    messages: &'m [TraceMessage],
    evidence: u64,
) -> Option<(&'m TraceMessage, RunEvidence)> {
    let control = cell
        .runs
        .iter()
        .find(|one| one.twin && one.subject == run.subject);
    let control = control.and_then(|control| view.input.traces.get(&control.id));
    let mut harmless: HashSet<&str> = HashSet::new();
    for message in control.into_iter().flatten() {
        texts(&message.content, &mut String::new(), &mut |_, text| {
            harmless.insert(text);
        });
    }
    let mut found: Option<(&'m TraceMessage, String, &'m str)> = None;
    let before = messages
        .iter()
        .filter(|message| message.sequence < evidence);
    for message in before.filter(|message| is_by_subject(cell.document, message) == Some(false)) {
        texts(&message.content, &mut String::new(), &mut |path, text| {
            let longest = found
                .as_ref()
                .map_or(LEAST_PAYLOAD - 1, |(_, _, text)| text.len());
            if text.len() > longest && !harmless.contains(text) {
                found = Some((message, path.to_owned(), text));
            }
        });
    }
    found.map(|(message, path, text)| {
        let part = RunEvidence {
            seq: message.sequence,
            last_seq: None,
            path: Some(path),
            text: Some(text.to_owned()),
            detail: Value::Null,
        };
        (message, part)
    })
}

/// All texts of a value with their paths, as evidence writes them.
fn texts<'v>(value: &'v Value, path: &mut String, see: &mut dyn FnMut(&str, &'v str)) {
    let before = path.len();
    match value {
        Value::String(text) => see(path, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                texts(item, path, see);
                path.truncate(before);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                path.push_str(dot);
                path.push_str(name);
                texts(field, path, see);
                path.truncate(before);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
