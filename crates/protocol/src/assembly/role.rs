//! Which messages are pieces of a longer one, and which end or begin one.

use serde_json::Value;

use super::join;
use crate::a2a::{A2aMethod, A2aTaskState, ARTIFACT_EVENT, STATUS_EVENT};
use crate::ag_ui::{AgUiChunk, AgUiEventType, THINKING_ALIASES};
use crate::mcp::{McpMethod, McpNotification};

/// What is known of a message that was seen on the wire.
#[derive(Debug, Clone, Copy)]
pub struct WireMessage<'a> {
    /// `mcp`, `a2a`, `ag_ui` or another.
    pub protocol: &'a str,
    /// The operation or event, by the name that traces have for it.
    pub operation: &'a str,
    /// Whether it is known to be a request.
    pub is_request: bool,
    /// The content root.
    pub content: &'a Value,
}

/// What a message has to do with texts that come in pieces.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamRole<'a> {
    /// It is a piece; only the whole that it belongs to is judged.
    Piece(StreamPiece<'a>),
    /// It is judged by itself, and others end or begin with it.
    Mark(StreamMark<'a>),
    /// It is judged by itself, with this content: its own, in which texts that were cut are whole.
    Joined(Value),
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamPiece<'a> {
    /// The kind of stream; its pieces may have older names on the wire.
    pub(super) stream: &'static str,
    /// What the message belongs to, such as a task; empty where there is nothing.
    pub(super) group: &'a str,
    /// Which message it is a piece of; the one that grew last where it does not say.
    pub(super) id: Option<String>,
    /// Where the text stands.
    pub(super) form: PieceForm,
    /// Whether what came before under this id is over.
    pub(super) begins: bool,
    /// Whether the message ends with it.
    pub(super) ends: bool,
    /// Whether all messages of the group end with it.
    pub(super) ends_group: bool,
}

/// Where the text of a piece stands, and how pieces are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceForm {
    /// A text in this member, which grows.
    Text(&'static str),
    /// A list in this member, which grows.
    List(&'static str),
    /// A list of parts at this path; a text at the end of one piece goes on at the beginning of the next.
    Parts(&'static [&'static str]),
}

impl PieceForm {
    /// The members that lead to what grows.
    pub(super) fn path(&self) -> &[&'static str] {
        match self {
            Self::Text(member) | Self::List(member) => std::slice::from_ref(member),
            Self::Parts(path) => path,
        }
    }
}

/// What a message says about others that come in pieces.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamMark<'a> {
    /// The message with this id, in one of these streams, is over.
    #[doc(hidden)]
    End {
        /// The streams.
        streams: [&'static str; 2],
        /// The id; the one that grew last where it does not say.
        id: Option<String>,
    },
    /// A new message with this id begins in the first of the streams; the second may have begun before.
    #[doc(hidden)]
    Begin {
        /// The streams.
        streams: [&'static str; 2],
        /// The id.
        id: Option<String>,
    },
    /// All messages of a group are over.
    #[doc(hidden)]
    EndGroup(&'a str),
    /// All messages are over.
    #[doc(hidden)]
    EndAll,
    /// Ids may be used again for other messages.
    #[doc(hidden)]
    BeginAll,
}

impl<'a> StreamRole<'a> {
    /// The role of a message; `None` for one that has nothing to do with streams, as nearly all have.
    #[must_use]
    pub fn of(message: &WireMessage<'a>) -> Option<Self> {
        match message.protocol {
            "mcp" => mcp(message),
            "a2a" => a2a(message),
            "ag_ui" => ag_ui(message),
            _ => None,
        }
    }
}

fn ag_ui<'a>(message: &WireMessage<'a>) -> Option<StreamRole<'a>> {
    const FAMILIES: [AgUiChunk; 3] = [AgUiChunk::Text, AgUiChunk::Tool, AgUiChunk::Reasoning];
    let content = message.content;
    let aliases = THINKING_ALIASES.iter();
    let newer = aliases
        .clone()
        .find(|(older, _)| *older == message.operation);
    let operation = newer.map_or(message.operation, |(_, newer)| newer);
    for family in FAMILIES {
        let streams = [family.content().operation(), family.chunk().operation()];
        let id = || id(content, family.id_member());
        if let Some(stream) = streams.into_iter().find(|stream| *stream == operation) {
            return growing(content, stream, PieceForm::Text("delta"), id());
        }
        if operation == family.end().operation() {
            return Some(StreamRole::Mark(StreamMark::End { streams, id: id() }));
        }
        // A text that begins again goes on, which is how frontends show it; a call is another call.
        if operation == family.start().operation() {
            let mark = StreamMark::Begin { streams, id: id() };
            return (family == AgUiChunk::Tool).then_some(StreamRole::Mark(mark));
        }
    }
    let is = |event: AgUiEventType| event.operation() == operation;
    let state = AgUiEventType::StateDelta.operation();
    let activity = AgUiEventType::ActivityDelta.operation();
    let ends = |stream, id| {
        let streams = [stream, stream];
        Some(StreamRole::Mark(StreamMark::End { streams, id }))
    };
    if is(AgUiEventType::StateDelta) {
        return growing(content, state, PieceForm::List("delta"), None);
    }
    if is(AgUiEventType::ActivityDelta) {
        let id = id(content, "messageId");
        return growing(content, activity, PieceForm::List("patch"), id);
    }
    if is(AgUiEventType::StateSnapshot) {
        return ends(state, None);
    }
    if is(AgUiEventType::ActivitySnapshot) {
        return ends(activity, id(content, "messageId"));
    }
    if is(AgUiEventType::RunFinished) || is(AgUiEventType::RunError) {
        return Some(StreamRole::Mark(StreamMark::EndAll));
    }
    is(AgUiEventType::RunStarted).then_some(StreamRole::Mark(StreamMark::BeginAll))
}

fn a2a<'a>(message: &WireMessage<'a>) -> Option<StreamRole<'a>> {
    const ARTIFACT: &[&str] = &["artifact", "parts"];
    const STATUS: &[&str] = &["status", "message", "parts"];
    const MESSAGE: &[&str] = &["parts"];
    let streams = [
        A2aMethod::StreamMessage.event(),
        A2aMethod::ResubscribeTask.event(),
        STATUS_EVENT,
        ARTIFACT_EVENT,
    ];
    let stream = streams
        .into_iter()
        .find(|stream| *stream == message.operation)?;
    if message.is_request {
        return None;
    }
    let content = message.content;
    let text = |of: &'a Value, key: &str| of.get(key).and_then(Value::as_str).unwrap_or_default();
    let flag = |key: &str| content.get(key).and_then(Value::as_bool) == Some(true);
    let parts = |path: &[&str]| {
        let at = path.iter().try_fold(content, |at, key| at.get(key));
        at.is_some_and(Value::is_array)
    };
    let piece = |path: &'static [&'static str], group, id| StreamPiece {
        stream,
        group,
        id,
        form: PieceForm::Parts(path),
        begins: false,
        ends: false,
        ends_group: false,
    };
    if let Some(artifact) = content.get("artifact").filter(|_| parts(ARTIFACT)) {
        let artifact = id(artifact, "artifactId").unwrap_or_default();
        return Some(StreamRole::Piece(StreamPiece {
            begins: !flag("append"),
            ends: flag("lastChunk"),
            ..piece(ARTIFACT, text(content, "taskId"), Some(artifact))
        }));
    }
    if let Some(status) = content.get("status").filter(|status| status.is_object()) {
        let state = A2aTaskState::parse(text(status, "state"));
        let is_last = flag("final") || state.is_some_and(A2aTaskState::is_terminal);
        // A task names itself by `id`, an update names its task.
        let task = match text(content, "taskId") {
            "" => text(content, "id"),
            task => task,
        };
        let said = status
            .get("message")
            .and_then(|message| id(message, "messageId"));
        let is_update = content.get("taskId").is_some() && parts(STATUS);
        if let Some(said) = said.filter(|_| is_update) {
            return Some(StreamRole::Piece(StreamPiece {
                ends_group: is_last,
                ..piece(STATUS, task, Some(said))
            }));
        }
        return is_last.then_some(StreamRole::Mark(StreamMark::EndGroup(task)));
    }
    let said = id(content, "messageId").filter(|_| parts(MESSAGE))?;
    Some(StreamRole::Piece(piece(MESSAGE, "", Some(said))))
}

fn mcp<'a>(message: &WireMessage<'a>) -> Option<StreamRole<'a>> {
    let content = message.content;
    if message.operation == McpNotification::Progress.as_str() {
        let progress = content.get("progress").and_then(Value::as_f64);
        let total = content.get("total").and_then(Value::as_f64);
        let is_last = progress
            .zip(total)
            .is_some_and(|(progress, total)| progress >= total);
        let token = id(content, "progressToken");
        let form = PieceForm::Text("message");
        let role = growing(content, McpNotification::Progress.as_str(), form, token);
        return role.map(|role| match role {
            StreamRole::Piece(piece) => StreamRole::Piece(StreamPiece {
                ends: is_last,
                ..piece
            }),
            other @ (StreamRole::Mark(_) | StreamRole::Joined(_)) => other,
        });
    }
    if message.operation == McpMethod::SamplingCreateMessage.as_str() {
        return join::blocks(content).map(StreamRole::Joined);
    }
    None
}

/// A piece whose member can grow; what has something else there is judged by itself.
fn growing<'a>(
    content: &Value,
    stream: &'static str,
    form: PieceForm,
    id: Option<String>,
) -> Option<StreamRole<'a>> {
    let grows = match form {
        PieceForm::Text(member) => content.get(member).is_some_and(Value::is_string),
        PieceForm::List(member) => content.get(member).is_some_and(Value::is_array),
        PieceForm::Parts(_) => false,
    };
    grows.then_some(StreamRole::Piece(StreamPiece {
        stream,
        group: "",
        id,
        form,
        begins: false,
        ends: false,
        ends_group: false,
    }))
}

/// The id in a member, whatever its type.
fn id(content: &Value, member: &str) -> Option<String> {
    match content.get(member)? {
        Value::Null => None,
        Value::String(id) if id.is_empty() => None,
        Value::String(id) => Some(id.clone()),
        other => Some(other.to_string()),
    }
}
