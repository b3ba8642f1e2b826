//! What a client of AG-UI asks for: a RunAgentInput, checked and bounded.

use serde_json::{Map, Value};

use super::super::AgentLimits;
use super::super::texts::{cut, decision};
use crate::model::{Arguments, ToolCall, ToolSpec};
use crate::task::Decision;

/// The longest id that is kept.
const MAX_ID_BYTES: usize = 512;
/// Calls in one message of the history.
const MAX_CALLS: usize = 128;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunInput {
    pub(super) thread: String,
    pub(super) run: String,
    pub(super) messages: Vec<ClientMessage>,
    pub(super) tools: Vec<ToolSpec>,
    /// What the client says about the circumstances.
    pub(super) context: Option<String>,
    /// What may hold parameters of the agent.
    pub(super) properties: Map<String, Value>,
    pub(super) resume: Vec<(String, Decision)>,
}

/// One message of the history.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClientMessage {
    pub(super) id: String,
    pub(super) said: ClientSaid,
}

/// Who said what.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClientSaid {
    User(String),
    Assistant(String, Vec<ToolCall>),
    Tool {
        call: String,
        content: String,
        is_error: bool,
    },
    /// Nothing that the conversation has a place for.
    Other,
}

impl ClientSaid {
    /// How much it is.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::User(text) => text.len(),
            Self::Assistant(text, calls) => {
                let calls = calls.iter().map(|call| call.arguments.to_text().len());
                text.len() + calls.sum::<usize>()
            }
            Self::Tool { content, .. } => content.len(),
            Self::Other => 0,
        }
    }
}

/// Why an input cannot be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidAgUiInput {
    #[error("not JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("the input must be an object")]
    NotAnObject,
    #[error(transparent)]
    Field(#[from] InvalidField),
    #[error("`messages` is missing")]
    NoMessages,
    #[error("more than {0} messages")]
    TooManyMessages(usize),
    #[error("messages[{at}]: {source}")]
    Message {
        at: usize,
        source: InvalidHistoryMessage,
    },
    #[error("more than {0} tools")]
    TooManyTools(usize),
    #[error("tools[{at}]: {source}")]
    Tool { at: usize, source: InvalidTool },
    #[error("context[{at}]: `{key}` is missing")]
    Context { at: usize, key: &'static str },
    #[error("`resume` must hold objects")]
    Resume,
}

/// Why a field of an object does not hold what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidField {
    #[error("`{0}` must be a text")]
    NotText(&'static str),
    #[error("`{0}` has more than {MAX_ID_BYTES} bytes")]
    TooLong(&'static str),
    #[error("`{0}` must be a list")]
    NotAList(&'static str),
}

/// Why a message of the history cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidHistoryMessage {
    #[error("must be an object")]
    NotAnObject,
    #[error("`role` is not one of the roles")]
    Role,
    #[error("more than {MAX_CALLS} calls")]
    TooManyCalls,
    #[error("a call must be an object")]
    CallNotAnObject,
    #[error("a call needs a `function`")]
    CallWithoutFunction,
    #[error(transparent)]
    Field(#[from] InvalidField),
}

/// Why a tool of the client cannot be offered to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidTool {
    #[error("must be an object")]
    NotAnObject,
    #[error("`name` has letters, digits, `_` and `-`, 64 at most")]
    Name,
    #[error(transparent)]
    Field(#[from] InvalidField),
}

impl RunInput {
    /// Reads what was sent.
    pub(super) fn read(body: &[u8], limits: &AgentLimits) -> Result<Self, InvalidAgUiInput> {
        let value: Value = serde_json::from_slice(body).map_err(InvalidAgUiInput::NotJson)?;
        let Value::Object(object) = value else {
            return Err(InvalidAgUiInput::NotAnObject);
        };
        let (messages, instructions) = messages(&object, limits)?;
        let properties = match object.get("forwardedProps") {
            Some(Value::Object(properties)) => properties.clone(),
            _ => Map::new(),
        };
        Ok(Self {
            thread: id(&object, "threadId")?,
            run: id(&object, "runId")?,
            messages,
            tools: tools(&object, limits.max_tools)?,
            context: circumstances(&object, &instructions, limits.max_context_bytes)?,
            properties,
            resume: resume(&object)?,
        })
    }
}

fn id(object: &Map<String, Value>, key: &'static str) -> Result<String, InvalidField> {
    match object.get(key).and_then(Value::as_str) {
        Some("") | None => Err(InvalidField::NotText(key)),
        Some(id) if id.len() > MAX_ID_BYTES => Err(InvalidField::TooLong(key)),
        Some(id) => Ok(id.to_owned()),
    }
}

fn list<'a>(
    object: &'a Map<String, Value>,
    key: &'static str,
) -> Result<&'a [Value], InvalidField> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(InvalidField::NotAList(key)),
    }
}

/// The messages, and what those of the application that are no part of the conversation say.
fn messages(
    object: &Map<String, Value>,
    limits: &AgentLimits,
) -> Result<(Vec<ClientMessage>, Vec<String>), InvalidAgUiInput> {
    if !object.contains_key("messages") {
        return Err(InvalidAgUiInput::NoMessages);
    }
    let list = list(object, "messages")?;
    if list.len() > limits.max_messages {
        return Err(InvalidAgUiInput::TooManyMessages(limits.max_messages));
    }
    let mut instructions = Vec::new();
    let mut messages = Vec::new();
    for (at, message) in list.iter().enumerate() {
        let message = read_message(message, &mut instructions)
            .map_err(|source| InvalidAgUiInput::Message { at, source })?;
        messages.push(message);
    }
    Ok((messages, instructions))
}

/// One message; what it says besides the conversation is added to the instructions.
fn read_message(
    message: &Value,
    instructions: &mut Vec<String>,
) -> Result<ClientMessage, InvalidHistoryMessage> {
    let Value::Object(message) = message else {
        return Err(InvalidHistoryMessage::NotAnObject);
    };
    let said = match message.get("role").and_then(Value::as_str) {
        Some("user") => ClientSaid::User(content(message)),
        Some("assistant") => ClientSaid::Assistant(content(message), calls(message)?),
        Some("tool") => {
            let error = message.get("error").and_then(Value::as_str);
            let said = content(message);
            ClientSaid::Tool {
                call: id(message, "toolCallId")?,
                content: if said.is_empty() {
                    error.unwrap_or_default().to_owned()
                } else {
                    said
                },
                is_error: error.is_some(),
            }
        }
        Some("system" | "developer") => {
            instructions.push(content(message));
            ClientSaid::Other
        }
        Some("activity" | "reasoning") => ClientSaid::Other,
        _ => return Err(InvalidHistoryMessage::Role),
    };
    Ok(ClientMessage {
        id: id(message, "id")?,
        said,
    })
}

/// The text of a message: all of it, or its parts.
fn content(message: &Map<String, Value>) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().map(|part| {
                match (part.get("text").and_then(Value::as_str), part.get("type")) {
                    (Some(text), _) => text.to_owned(),
                    (None, Some(Value::String(kind))) => {
                        format!("[{} that is not read]", cut(kind, 32))
                    }
                    (None, _) => String::new(),
                }
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn calls(message: &Map<String, Value>) -> Result<Vec<ToolCall>, InvalidHistoryMessage> {
    let list = list(message, "toolCalls")?;
    if list.len() > MAX_CALLS {
        return Err(InvalidHistoryMessage::TooManyCalls);
    }
    let call = |call: &Value| {
        let call = call
            .as_object()
            .ok_or(InvalidHistoryMessage::CallNotAnObject)?;
        let function = call.get("function").and_then(Value::as_object);
        let function = function.ok_or(InvalidHistoryMessage::CallWithoutFunction)?;
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => Arguments::parse(text),
            Some(other) => Arguments::from_value(other.clone()),
            None => Arguments::from_value(Value::Null),
        };
        Ok(ToolCall {
            id: id(call, "id")?,
            name: id(function, "name")?,
            arguments,
            opaque: None,
        })
    };
    list.iter().map(call).collect()
}

fn tools(object: &Map<String, Value>, most: usize) -> Result<Vec<ToolSpec>, InvalidAgUiInput> {
    let list = list(object, "tools")?;
    if list.len() > most {
        return Err(InvalidAgUiInput::TooManyTools(most));
    }
    let tool = |(at, tool): (usize, &Value)| {
        read_tool(tool).map_err(|source| InvalidAgUiInput::Tool { at, source })
    };
    list.iter().enumerate().map(tool).collect()
}

fn read_tool(tool: &Value) -> Result<ToolSpec, InvalidTool> {
    let tool = tool.as_object().ok_or(InvalidTool::NotAnObject)?;
    let name = id(tool, "name")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    // Providers refuse a whole request for the sake of one odd name.
    if name.len() > 64 || !name.chars().all(is_name) {
        return Err(InvalidTool::Name);
    }
    let parameters = match tool.get("parameters") {
        Some(Value::Object(schema)) if schema.get("type") == Some(&"object".into()) => {
            Value::Object(schema.clone())
        }
        _ => serde_json::json!({"type": "object"}),
    };
    let description = tool.get("description").and_then(Value::as_str);
    Ok(ToolSpec {
        name,
        description: description.unwrap_or_default().to_owned(),
        parameters,
    })
}

/// What the client says about the circumstances, as the model is told it.
fn circumstances(
    object: &Map<String, Value>,
    instructions: &[String],
    most: usize,
) -> Result<Option<String>, InvalidAgUiInput> {
    let mut lines: Vec<String> = instructions.to_vec();
    for (at, entry) in list(object, "context")?.iter().enumerate() {
        let text = |key: &'static str| match entry.get(key) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Ok(other.to_string()),
            None => Err(InvalidAgUiInput::Context { at, key }),
        };
        lines.push(format!("{}: {}", text("description")?, text("value")?));
    }
    for (key, name) in [("state", "State"), ("forwardedProps", "Properties")] {
        match object.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::Object(empty)) if empty.is_empty() => {}
            Some(Value::Array(empty)) if empty.is_empty() => {}
            Some(value) => lines.push(format!("{name}: {value}")),
        }
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let text = format!("The application says:\n{}", lines.join("\n"));
    Ok(Some(cut(&text, most)))
}

/// Answers to interrupts. Whatever is not clearly an approval denies.
fn resume(object: &Map<String, Value>) -> Result<Vec<(String, Decision)>, InvalidAgUiInput> {
    let entry = |entry: &Value| {
        let entry = entry.as_object().ok_or(InvalidAgUiInput::Resume)?;
        let approves = |value: &Value| match value {
            Value::Bool(approves) => *approves,
            Value::String(word) => decision(word) == Some(Decision::Approve),
            _ => false,
        };
        let payload = entry.get("payload").unwrap_or(&Value::Null);
        let keys = ["approved", "approve", "decision"];
        let approved = entry.get("status").and_then(Value::as_str) == Some("resolved")
            && (approves(payload)
                || keys
                    .iter()
                    .any(|key| payload.get(key).is_some_and(approves)));
        let decision = if approved {
            Decision::Approve
        } else {
            Decision::Deny
        };
        Ok((id(entry, "interruptId")?, decision))
    };
    list(object, "resume")?.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(value: &Value) -> Result<RunInput, InvalidAgUiInput> {
        RunInput::read(value.to_string().as_bytes(), &AgentLimits::default())
    }

    #[test]
    fn inputs_are_read_and_the_rest_is_refused() {
        let input = read(&json!({
            "threadId": "t", "runId": "r", "state": {"a": 1}, "forwardedProps": {"p": 2},
            "context": [{"description": "page", "value": "home"}],
            "tools": [{"name": "show", "description": "d"}],
            "messages": [
                {"id": "0", "role": "system", "content": "be brief"},
                {"id": "1", "role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image"}]},
                {"id": "2", "role": "assistant", "toolCalls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
                {"id": "3", "role": "tool", "toolCallId": "c", "content": "", "error": "no"},
                {"id": "4", "role": "activity", "content": {}},
            ],
            "resume": [
                {"interruptId": "a", "status": "resolved", "payload": {"approved": true}},
                {"interruptId": "b", "status": "resolved", "payload": "why not ask my lawyer"},
                {"interruptId": "c", "status": "cancelled", "payload": true},
            ],
        }))
        .unwrap();
        assert_eq!(
            input.context.unwrap(),
            "The application says:\nbe brief\npage: home\nState: {\"a\":1}\nProperties: {\"p\":2}"
        );
        let ClientSaid::User(text) = &input.messages[1].said else {
            panic!()
        };
        assert_eq!(text, "hi\n[image that is not read]");
        assert!(
            matches!(&input.messages[3].said, ClientSaid::Tool { content, is_error: true, .. } if content == "no")
        );
        let decided: Vec<Decision> = input.resume.iter().map(|entry| entry.1).collect();
        assert_eq!(decided, [Decision::Approve, Decision::Deny, Decision::Deny]);

        for (wrong, says) in [
            (json!([]), "object"),
            (json!({"runId": "r", "messages": []}), "threadId"),
            (
                json!({"threadId": "t", "runId": "", "messages": []}),
                "runId",
            ),
            (json!({"threadId": "t", "runId": "r"}), "messages"),
            (
                json!({"threadId": "t", "runId": "r", "messages": {}}),
                "list",
            ),
            (
                json!({"threadId": "t", "runId": "r", "messages": [3]}),
                "messages[0]",
            ),
            (
                json!({"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": "x"}]}),
                "id",
            ),
            (
                json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "god"}]}),
                "role",
            ),
            (
                json!({"threadId": "t", "runId": "r", "messages": [], "tools": [{"name": "a b"}]}),
                "tools[0]",
            ),
            (
                json!({"threadId": "t", "runId": "r", "messages": vec![1; 2001]}),
                "2000",
            ),
        ] {
            let error = read(&wrong).unwrap_err().to_string();
            assert!(error.contains(says), "{error} about {says}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(body in "[\\[\\]{}\":,a-z0-9]{0,80}") {
            let _ = RunInput::read(body.as_bytes(), &AgentLimits::default());
        }
    }
}
