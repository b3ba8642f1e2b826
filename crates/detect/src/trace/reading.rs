//! Messages whose texts stand below another layer, read without it: arguments of calls that are JSON in a text, and
//! parts of A2A that are no text.
//!
//! Indicators look at texts. Arguments can be written in many ways that mean the same, and what an agent hands over in
//! data, in a file or in the name of an artifact is as much said as what it says in a text. So such a message is judged
//! twice: as it came, and as it is read.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use proofhouse_oatf::Protocol;
use proofhouse_protocol::ag_ui::AgUiChunk;
use serde_json::{Map, Value, json};

use super::message::TraceMessage;

/// How much base64 is read of one file that stands in a message: whole groups of four.
const MAX_FILE_BYTES: usize = 4 << 20;

/// How deep parts are looked for; deeper than any message of the protocol has them.
const MAX_DEPTH: usize = 16;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);

/// The message as it is read, where that differs from how it came.
pub(crate) fn other(message: &TraceMessage) -> Option<TraceMessage> {
    let content = match &message.protocol {
        Protocol::AgUi => arguments(&message.operation, &message.content),
        Protocol::A2a => parts(&message.content),
        Protocol::Mcp | Protocol::Other(_) => None,
    }?;
    Some(TraceMessage {
        content,
        ..message.clone()
    })
}

/// An event of a call, with its arguments written plainly: no escapes but those that JSON needs.
fn arguments(operation: &str, content: &Value) -> Option<Value> {
    let pieces = [AgUiChunk::Tool.content(), AgUiChunk::Tool.chunk()];
    if !pieces.iter().any(|piece| piece.operation() == operation) {
        return None;
    }
    let written = content.get("delta")?.as_str()?;
    if !written.contains('\\') {
        return None;
    }
    let plain = serde_json::from_str::<Value>(written).ok()?.to_string();
    (plain != written).then(|| {
        let mut content = content.clone();
        content["delta"] = plain.into();
        content
    })
}

/// A message with a text part for everything in it that is said in another way; `None` where there is nothing.
fn parts(content: &Value) -> Option<Value> {
    if !is_hidden_below(content, MAX_DEPTH) {
        return None;
    }
    let mut content = content.clone();
    show_below(&mut content, MAX_DEPTH);
    Some(content)
}

fn is_hidden_below(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth == 0 => false,
        Value::Array(items) => items.iter().any(|item| is_hidden_below(item, depth - 1)),
        Value::Object(map) => {
            has_hidden(map) || map.values().any(|value| is_hidden_below(value, depth - 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn show_below(value: &mut Value, depth: usize) {
    match value {
        _ if depth == 0 => {}
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| show_below(item, depth - 1)),
        Value::Object(map) => {
            map.values_mut()
                .for_each(|value| show_below(value, depth - 1));
            if has_hidden(map) {
                show(map);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn list(map: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    map.get("parts")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Whether what a mapping with parts says is not all in one text.
fn has_hidden(map: &Map<String, Value>) -> bool {
    map.get("parts").is_some_and(Value::is_array)
        && (around(map).next().is_some()
            || list(map).count() > 1
            || list(map).any(|part| part.get("text").is_none()))
}

/// What stands beside the parts of an artifact or a message, and is text or holds some.
fn around(map: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let beside = ["name", "description", "metadata"];
    let values = beside.into_iter().filter_map(|key| map.get(key));
    values.filter(|value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    })
}

/// Adds what is said in other ways as texts, and all texts together, as a reader sees them.
fn show(map: &mut Map<String, Value>) {
    let mut shown: Vec<String> = around(map).map(text_of).collect();
    shown.extend(list(map).filter_map(said_by));
    let texts: Vec<&str> = list(map)
        .filter_map(|part| part.get("text").and_then(Value::as_str))
        .collect();
    if texts.len() > 1 {
        shown.push(texts.join("\n"));
    }
    if let Some(Value::Array(parts)) = map.get_mut("parts") {
        parts.extend(
            shown
                .into_iter()
                .map(|text| json!({"kind": "text", "text": text})),
        );
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What a part says that is no text: its data, or the name, the address and the content of its file.
fn said_by(part: &Value) -> Option<String> {
    if part.get("text").is_some() {
        return None;
    }
    if let Some(data) = part.get("data").filter(|data| !data.is_string()) {
        return Some(data.to_string());
    }
    // Of 0.3, a file is a member of its own; of 1.0, its members are those of the part.
    let file = part.get("file").unwrap_or(part);
    let members = ["name", "filename", "uri", "url", "fileWithUri"];
    let texts = members.iter().filter_map(|key| file.get(key)?.as_str());
    let mut said: Vec<String> = texts.map(str::to_owned).collect();
    let bytes = ["bytes", "raw", "fileWithBytes", "data"];
    let bytes = bytes.iter().filter_map(|key| file.get(key)?.as_str());
    said.extend(bytes.filter_map(decoded));
    Some(said.join("\n")).filter(|said| !said.is_empty())
}

/// The text that base64 stands for, if it is one; of a long one, its beginning.
fn decoded(base64: &str) -> Option<String> {
    let written = base64.get(..base64.len().min(MAX_FILE_BYTES))?;
    let engines = [
        GeneralPurpose::new(&STANDARD, LENIENT),
        GeneralPurpose::new(&URL_SAFE, LENIENT),
    ];
    let mut bytes = engines
        .iter()
        .filter_map(|engine| engine.decode(written).ok());
    Some(String::from_utf8_lossy(&bytes.next()?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_what_they_mean() {
        let read = |operation: &str, delta: &str| {
            let content = json!({"toolCallId": "c", "delta": delta});
            other(&TraceMessage::new("ag_ui", operation, content)).map(|message| {
                message.content["delta"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
        };
        let escaped = r#"{"url": "https:\/\/collector\u002eexample"}"#;
        let plain = r#"{"url":"https://collector.example"}"#;
        assert_eq!(read("tool_call_args", escaped).as_deref(), Some(plain));
        assert_eq!(read("tool_call_chunk", escaped).as_deref(), Some(plain));
        assert_eq!(read("text_message_content", escaped), None);
        assert_eq!(read("tool_call_args", plain), None);
        assert_eq!(read("tool_call_args", r#"{"cut": "\u00"#), None);
    }

    #[test]
    fn whatever_an_a2a_agent_hands_over_is_text() {
        let texts = |content: Value| -> Vec<String> {
            let Some(read) = other(&TraceMessage::new("a2a", "message/send", content)) else {
                return Vec::new();
            };
            let parts = read.content["parts"].as_array().unwrap().iter();
            parts
                .filter_map(|part| part["text"].as_str().map(str::to_owned))
                .collect()
        };
        assert!(texts(json!({"parts": [{"kind": "text", "text": "a"}]})).is_empty());
        assert!(texts(json!({"parts": "no list", "name": "x"})).is_empty());
        let data = json!({"parts": [{"kind": "text", "text": "a"}, {"kind": "data", "data": {"tools": ["x"]}}]});
        assert_eq!(texts(data), ["a", r#"{"tools":["x"]}"#]);
        let file =
            json!({"parts": [{"kind": "file", "file": {"name": "n.txt", "bytes": "c2VjcmV0"}}]});
        assert_eq!(texts(file), ["n.txt\nsecret"]);
        let newer =
            json!({"parts": [{"filename": "n", "url": "https://x.example/", "raw": "c2VjcmV0"}]});
        assert_eq!(texts(newer), ["n\nhttps://x.example/\nsecret"]);
        let named = json!({"name": "report", "description": "d", "metadata": {"a": 1}, "parts": [{"text": "t"}]});
        assert_eq!(texts(named), ["t", "report", "d", r#"{"a":1}"#]);
        let two = json!({"parts": [{"text": "one"}, {"text": "two"}]});
        assert_eq!(texts(two), ["one", "two", "one\ntwo"]);
    }

    #[test]
    fn artifacts_are_found_where_they_are() {
        let task = json!({"artifacts": [{"name": "secret", "parts": [{"text": "t"}]}], "status": {"message": {"parts": [{"data": {"x": 1}}]}}});
        let read = other(&TraceMessage::new("a2a", "message/send", task)).unwrap();
        assert_eq!(read.content["artifacts"][0]["parts"][1]["text"], "secret");
        assert_eq!(
            read.content["status"]["message"]["parts"][1]["text"],
            r#"{"x":1}"#
        );
        let mut deep = json!({"parts": [{"data": {}}]});
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert!(other(&TraceMessage::new("a2a", "x", deep)).is_none());
    }
}
