//! What a server serves: a list of tools that can be called, once per session.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use proofhouse_protocol::mcp::{McpLogLevel, McpNotification};
use proofhouse_protocol::rpc;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};

/// Messages of one call that wait for a slow reader. More are left out: they only tell how far it is.
const MAX_WAITING_NOTES: usize = 64;

/// A tool as a client sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct McpTool {
    /// Its name, unlike that of any other.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub input_schema: Value,
}

impl McpTool {
    pub(super) fn to_json(&self) -> Value {
        json!({"name": self.name, "description": self.description, "inputSchema": self.input_schema})
    }
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpAnswer {
    /// What the model reads: content blocks.
    pub content: Vec<Value>,
    /// The same for programs; an object.
    pub structured: Option<Map<String, Value>>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// What else is to be known.
    pub meta: Map<String, Value>,
}

impl McpAnswer {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![json!({"type": "text", "text": text.into()})],
            ..Self::default()
        }
    }

    /// A failure that the model is told.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    pub(super) fn into_json(self) -> Value {
        let mut result = json!({"content": self.content});
        if let Some(structured) = self.structured {
            result["structuredContent"] = Value::Object(structured);
        }
        if self.is_error {
            result["isError"] = true.into();
        }
        if !self.meta.is_empty() {
            result["_meta"] = Value::Object(self.meta);
        }
        result
    }
}

/// There is no tool of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{name}`")]
pub struct UnknownTool {
    /// The name.
    pub name: String,
}

/// One call of a tool.
#[derive(Debug)]
pub struct McpCall {
    /// The tool.
    pub name: String,
    /// Its arguments, not checked.
    pub arguments: Map<String, Value>,
    /// Ends it early.
    pub cancel: CancellationToken,
    /// Tells the client how far it is.
    pub sink: ProgressSink,
}

/// The tools of one session. Dropped after [`McpTools::close`].
pub trait McpTools: Send + Sync {
    /// The tools there are now.
    fn list(&self, cancel: CancellationToken) -> BoxFuture<'_, Arc<Vec<McpTool>>>;

    /// A tool as it was listed last, without asking anybody.
    fn listed(&self, name: &str) -> Option<McpTool>;

    /// Calls one.
    fn call(&self, call: McpCall) -> BoxFuture<'_, Result<McpAnswer, UnknownTool>>;

    /// A number that changes when the list does.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Ends calls that are under way and leaves nothing running.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Whom tools are opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolScope {
    /// One client, from its first to its last message.
    Session,
    /// Everyone who speaks the modern protocol, which knows no sessions.
    Shared,
}

/// Opens tools for each session.
pub trait McpBackend: Send + Sync {
    /// Opens the tools of a session. Does nothing that takes time.
    fn open(&self, scope: ToolScope) -> Arc<dyn McpTools>;
}

/// Tells a client how far its call is.
#[derive(Debug)]
pub struct ProgressSink {
    notes: mpsc::Sender<Value>,
    /// What the client calls its progress, if it wants to hear of it.
    token: Option<Value>,
    /// The least urgent messages that it wants to hear, if any.
    level: Option<McpLogLevel>,
    last: Mutex<f64>,
}

impl ProgressSink {
    pub(super) fn new(
        token: Option<Value>,
        level: Option<McpLogLevel>,
    ) -> (Self, mpsc::Receiver<Value>) {
        let (notes, heard) = mpsc::channel(MAX_WAITING_NOTES);
        let sink = Self {
            notes,
            token,
            level,
            last: Mutex::new(f64::NEG_INFINITY),
        };
        (sink, heard)
    }

    /// Says how far it is, of how much if that is known. Steps back are not told.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = &self.token else { return };
        let mut last = lock(&self.last);
        if !progress.is_finite() || progress <= *last {
            return;
        }
        *last = progress;
        let mut params = json!({"progressToken": token, "progress": progress});
        if let Some(total) = total {
            params["total"] = total.into();
        }
        if let Some(message) = message {
            params["message"] = message.into();
        }
        self.say(McpNotification::Progress, &params);
    }

    /// Logs something, if the client wants to hear of what is as urgent.
    pub fn log(&self, level: McpLogLevel, logger: &str, data: &Value) {
        if self.level.is_some_and(|least| level >= least) {
            let params = json!({"level": level.as_str(), "logger": logger, "data": data});
            self.say(McpNotification::Message, &params);
        }
    }

    fn say(&self, notification: McpNotification, params: &Value) {
        let note = rpc::notification(notification.as_str(), Some(params));
        let _ = self.notes.try_send(note);
    }
}
