//! Reads a request of OpenAI's chat completions as clients of all kinds write it.

use serde_json::Value;

use super::ModelServerLimits;
use crate::model::{Arguments, ChatMessage, ModelOptions, ModelRequest, ToolCall, ToolSpec};

/// What a client asks, and how it wants to hear of it.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) request: ModelRequest,
    /// As events.
    pub(super) stream: bool,
    /// With an event that tells the tokens.
    pub(super) tell_usage: bool,
}

impl Question {
    /// Reads a body; what is wrong with it is said in one sentence.
    pub(super) fn read(body: &[u8], limits: &ModelServerLimits) -> Result<Self, String> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the body is no JSON: {error}"))?;
        let messages = list(&body, "messages", limits.max_messages)?;
        if messages.is_empty() {
            return Err("`messages` must have at least one message".to_owned());
        }
        if body.get("n").and_then(Value::as_u64).is_some_and(|n| n > 1) {
            return Err("`n`: there is one choice only".to_owned());
        }
        let mut request = ModelRequest {
            options: options(&body),
            ..ModelRequest::default()
        };
        for (place, message) in messages.iter().enumerate() {
            add(message, &mut request).map_err(|reason| format!("messages[{place}]: {reason}"))?;
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
fn list<'b>(body: &'b Value, key: &str, most: usize) -> Result<&'b [Value], String> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) if items.len() <= most => Ok(items),
        Some(Value::Array(_)) => Err(format!("`{key}` may have at most {most} entries")),
        Some(_) => Err(format!("`{key}` must be a list")),
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
fn add(message: &Value, request: &mut ModelRequest) -> Result<(), String> {
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
                    .ok_or("no call before it has its `tool_call_id`")?
                    .to_owned(),
                call_id: call_id.to_owned(),
                content,
                is_error: false,
            }
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            return Err(format!(
                "there is no role `{shown}`: write system, developer, user, assistant or tool"
            ));
        }
    };
    request.messages.push(added);
    Ok(())
}

/// The text of a content, which is one text or several parts. Pictures and sounds say nothing here.
fn words(content: &Value) -> Result<String, String> {
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
        _ => Err("`content` must be a text or a list of parts".to_owned()),
    }
}

fn calls(message: &Value) -> Result<Vec<ToolCall>, String> {
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

    fn read(body: &Value) -> Result<Question, String> {
        Question::read(body.to_string().as_bytes(), &ModelServerLimits::default())
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
            assert_eq!(read(&body).unwrap_err(), expected);
        }
        let error = Question::read(b"{", &ModelServerLimits::default()).unwrap_err();
        assert!(error.starts_with("the body is no JSON: "), "{error}");
    }
}
