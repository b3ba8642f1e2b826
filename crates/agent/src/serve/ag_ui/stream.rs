//! The events of one run as they stand on the wire: in legal order, everything opened closes.

use proofhouse_protocol::ag_ui::AgUiEventType;
use proofhouse_wire::server::{ReaderGone, StreamWriter};
use proofhouse_wire::sse::SseEvent;
use serde_json::{Map, Value, json};

use super::super::texts::fresh_id;

/// How a run ended.
#[derive(Debug)]
pub(super) enum RunEnd {
    Finished {
        outcome: Value,
        result: Option<Value>,
    },
    Error {
        message: String,
        code: String,
    },
}

impl RunEnd {
    /// An end without a result.
    pub(super) fn finished(outcome: Value) -> Self {
        Self::Finished {
            outcome,
            result: None,
        }
    }

    pub(super) fn error(message: impl Into<String>, code: &str) -> Self {
        Self::Error {
            message: message.into(),
            code: code.to_owned(),
        }
    }
}

/// Writes the events of one run.
#[derive(Debug)]
pub(super) struct AgUiEventStream {
    writer: StreamWriter,
    thread: String,
    run: String,
    /// The message that the model's reply at the moment is part of.
    reply: String,
    /// Whether text of it was begun and not ended.
    is_open: bool,
    /// Whether the model has said all of it; calls may still come.
    is_said: bool,
}

impl AgUiEventStream {
    pub(super) fn new(writer: StreamWriter, thread: &str, run: &str) -> Self {
        Self {
            writer,
            thread: thread.to_owned(),
            run: run.to_owned(),
            reply: fresh_id(),
            is_open: false,
            is_said: false,
        }
    }

    /// The id of the message that is being made.
    pub(super) fn reply(&self) -> &str {
        &self.reply
    }

    pub(super) async fn closed(&self) {
        self.writer.closed().await;
    }

    /// Shows that the stream is there.
    pub(super) fn keep_alive(&self) {
        let _ = self.writer.try_write(": waiting\n\n");
    }

    async fn write(&self, event: &Value) -> Result<(), ReaderGone> {
        let text = SseEvent::data(event.to_string()).encode();
        self.writer.write(text).await
    }

    pub(super) async fn started(&self) -> Result<(), ReaderGone> {
        self.write(&json!({"type": AgUiEventType::RunStarted.as_str(), "threadId": self.thread, "runId": self.run}))
            .await
    }

    /// A piece of what the agent says. Empty pieces are not allowed on the wire.
    pub(super) async fn text(&mut self, delta: &str) -> Result<(), ReaderGone> {
        if delta.is_empty() {
            return Ok(());
        }
        self.begin_reply();
        if !self.is_open {
            self.is_open = true;
            self.write(&json!({
                "type": AgUiEventType::TextMessageStart.as_str(), "messageId": self.reply, "role": "assistant",
            }))
            .await?;
        }
        self.write(&json!({
            "type": AgUiEventType::TextMessageContent.as_str(), "messageId": self.reply, "delta": delta,
        }))
        .await
    }

    /// Makes what the model says next another message, if it has said all of the last.
    pub(super) fn begin_reply(&mut self) {
        if std::mem::take(&mut self.is_said) {
            self.reply = fresh_id();
        }
    }

    /// The model has said all of a reply, with or without text.
    pub(super) async fn said(&mut self) -> Result<(), ReaderGone> {
        self.begin_reply();
        self.is_said = true;
        self.text_end().await
    }

    /// The end of the text, if there was any.
    async fn text_end(&mut self) -> Result<(), ReaderGone> {
        if std::mem::take(&mut self.is_open) {
            self.write(
                &json!({"type": AgUiEventType::TextMessageEnd.as_str(), "messageId": self.reply}),
            )
            .await?;
        }
        Ok(())
    }

    /// A call, whole: its arguments are known when it is made.
    pub(super) async fn call(
        &mut self,
        id: &str,
        function: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(), ReaderGone> {
        self.text_end().await?;
        self.write(&json!({
            "type": AgUiEventType::ToolCallStart.as_str(), "toolCallId": id, "toolCallName": function,
            "parentMessageId": self.reply,
        }))
        .await?;
        let arguments = Value::Object(arguments.clone()).to_string();
        self.write(&json!({"type": AgUiEventType::ToolCallArgs.as_str(), "toolCallId": id, "delta": arguments}))
            .await?;
        self.write(&json!({"type": AgUiEventType::ToolCallEnd.as_str(), "toolCallId": id}))
            .await
    }

    pub(super) async fn result(
        &mut self,
        message: &str,
        call: &str,
        content: &str,
    ) -> Result<(), ReaderGone> {
        self.write(&json!({
            "type": AgUiEventType::ToolCallResult.as_str(), "messageId": message, "toolCallId": call,
            "content": content, "role": "tool",
        }))
        .await
    }

    /// Writes how the run ended, and ends the stream.
    pub(super) async fn end(mut self, end: RunEnd) -> Result<(), ReaderGone> {
        self.text_end().await?;
        let event = match end {
            RunEnd::Finished { outcome, result } => {
                let mut event = json!({
                    "type": AgUiEventType::RunFinished.as_str(), "threadId": self.thread, "runId": self.run, "outcome": outcome,
                });
                if let Some(result) = result {
                    event["result"] = result;
                }
                event
            }
            RunEnd::Error { message, code } => {
                json!({"type": AgUiEventType::RunError.as_str(), "message": message, "code": code})
            }
        };
        self.write(&event).await
    }
}
