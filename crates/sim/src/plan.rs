//! What the user asked for, as steps: which tool each part of a request means, and with which arguments.

use serde_json::{Map, Value, json};

use super::conversation::{ConversationView, cut};
use super::fill::{filler, fit, from_words, object};
use super::literals::quoted;
use super::sentences::{orders, sentences};
use super::toolbox::{Role, ToolParameter, ToolView, Toolbox};
use super::words::tokens;

/// Steps of one request.
const MAX_STEPS: usize = 16;

/// One call that the user's words ask for.
pub(super) struct PlanStep {
    pub(super) tool: usize,
    /// The words that ask for it.
    pub(super) words: String,
    /// The user wants what came before to go into it: "mail it to Bob".
    pub(super) flows: bool,
}

/// The steps of a request, in order.
pub(super) fn steps(user: &str, toolbox: &Toolbox) -> Vec<PlanStep> {
    let mut found: Vec<PlanStep> = Vec::new();
    for sentence in sentences(user) {
        let mut parts: Vec<(String, String)> = orders(&sentence.text, false, &|_| false)
            .into_iter()
            .filter(|order| !order.forbids)
            .map(|order| (order.verb, order.text))
            .collect();
        if parts.is_empty() {
            let verb = tokens(&sentence.text)
                .into_iter()
                .next()
                .unwrap_or_default();
            parts.push((verb, sentence.text.clone()));
        } else if let [(_, only)] = parts.as_mut_slice() {
            // What stands before the only verb belongs to it: "With the mailer, send …".
            only.clone_from(&sentence.text);
        }
        for (verb, words) in joined(parts) {
            let named = toolbox.named(&words);
            let tool = named
                .first()
                .copied()
                .or_else(|| toolbox.best(&words, &verb));
            let Some(tool) = tool else {
                continue;
            };
            let flows = refers_back(&words) && !found.is_empty();
            let again = found.iter().position(|step| step.tool == tool);
            match again {
                // "Make a report. Use the report agent." asks once.
                Some(place) if !has_values(&words) || matches!(verb.as_str(), "use" | "call") => {
                    found[place].words.push(' ');
                    found[place].words.push_str(&words);
                }
                _ if found.len() < MAX_STEPS => found.push(PlanStep { tool, words, flows }),
                _ => {}
            }
        }
    }
    found
}

/// Parts that are only a verb belong to the next: "clean and normalize the data".
fn joined(parts: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut waiting: Option<(String, String)> = None;
    for (verb, words) in parts {
        let (verb, words) = match waiting.take() {
            Some((first, before)) => (first, format!("{before} and {words}")),
            None => (verb, words),
        };
        if words.split_whitespace().count() == 1 {
            waiting = Some((verb, words));
        } else {
            found.push((verb, words));
        }
    }
    found.extend(waiting);
    found
}

/// The arguments of a step from the user's words. `so_far` is what may flow into it.
pub(super) fn arguments(
    step: &PlanStep,
    tool: &ToolView,
    user: &str,
    so_far: &str,
    with_defaults: bool,
) -> Map<String, Value> {
    let mut filled = Map::new();
    for parameter in &tool.parameters {
        let value = from_words(parameter, &step.words, user)
            .or_else(|| told(parameter, step, tool, user, so_far))
            .or_else(|| match &parameter.default {
                Some(default) if with_defaults => Some(default.clone()),
                // A server knows its own defaults; nobody has to repeat them.
                Some(_) => None,
                None if parameter.required => Some(filler(parameter)),
                None => None,
            });
        if let Some(value) = value {
            filled.insert(parameter.name.clone(), value);
        }
    }
    filled
}

/// Longer texts: what was quoted, what is asked for, what came before.
fn told(
    parameter: &ToolParameter,
    step: &PlanStep,
    tool: &ToolView,
    user: &str,
    so_far: &str,
) -> Option<Value> {
    let carries = parameter.role == Role::Content && step.flows;
    if !parameter.required && !carries {
        return None;
    }
    let text = match parameter.role {
        Role::Query => quotation(&step.words).unwrap_or_else(|| object(&step.words, tool)),
        Role::Content if step.flows && !so_far.is_empty() => so_far.to_owned(),
        Role::Content if tool.is_agent() => user.trim().to_owned(),
        Role::Content => quotation(&step.words)
            .or_else(|| {
                step.words
                    .split_once(": ")
                    .map(|(_, after)| after.trim().to_owned())
            })
            .unwrap_or_else(|| object(&step.words, tool)),
        Role::Subject => {
            let words: Vec<&str> = user.split_whitespace().take(6).collect();
            words.join(" ")
        }
        _ => return None,
    };
    fit(parameter, cut(&text)).or_else(|| Some(json!(text)))
}

fn quotation(words: &str) -> Option<String> {
    let (start, end) = *quoted(words).first()?;
    Some(words[start..end].to_owned())
}

/// Whether words speak of something that came before.
fn refers_back(words: &str) -> bool {
    let spans = quoted(words);
    let outside: String = words
        .char_indices()
        .filter(|(place, _)| !spans.iter().any(|(from, to)| from <= place && place < to))
        .map(|(_, letter)| letter)
        .collect();
    tokens(&outside).iter().any(|word| {
        matches!(
            word.as_str(),
            "it" | "them"
                | "result"
                | "results"
                | "this"
                | "that"
                | "these"
                | "those"
                | "summary"
                | "findings"
                | "output"
                | "answer"
                | "contents"
        )
    })
}

fn has_values(words: &str) -> bool {
    !super::literals::literals(words).is_empty()
}

/// The first step that was not taken since the user spoke. Each call counts for one step.
pub(super) fn next<'s>(
    steps: &'s [PlanStep],
    toolbox: &Toolbox,
    conversation: &ConversationView<'_>,
) -> Option<&'s PlanStep> {
    let mut made: Vec<&str> = conversation.recent().map(|call| call.name).collect();
    steps.iter().find(|step| {
        let name = &toolbox.tools[step.tool].name;
        match made.iter().position(|other| other == name) {
            Some(place) => {
                made.remove(place);
                false
            }
            None => true,
        }
    })
}
