//! The messages of a run as a sequence diagram: each is an arrow that unfolds to its content.

use maud::{Markup, html};
use proofhouse_detect::TraceMessage;

use super::content::content;
use super::elements::{message_anchor, tool_of};
use super::participants::Participants;
use super::untrusted::{code, name, text};
use crate::conversation::{UNNAMED, shown_name};
use crate::text::plural;
use crate::view::MatrixCell;
use proofhouse_campaign::result::{RunEvidence, RunRecord};

/// How many messages of a run are shown, beside those with evidence.
const MOST_MESSAGES: usize = 60;

/// The messages in order.
pub(super) fn diagram(
    cell: &MatrixCell<'_>,
    run: &RunRecord,
    position: usize,
    messages: &[TraceMessage],
) -> Markup {
    let participants = Participants::new(&cell.subject.name, cell.document, messages);
    let steps = messages
        .iter()
        .map(|message| (message, found_in(run, message)));
    let (shown, left_out): (Vec<_>, Vec<_>) = steps
        .enumerate()
        .partition(|(position, (_, evidence))| *position < MOST_MESSAGES || !evidence.is_empty());
    html! {
        div.sequence style={ "--lanes:" (participants.names.len()) } { "\n"
            div.lanes {
                @for (number, participant) in participants.names.iter().enumerate() {
                    @let role = if number == 0 { "agent" } else { "attacker" };
                    div class={ "lane " (role) } { b { (text(shown_name(participant))) } small { (role) } }
                }
            } "\n"
            ol { "\n"
                @for (_, (message, evidence)) in &shown {
                    @let id = message_anchor(cell, position, message.sequence);
                    (step(&participants, message, evidence, tool_of(messages, message), &id))
                }
            } "\n"
        } "\n"
        @if !left_out.is_empty() {
            p.note { (plural(left_out.len() as u64, "message")) " left out." } "\n"
        }
    }
}

/// The evidence of a run that is in a message.
fn found_in<'a>(run: &'a RunRecord, message: &TraceMessage) -> Vec<&'a RunEvidence> {
    run.indicators
        .iter()
        .filter(|indicator| indicator.result == "matched")
        .flat_map(|indicator| &indicator.evidence)
        .filter(|evidence| evidence.seq == message.sequence)
        .collect()
}

fn step(
    participants: &Participants<'_>,
    message: &TraceMessage,
    evidence: &[&RunEvidence],
    tool: Option<&str>,
    id: &str,
) -> Markup {
    let arrow = participants.arrow(message);
    let (low, high) = (arrow.from.min(arrow.to), arrow.from.max(arrow.to));
    let points = if !arrow.directed {
        "unknown"
    } else if arrow.from < arrow.to {
        "right"
    } else {
        "left"
    };
    let participant = |number: usize| {
        let name = participants.names.get(number).copied();
        text(shown_name(name.unwrap_or_default()))
    };
    let (content, is_marked) = content(&message.content, evidence);
    let has_evidence = !evidence.is_empty();
    html! {
        li id=(id) class={ "step" @if has_evidence { " found" } } {
            details open[has_evidence] {
                summary {
                    span class={ "arrow " (points) }
                        style={ "grid-column:" (low + 1) "/" (high + 2) ";--span:" (high - low + 1) } {
                        span.label {
                            span.number { (message.sequence) } " "
                            b { (name(&message.operation)) @if let Some(tool) = tool { " " (name(tool)) } } " "
                            small {
                                (name(message.protocol.as_str()))
                                @if let Some(direction) = message.direction { " · " (direction.as_str()) }
                                @if let Some(phase) = message.phase.as_deref().filter(|phase| *phase != UNNAMED) { " · " (text(phase)) }
                            }
                            @if has_evidence { " " span.chip.bad { "evidence" } }
                        }
                    }
                    span.unseen { "from " (participant(arrow.from)) " to " (participant(arrow.to)) }
                } "\n"
                pre tabindex="0" { (content) }
                @if !is_marked {
                    @for evidence in evidence { p.note { "Found: " (quote(evidence)) } }
                }
            }
        } "\n"
    }
}

/// A piece of evidence: where, and what.
pub(super) fn quote(evidence: &RunEvidence) -> Markup {
    html! {
        (evidence.messages())
        @if let Some(path) = evidence.path.as_deref().filter(|path| !path.is_empty()) { " at " (code(path)) }
        @if let Some(words) = &evidence.text { ": " mark { (text(words)) } }
    }
}
