//! What a message says about who sent it: that the peer is there, that the subject acted, or that something failed.

use proofhouse_oatf::{Direction, Mode, Protocol};
use proofhouse_protocol::a2a::values::state_of;
use proofhouse_protocol::a2a::{A2aMethod, A2aTaskState, CARD_EVENT};
use proofhouse_protocol::ag_ui::{AgUiEventType, INPUT_EVENT};
use proofhouse_protocol::mcp::{McpMethod, McpNotification};
use proofhouse_protocol::text;
use proofhouse_wire::fnv;
use serde_json::Value;

/// How much of an error is told.
const MAX_TOLD_CHARS: usize = 200;

/// What a message of the protocol says about who sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Nothing: it is our own.
    Own,
    /// That the peer is there and knows the protocol.
    Contact,
    /// That the subject did something of its own accord.
    Act,
    /// That it called a tool, or said something to another agent, which has this hash: whoever does the same again may
    /// be a library that has waited too long.
    Call(u64),
    /// That it did what a client asked for, as a library does: it listed something, or handed out a resource.
    Served,
    /// That it said something to a client. Whether that is an answer is seen when all of it is there.
    Said,
    /// That what was asked for failed.
    Error(String),
}

/// What a message says about who sent it. Housekeeping, such as lists, prompts, completions, handshakes and polls, is
/// done by libraries and users, and not by models.
pub(crate) fn weigh(mode: &Mode, operation: &str, direction: Direction, content: &Value) -> Weight {
    match (mode.protocol(), mode.is_server(), direction) {
        (Protocol::Mcp, true, Direction::Request) => match McpMethod::parse(operation) {
            Some(McpMethod::ToolsCall) => call(&[content.get("name"), content.get("arguments")]),
            _ => Weight::Contact,
        },
        (Protocol::Mcp, ..) => match McpMethod::parse(operation) {
            Some(
                McpMethod::Initialize
                | McpMethod::ServerDiscover
                | McpMethod::Ping
                | McpMethod::RootsList,
            ) => Weight::Contact,
            None if operation.starts_with(McpNotification::PREFIX) => Weight::Contact,
            Some(McpMethod::ToolsCall) if content.get("isError") == Some(&Value::Bool(true)) => {
                Weight::Error(said(content).unwrap_or_else(|| "the call failed".to_owned()))
            }
            Some(McpMethod::ToolsCall) => said_or(content, act_or_error(content)),
            // Clients decline without asking anybody.
            Some(McpMethod::ElicitationCreate) if content.get("content").is_none() => {
                match act_or_error(content) {
                    Weight::Act => Weight::Contact,
                    other => other,
                }
            }
            Some(McpMethod::SamplingCreateMessage) => act_or_error(content),
            Some(McpMethod::ElicitationCreate) => act_or_error(content),
            _ => match act_or_error(content) {
                Weight::Act => Weight::Served,
                other => other,
            },
        },
        (Protocol::A2a, true, _) => match A2aMethod::parse(operation) {
            Some((A2aMethod::SendMessage | A2aMethod::StreamMessage, _)) => {
                call(&[content.pointer("/message/parts").or(Some(content))])
            }
            _ => Weight::Contact,
        },
        (Protocol::A2a, false, _) if operation == CARD_EVENT => Weight::Contact,
        (Protocol::A2a, false, _) => match state_of(content).map(A2aTaskState::parse) {
            // Nobody knows whether a task in a state that the protocol does not have is done.
            Some(
                None
                | Some(A2aTaskState::Submitted | A2aTaskState::Working | A2aTaskState::Unknown),
            ) => Weight::Contact,
            Some(Some(A2aTaskState::Failed)) => Weight::Error(told(content, "the task failed")),
            Some(Some(A2aTaskState::Canceled)) => {
                Weight::Error(told(content, "the task was cancelled"))
            }
            Some(Some(A2aTaskState::AuthRequired)) => {
                Weight::Error(told(content, "the task asks for credentials"))
            }
            None
            | Some(Some(
                A2aTaskState::InputRequired | A2aTaskState::Completed | A2aTaskState::Rejected,
            )) => said_or(content, act_or_error(content)),
        },
        // A frontend's inputs and results are its own.
        (Protocol::AgUi, _, Direction::Request) => Weight::Own,
        // What is no event is told by the driver.
        (Protocol::AgUi, _, _) if operation == INPUT_EVENT => Weight::Own,
        (Protocol::AgUi, _, _) => {
            let kind = content.get("type").and_then(Value::as_str);
            match kind.and_then(AgUiEventType::parse) {
                Some(AgUiEventType::RunError) => Weight::Error(told(content, "the run failed")),
                Some(AgUiEventType::TextMessageContent | AgUiEventType::TextMessageChunk) => {
                    match content.get("delta").and_then(Value::as_str) {
                        None | Some("") => Weight::Contact,
                        Some(_) => Weight::Said,
                    }
                }
                Some(
                    AgUiEventType::ToolCallStart
                    | AgUiEventType::ToolCallArgs
                    | AgUiEventType::ToolCallChunk,
                ) => Weight::Act,
                // Frameworks send the rest around what a model does, and back what they were given.
                _ => Weight::Contact,
            }
        }
        (_, _, Direction::Request | Direction::Response) => act_or_error(content),
    }
}

/// A call with these parts.
fn call(parts: &[Option<&Value>]) -> Weight {
    let texts = parts.iter().map(|part| part.map(Value::to_string));
    let bytes = texts.flat_map(|text| text.unwrap_or_default().into_bytes().into_iter().chain([0]));
    Weight::Call(fnv::hash_64(bytes))
}

/// An answer with a text in it says something.
fn said_or(content: &Value, otherwise: Weight) -> Weight {
    match otherwise {
        Weight::Act if said(content).is_some() => Weight::Said,
        // A task that is done and has nothing in it is no answer.
        Weight::Act if !text::has_answer_parts(content) => Weight::Served,
        other => other,
    }
}

/// The beginning of what an answer says, if it says anything.
fn said(content: &Value) -> Option<String> {
    let mut said = String::new();
    text::collect_answer(content, MAX_TOLD_CHARS, &mut said);
    let said = said.trim();
    (!said.is_empty()).then(|| said.chars().take(MAX_TOLD_CHARS).collect())
}

/// An error object of JSON-RPC is no answer.
fn act_or_error(content: &Value) -> Weight {
    let is_error = content.get("code").is_some_and(Value::is_i64)
        && content.get("message").is_some_and(Value::is_string);
    if is_error {
        Weight::Error(told(content, "an error"))
    } else {
        Weight::Act
    }
}

/// What an error says, cut to what people read.
fn told(content: &Value, otherwise: &str) -> String {
    let text = match content.get("message") {
        Some(Value::String(text)) => text.clone(),
        _ => content
            .pointer("/status/message/parts/0/text")
            .and_then(Value::as_str)
            .unwrap_or(otherwise)
            .to_owned(),
    };
    text.chars().take(MAX_TOLD_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn housekeeping_and_errors_are_no_acts() {
        let error = json!({"code": -32603, "message": "model down"});
        let failed = json!({"kind": "task", "status": {"state": "failed",
            "message": {"parts": [{"kind": "text", "text": "model down"}]}}});
        let down = || Weight::Error("model down".to_owned());
        for (mode, operation, direction, content, weight) in [
            (
                Mode::McpServer,
                "tools/list",
                Direction::Request,
                json!({}),
                Weight::Contact,
            ),
            (
                Mode::McpServer,
                "tools/call",
                Direction::Request,
                json!({"name": "weather"}),
                call(&[Some(&json!("weather")), None]),
            ),
            (
                Mode::McpServer,
                "sampling/createMessage",
                Direction::Response,
                error.clone(),
                down(),
            ),
            (
                Mode::McpServer,
                "elicitation/create",
                Direction::Response,
                json!({"action": "decline"}),
                Weight::Contact,
            ),
            (
                Mode::McpServer,
                "elicitation/create",
                Direction::Response,
                json!({"action": "accept", "content": {"name": "x"}}),
                Weight::Act,
            ),
            (
                Mode::McpServer,
                "sampling/createMessage",
                Direction::Response,
                json!({"role": "assistant", "content": {"type": "text", "text": "Hello."}}),
                Weight::Act,
            ),
            (
                Mode::McpServer,
                "prompts/get",
                Direction::Request,
                json!({"name": "x"}),
                Weight::Contact,
            ),
            (
                Mode::McpServer,
                "completion/complete",
                Direction::Request,
                json!({}),
                Weight::Contact,
            ),
            (
                Mode::McpServer,
                "resources/read",
                Direction::Request,
                json!({"uri": "memo://x"}),
                Weight::Contact,
            ),
            (
                Mode::McpServer,
                "ping",
                Direction::Request,
                json!({}),
                Weight::Contact,
            ),
            (
                Mode::McpServer,
                "roots/list",
                Direction::Response,
                json!({"roots": []}),
                Weight::Contact,
            ),
            (
                Mode::McpClient,
                "server/discover",
                Direction::Response,
                error.clone(),
                Weight::Contact,
            ),
            (
                Mode::McpClient,
                "tools/call",
                Direction::Response,
                json!({"content": []}),
                Weight::Served,
            ),
            (
                Mode::McpClient,
                "tools/call",
                Direction::Response,
                json!({"content": [{"type": "text", "text": "model down"}], "isError": true}),
                down(),
            ),
            (
                Mode::McpClient,
                "tools/call",
                Direction::Response,
                json!({"content": [{"type": "image", "data": "aGk="}]}),
                Weight::Act,
            ),
            (
                Mode::A2aServer,
                "tasks/get",
                Direction::Request,
                json!({}),
                Weight::Contact,
            ),
            (
                Mode::A2aServer,
                "message/send",
                Direction::Request,
                json!({"message": {"messageId": "1", "parts": [{"text": "x"}]}}),
                call(&[Some(&json!([{"text": "x"}]))]),
            ),
            (
                Mode::A2aClient,
                "message/send",
                Direction::Response,
                failed,
                down(),
            ),
            (
                Mode::A2aClient,
                "message/send",
                Direction::Response,
                error,
                down(),
            ),
            (
                Mode::A2aClient,
                "message/send",
                Direction::Response,
                json!({"kind": "message", "parts": []}),
                Weight::Served,
            ),
            (
                Mode::A2aClient,
                "message/send",
                Direction::Response,
                json!({"kind": "message", "parts": [{"kind": "data", "data": {"sum": 3}}]}),
                Weight::Act,
            ),
            (
                Mode::A2aClient,
                "message/send",
                Direction::Response,
                json!({"kind": "task", "status": {"state": "completed"}}),
                Weight::Served,
            ),
            (
                Mode::A2aClient,
                "message/send",
                Direction::Response,
                json!({"kind": "task", "status": {"state": "paused",
                    "message": {"parts": [{"kind": "text", "text": "Later."}]}}}),
                Weight::Contact,
            ),
            (
                Mode::A2aClient,
                "message/send",
                Direction::Response,
                json!({"kind": "task", "status": {"state": "canceled"}}),
                Weight::Error("the task was cancelled".to_owned()),
            ),
            (
                Mode::A2aClient,
                "message/send",
                Direction::Response,
                json!({"kind": "message", "parts": [{"kind": "text", "text": "Hello."}]}),
                Weight::Said,
            ),
            (
                Mode::McpClient,
                "tools/call",
                Direction::Response,
                json!({"content": [{"type": "text", "text": "Hello."}]}),
                Weight::Said,
            ),
            (
                Mode::AgUiClient,
                "text_message_content",
                Direction::Response,
                json!({"type": "TEXT_MESSAGE_CONTENT", "delta": "Hel"}),
                Weight::Said,
            ),
            (
                Mode::AgUiClient,
                "tool_call_result",
                Direction::Response,
                json!({"type": "TOOL_CALL_RESULT", "content": "sent back"}),
                Weight::Contact,
            ),
            (
                Mode::AgUiClient,
                "state_snapshot",
                Direction::Response,
                json!({"type": "STATE_SNAPSHOT", "snapshot": {}}),
                Weight::Contact,
            ),
            (
                Mode::AgUiClient,
                "state_delta",
                Direction::Response,
                json!({"type": "STATE_DELTA", "delta": []}),
                Weight::Contact,
            ),
            (
                Mode::AgUiClient,
                "custom",
                Direction::Response,
                json!({"type": "CUSTOM", "name": "x"}),
                Weight::Contact,
            ),
            (
                Mode::AgUiClient,
                "tool_call_start",
                Direction::Response,
                json!({"type": "TOOL_CALL_START", "toolCallName": "x"}),
                Weight::Act,
            ),
            (
                Mode::AgUiClient,
                "run_agent_input",
                Direction::Request,
                json!({}),
                Weight::Own,
            ),
            (
                Mode::AgUiClient,
                "run_error",
                Direction::Response,
                json!({"type": "RUN_ERROR", "message": "model down"}),
                down(),
            ),
            (
                Mode::AgUiClient,
                "run_finished",
                Direction::Response,
                json!({"type": "RUN_FINISHED"}),
                Weight::Contact,
            ),
            (
                Mode::AgUiClient,
                "text_message_content",
                Direction::Response,
                json!({"type": "TEXT_MESSAGE_CONTENT"}),
                Weight::Contact,
            ),
        ] {
            assert_eq!(
                weigh(&mode, operation, direction, &content),
                weight,
                "{mode} {operation}"
            );
        }
    }
}
