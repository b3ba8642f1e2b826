//! Reads a request of OpenAI's chat completions as clients of all kinds write it.

use serde_json::Value;

use super::ModelServerLimits;
use crate::model::{Arguments, ChatMessage, ModelOptions, ModelRequest, ToolCall, ToolSpec};

/// What a client asks, and how it wants to hear of it.
#[derive(Debug)]
pub(super) struct CompletionsRequest {
    pub(super) request: ModelRequest,
    /// As events.
    pub(super) stream: bool,
    /// With an event that tells the tokens.
    pub(super) tell_usage: bool,
}

/// Why a request cannot be answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidCompletionsRequest {
    #[error("the body is no JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("`messages` must have at least one message")]
    NoMessages,
    #[error("`n`: there is one choice only")]
    ManyChoices,
    #[error(transparent)]
    List(#[from] InvalidList),
    #[error("messages[{place}]: {source}")]
    Message {
        place: usize,
        source: InvalidChatMessage,
    },
}

/// Why a key does not hold a list that is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidList {
    #[error("`{key}` must be a list")]
    NotAList { key: &'static str },
    #[error("`{key}` may have at most {most} entries")]
    TooLong { key: &'static str, most: usize },
}

/// Why a message has no place in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidChatMessage {
    #[error("`content` must be a text or a list of parts")]
    Content,
    #[error("there is no role `{0}`: write system, developer, user, assistant or tool")]
    Role(String),
    #[error("no call before it has its `tool_call_id`")]
    NoCall,
    #[error(transparent)]
    Calls(#[from] InvalidList),
}

impl CompletionsRequest {
    /// Reads a body.
    pub(super) fn read(
        body: &[u8],
        limits: &ModelServerLimits,
    ) -> Result<Self, InvalidCompletionsRequest> {
        let body: Value =
            serde_json::from_slice(body).map_err(InvalidCompletionsRequest::NotJson)?;
        let messages = list(&body, "messages", limits.max_messages)?;
        if messages.is_empty() {
            return Err(InvalidCompletionsRequest::NoMessages);
        }
        if body.get("n").and_then(Value::as_u64).is_some_and(|n| n > 1) {
            return Err(InvalidCompletionsRequest::ManyChoices);
        }
        let mut request = ModelRequest {
            options: options(&body),
            ..ModelRequest::default()
        };
        for (place, message) in messages.iter().enumerate() {
            add(message, &mut request)
                .map_err(|source| InvalidCompletionsRequest::Message { place, source })?;
        }
        let tools = list(&body, "tools", limits.max_tools)?;
        if body.get("tool_choice").and_then(Value::as_str) != Some("none") {
            // What is no function is of the provider's own, and there is no such provider here.
            let functions = tools.iter().filter_map(|tool| tool.get("function"));
            request.tools = functions.map(tool).collect();
        }
        let stream_options = body.get("stream_options").unwrap_or(&Value::Null);
        Ok(Self {
            request,
            stream: flag(&body, "stream"),
            tell_usage: flag(stream_options, "include_usage"),
        })
    }
}

/// A list of at most so many things; one that is absent is empty.
fn list<'b>(body: &'b Value, key: &'static str, most: usize) -> Result<&'b [Value], InvalidList> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) if items.len() <= most => Ok(items),
        Some(Value::Array(_)) => Err(InvalidList::TooLong { key, most }),
        Some(_) => Err(InvalidList::NotAList { key }),
    }
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn options(body: &Value) -> ModelOptions {
    let most = ["max_completion_tokens", "max_tokens"];
    let most = most.iter().find_map(|key| body.get(key)?.as_u64());
    ModelOptions {
        temperature: body.get("temperature").and_then(Value::as_f64),
        seed: body.get("seed").and_then(Value::as_u64),
        max_tokens: most.and_then(|most| u32::try_from(most).ok()),
        built_in: Vec::new(),
    }
}

fn tool(function: &Value) -> ToolSpec {
    ToolSpec {
        name: text(function, "name").to_owned(),
        description: text(function, "description").to_owned(),
        parameters: function.get("parameters").cloned().unwrap_or_default(),
    }
}

/// Adds a message to the conversation. All that operators say is one instruction.
fn add(message: &Value, request: &mut ModelRequest) -> Result<(), InvalidChatMessage> {
    let content = words(message.get("content").unwrap_or(&Value::Null))?;
    let added = match text(message, "role") {
        "system" | "developer" => {
            let system = request.system.get_or_insert_default();
            if !system.is_empty() {
                system.push_str("\n\n");
            }
            system.push_str(&content);
            return Ok(());
        }
        "user" => ChatMessage::User { text: content },
        "assistant" => ChatMessage::Assistant {
            text: content,
            calls: calls(message)?,
        },
        "tool" => {
            let call_id = text(message, "tool_call_id");
            ChatMessage::Tool {
                name: called(&request.messages, call_id)
                    .ok_or(InvalidChatMessage::NoCall)?
                    .to_owned(),
                call_id: call_id.to_owned(),
                content,
                is_error: false,
            }
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            return Err(InvalidChatMessage::Role(shown));
        }
    };
    request.messages.push(added);
    Ok(())
}

/// The text of a content, which is one text or several parts. Pictures and sounds say nothing here.
fn words(content: &Value) -> Result<String, InvalidChatMessage> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| match text(part, "type") {
                "text" => Some(text(part, "text")),
                "refusal" => Some(text(part, "refusal")),
                _ => None,
            });
            Ok(texts.collect::<Vec<_>>().join("\n"))
        }
        _ => Err(InvalidChatMessage::Content),
    }
}

fn calls(message: &Value) -> Result<Vec<ToolCall>, InvalidList> {
    // The body's size bounds their number.
    let calls = list(message, "tool_calls", usize::MAX)?.iter();
    let read = calls.map(|call| {
        let function = call.get("function").unwrap_or(&Value::Null);
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => Arguments::parse(text),
            Some(other) => Arguments::from_value(other.clone()),
            None => Arguments::parse(""),
        };
        ToolCall {
            id: text(call, "id").to_owned(),
            name: text(function, "name").to_owned(),
            arguments,
            opaque: None,
        }
    });
    Ok(read.collect())
}

/// The tool that was called with this id, the latest first.
fn called<'m>(messages: &'m [ChatMessage], id: &str) -> Option<&'m str> {
    messages.iter().rev().find_map(|message| match message {
        ChatMessage::Assistant { calls, .. } => {
            let call = calls.iter().find(|call| call.id == id)?;
            Some(call.name.as_str())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> Result<CompletionsRequest, InvalidCompletionsRequest> {
        CompletionsRequest::read(body.to_string().as_bytes(), &ModelServerLimits::default())
    }

    #[test]
    fn a_conversation_is_read_with_its_calls_and_results() {
        let function = json!({"name": "look", "arguments": "{\"city\": \"Oslo\"}"});
        let tools = json!([
            {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}},
            {"type": "web_search"},
        ]);
        let body = json!({
            "model": "any", "seed": 7, "max_completion_tokens": 9, "temperature": 0.5, "tools": tools,
            "stream": true, "stream_options": {"include_usage": true},
            "messages": [
                {"role": "system", "content": "One."},
                {"role": "developer", "content": [{"type": "text", "text": "Two."}]},
                {"role": "user", "content": [
                    {"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "x"}},
                    {"type": "text", "text": "there."},
                ]},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
                {"role": "tool", "tool_call_id": "c1", "content": "Fog."},
            ],
        });
        let question = read(&body).unwrap();
        assert!(question.stream && question.tell_usage);
        let request = &question.request;
        assert_eq!(request.system.as_deref(), Some("One.\n\nTwo."));
        assert_eq!(
            request.options,
            ModelOptions {
                temperature: Some(0.5),
                seed: Some(7),
                max_tokens: Some(9),
                built_in: Vec::new()
            }
        );
        assert_eq!(request.tools.len(), 1);
        let call = ToolCall::new(
            "c1",
            "look",
            json!({"city": "Oslo"}).as_object().cloned().unwrap(),
        );
        assert_eq!(
            request.messages,
            [
                ChatMessage::user("Look\nthere."),
                ChatMessage::Assistant {
                    text: String::new(),
                    calls: vec![call.clone()]
                },
                ChatMessage::tool(&call, "Fog.", false),
            ]
        );
        let mut without = body;
        without["tool_choice"] = "none".into();
        assert!(read(&without).unwrap().request.tools.is_empty());
    }

    #[test]
    fn what_cannot_be_answered_says_why() {
        let said = json!([{"role": "user", "content": "Hello"}]);
        let many = vec![json!({"role": "user", "content": ""}); 2_001];
        for (body, expected) in [
            (json!({}), "`messages` must have at least one message"),
            (json!([]), "`messages` must have at least one message"),
            (json!({"messages": "Hello"}), "`messages` must be a list"),
            (
                json!({"messages": many}),
                "`messages` may have at most 2000 entries",
            ),
            (
                json!({"messages": said, "n": 2}),
                "`n`: there is one choice only",
            ),
            (
                json!({"messages": said, "tools": 1}),
                "`tools` must be a list",
            ),
            (
                json!({"messages": [{"role": "user", "content": 1}]}),
                "messages[0]: `content` must be a text or a list of parts",
            ),
            (
                json!({"messages": [{"role": "king", "content": ""}]}),
                "messages[0]: there is no role `king`: write system, developer, user, assistant or tool",
            ),
            (
                json!({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]}),
                "messages[0]: no call before it has its `tool_call_id`",
            ),
        ] {
            assert_eq!(read(&body).unwrap_err().to_string(), expected);
        }
        let error = CompletionsRequest::read(b"{", &ModelServerLimits::default()).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("the body is no JSON: "), "{error}");
    }
}
