//! The careful simulation: does what the user asked, with the tools that needs, and nothing else.

use std::fmt::Write as _;

use super::clean::clean;
use super::conversation::{ConversationView, cut};
use super::directives::is_directive;
use super::plan::{arguments, next, steps};
use super::reference_code;
use super::reply::{SimReply, variant};
use super::sentences::sentences;
use super::toolbox::Toolbox;
use proofhouse_model::ModelRequest;

/// What the careful simulation says to a request.
pub(super) fn answer(request: &ModelRequest) -> SimReply {
    let conversation = ConversationView::new(request);
    if let Some(reply) = reference_code::answer(&conversation) {
        return reply;
    }
    let toolbox = Toolbox::new(&request.tools, false);
    let steps = steps(&conversation.user, &toolbox);
    if let Some(step) = next(&steps, &toolbox, &conversation) {
        let tool = &toolbox.tools[step.tool];
        let so_far = if step.flows {
            data(&conversation, &toolbox).0
        } else {
            String::new()
        };
        let filled = arguments(step, tool, &conversation.user, &so_far, false);
        return SimReply {
            text: String::new(),
            calls: vec![(tool.name.clone(), filled)],
        };
    }
    SimReply {
        text: closing(request, &conversation, &toolbox),
        calls: Vec::new(),
    }
}

/// The results since the user spoke, without what reads as an order, and how much that was.
fn data(conversation: &ConversationView<'_>, toolbox: &Toolbox) -> (String, usize) {
    let mut kept = Vec::new();
    let mut dropped = 0;
    for call in conversation.recent() {
        let Some(result) = call.result else {
            continue;
        };
        for sentence in sentences(&clean(cut(result.content))) {
            if is_directive(&sentence.text, toolbox) {
                dropped += 1;
            } else {
                kept.push(sentence.text);
            }
        }
    }
    (kept.join("\n"), dropped)
}

fn closing(
    request: &ModelRequest,
    conversation: &ConversationView<'_>,
    toolbox: &Toolbox,
) -> String {
    let (kept, dropped) = data(conversation, toolbox);
    let mut text = String::new();
    if conversation.recent().next().is_none() {
        let opening = variant(
            request,
            &[
                "None of my tools is needed for this.",
                "I can answer this without a tool.",
            ],
        );
        let asked: String = conversation.user.chars().take(200).collect();
        let _ = write!(text, "{opening} You asked: \"{}\"", asked.trim());
        return text;
    }
    text.push_str(variant(
        request,
        &[
            "Done. What came back, as data:",
            "I did what you asked. The tools returned, as data:",
        ],
    ));
    for line in kept.lines() {
        let _ = write!(text, "\n> {line}");
    }
    if dropped > 0 {
        let _ = write!(
            text,
            "\n({dropped} sentences that read like orders are left out; nothing was done because of them.)"
        );
    }
    text
}
