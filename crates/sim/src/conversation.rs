//! A request seen as a conversation: what the user asked last, what was called since, what came back.

use serde_json::{Map, Value};

use proofhouse_model::{ChatMessage, ModelRequest};

/// How much of one result is carried somewhere else or shown; the whole of a large file helps nobody.
const MAX_COPY_BYTES: usize = 16 << 10;

/// The request, taken apart.
pub(super) struct ConversationView<'r> {
    pub(super) request: &'r ModelRequest,
    /// What the user said last.
    pub(super) user: String,
    /// Where the answers to it begin.
    pub(super) since: usize,
    /// Every call that was made, oldest first.
    pub(super) calls: Vec<PastCall<'r>>,
}

/// A call that was made, and what came of it.
pub(super) struct PastCall<'r> {
    /// The message that asked for it.
    pub(super) place: usize,
    pub(super) name: &'r str,
    pub(super) arguments: Option<&'r Map<String, Value>>,
    pub(super) result: Option<PastResult<'r>>,
}

/// What a tool returned.
#[derive(Clone, Copy)]
pub(super) struct PastResult<'r> {
    /// The message it stands in.
    pub(super) place: usize,
    pub(super) content: &'r str,
}

impl<'r> ConversationView<'r> {
    pub(super) fn new(request: &'r ModelRequest) -> Self {
        let messages = &request.messages;
        let last = messages
            .iter()
            .rposition(|message| matches!(message, ChatMessage::User { .. }));
        let since = last.map_or(0, |last| last + 1);
        // Several messages in a row are one request.
        let mut said = Vec::new();
        for message in messages[..since].iter().rev() {
            match message {
                ChatMessage::User { text } => said.push(text.as_str()),
                _ => break,
            }
        }
        said.reverse();
        let mut calls: Vec<PastCall<'r>> = Vec::new();
        let mut ids: Vec<&str> = Vec::new();
        for (place, message) in messages.iter().enumerate() {
            match message {
                ChatMessage::Assistant { calls: made, .. } => {
                    for call in made {
                        ids.push(&call.id);
                        calls.push(PastCall {
                            place,
                            name: &call.name,
                            arguments: call.arguments.object(),
                            result: None,
                        });
                    }
                }
                ChatMessage::Tool {
                    call_id, content, ..
                } => {
                    let asked = ids.iter().rposition(|id| id == call_id);
                    let returned = PastResult { place, content };
                    if let Some(call) = asked.and_then(|asked| calls.get_mut(asked)) {
                        call.result = Some(returned);
                    }
                }
                ChatMessage::User { .. } => {}
            }
        }
        Self {
            request,
            user: cut(&said.join("\n\n")).to_owned(),
            since,
            calls,
        }
    }

    /// The calls since the user spoke.
    pub(super) fn recent(&self) -> impl Iterator<Item = &PastCall<'r>> {
        self.calls.iter().filter(|call| call.place >= self.since)
    }
}

/// As much of a text as is carried along.
pub(super) fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_COPY_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
