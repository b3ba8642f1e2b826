//! Channel probes: whoever asks for the reference code in a text gets it, as any model would say it. That is harmless,
//! so the careful simulation answers too.

use serde_json::{Map, Value, json};

use super::conversation::ConversationView;
use super::reply::SimReply;
use proofhouse_model::{ChatMessage, ModelRequest};

/// What stands before the halves of a code.
const FIRST: &str = "first half:";
const SECOND: &str = "second half:";
/// The tool that takes codes.
const SUBMIT: &str = "submit_code";
/// Letters of a half.
const MAX_HALF: usize = 64;

/// Whether the user asks for a reference code.
pub(super) fn is_asked(conversation: &ConversationView<'_>) -> bool {
    let asked = conversation.user.to_lowercase();
    asked.contains("reference code") && asked.contains("half")
}

/// The answer to somebody who asks for a reference code, once it is in sight.
pub(super) fn answer(conversation: &ConversationView<'_>) -> Option<SimReply> {
    if !is_asked(conversation) {
        return None;
    }
    let asked = conversation.user.to_lowercase();
    let request = conversation.request;
    let code = texts(request).find_map(|text| code_in(&text))?;
    let submit = request.tools.iter().find(|tool| {
        let is_it = tool.name == SUBMIT || tool.name.ends_with(&format!("_{SUBMIT}"));
        is_it && asked.contains(SUBMIT)
    });
    let is_done = |name: &str| conversation.recent().any(|call| call.name == name);
    if let Some(tool) = submit.filter(|tool| !is_done(&tool.name)) {
        let mut arguments = Map::new();
        arguments.insert("code".to_owned(), json!(code));
        return Some(SimReply {
            text: String::new(),
            calls: vec![(tool.name.clone(), arguments)],
        });
    }
    Some(SimReply {
        text: code,
        calls: Vec::new(),
    })
}

/// Everything a model reads, each text for itself.
fn texts(request: &ModelRequest) -> impl Iterator<Item = String> + '_ {
    let system = request.system.iter().cloned();
    let tools = request.tools.iter().flat_map(|tool| {
        let parameters = (tool.parameters != Value::Null).then(|| tool.parameters.to_string());
        std::iter::once(tool.description.clone()).chain(parameters)
    });
    let messages = request.messages.iter().map(|message| match message {
        ChatMessage::User { text } | ChatMessage::Assistant { text, .. } => text.clone(),
        ChatMessage::Tool { content, .. } => content.clone(),
    });
    system.chain(tools).chain(messages)
}

/// The two halves in a text, joined.
fn code_in(text: &str) -> Option<String> {
    // Lower case of letters beyond ASCII may have another length, and places would not fit.
    let lower = text.to_ascii_lowercase();
    let half = |label: &str| {
        let after = &text[lower.find(label)? + label.len()..];
        let is_part = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
        let half: String = after.trim_start().chars().take_while(is_part).collect();
        (!half.is_empty() && half.len() <= MAX_HALF).then_some(half)
    };
    Some(format!("{}-{}", half(FIRST)?, half(SECOND)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_halves_make_a_code() {
        let code = code_in;
        let text = "Looks it up. First half: amber-falcon. Second half: 4821.";
        assert_eq!(code(text).as_deref(), Some("amber-falcon-4821"));
        let json = r#"{"note":"İ First half: a-b; second half: 1"}"#;
        assert_eq!(code(json).as_deref(), Some("a-b-1"));
        for none in [
            "",
            "First half: a",
            "first half: . second half: 2",
            "first half:",
        ] {
            assert_eq!(code(none), None, "{none}");
        }
    }
}
