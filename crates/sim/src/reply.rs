//! How simulations speak: in small pieces, with ids and openings that only depend on the seed.

use serde_json::{Map, Value};

use proofhouse_model::{
    ChatMessage, ModelEvent, ModelReply, ModelRequest, ModelSink, StopReason, ToolCall, Usage,
};

/// Words in one piece of streamed text.
const WORDS_PER_PIECE: usize = 4;

/// What a simulation wants to say.
#[derive(Debug, Default)]
pub(super) struct SimReply {
    pub(super) text: String,
    pub(super) calls: Vec<(String, Map<String, Value>)>,
}

/// Says it: tells the sink, and makes the reply. Tokens are estimated by length, four letters each.
pub(super) fn speak(
    said: SimReply,
    request: &ModelRequest,
    name: &str,
    events: &mut dyn ModelSink,
) -> ModelReply {
    for piece in pieces(&said.text) {
        events.event(ModelEvent::Text(piece.to_owned()));
    }
    let before: usize = request
        .messages
        .iter()
        .map(|message| match message {
            ChatMessage::Assistant { calls, .. } => calls.len(),
            _ => 0,
        })
        .sum();
    let seed = request.options.seed.unwrap_or_default();
    let mut calls = Vec::with_capacity(said.calls.len());
    for (place, (tool, arguments)) in said.calls.into_iter().enumerate() {
        let number = (before + place) as u64;
        let id = format!("call_{:016x}", mixed(seed, number));
        let call = ToolCall::new(id, tool, arguments);
        events.event(ModelEvent::Call(call.clone()));
        calls.push(call);
    }
    let written = said.text.len()
        + calls
            .iter()
            .map(|call| call.arguments.to_text().len())
            .sum::<usize>();
    ModelReply {
        stop: if calls.is_empty() {
            StopReason::End
        } else {
            StopReason::ToolCalls
        },
        usage: Usage {
            prompt: tokens(read_bytes(request)),
            completion: tokens(written),
        },
        text: said.text,
        calls,
        model: name.to_owned(),
    }
}

/// One of several ways to say the same, by the seed.
pub(super) fn variant<'v>(request: &ModelRequest, ways: &[&'v str]) -> &'v str {
    let seed = request.options.seed.unwrap_or_default();
    let place = mixed(seed, ways.len() as u64) % (ways.len().max(1) as u64);
    usize::try_from(place)
        .ok()
        .and_then(|place| ways.get(place))
        .copied()
        .unwrap_or_default()
}

fn pieces(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut words) = (0, 0);
    for (place, letter) in text.char_indices() {
        if letter.is_whitespace() {
            words += 1;
            if words == WORDS_PER_PIECE {
                let end = place + letter.len_utf8();
                found.push(&text[start..end]);
                (start, words) = (end, 0);
            }
        }
    }
    if start < text.len() {
        found.push(&text[start..]);
    }
    found
}

fn read_bytes(request: &ModelRequest) -> usize {
    let messages: usize = request
        .messages
        .iter()
        .map(|message| match message {
            ChatMessage::User { text } => text.len(),
            ChatMessage::Assistant { text, calls } => {
                text.len()
                    + calls
                        .iter()
                        .map(|call| call.arguments.to_text().len())
                        .sum::<usize>()
            }
            ChatMessage::Tool { content, .. } => content.len(),
        })
        .sum();
    let tools: usize = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
        .sum();
    messages + tools + request.system.as_ref().map_or(0, String::len)
}

fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// Two numbers mixed into one that looks like neither (SplitMix64).
fn mixed(seed: u64, number: u64) -> u64 {
    let mut bits = seed.wrapping_add((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
