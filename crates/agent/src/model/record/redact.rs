//! Takes secrets out of everything that is written down, string by string.

use serde_json::Value;

use super::super::{
    Arguments, ChatMessage, ModelError, ModelEvent, ModelReply, ModelRequest, ToolCall, ToolSpec,
};
use super::RedactText;

/// A request without secrets. What a replay asks goes through it too, so that it is still found.
pub(super) fn request(request: &ModelRequest, redact: &RedactText) -> ModelRequest {
    ModelRequest {
        system: request.system.as_deref().map(|text| redact(text)),
        messages: request
            .messages
            .iter()
            .map(|item| message(item, redact))
            .collect(),
        tools: request
            .tools
            .iter()
            .map(|item| tool(item, redact))
            .collect(),
        options: request.options.clone(),
    }
}

/// A result without secrets.
pub(super) fn result(
    result: &Result<ModelReply, ModelError>,
    redact: &RedactText,
) -> Result<ModelReply, ModelError> {
    match result {
        Ok(whole) => Ok(reply(whole, redact)),
        Err(error) => Err(ModelError {
            kind: error.kind,
            message: redact(&error.message),
            partial: error
                .partial
                .as_ref()
                .map(|partial| Box::new(reply(partial, redact))),
            retry_after: error.retry_after,
        }),
    }
}

/// Events without secrets. One may be spread over several pieces of text: those are joined then.
pub(super) fn events(events: Vec<ModelEvent>, redact: &RedactText) -> Vec<ModelEvent> {
    let mut written = Vec::with_capacity(events.len());
    let mut run = Vec::new();
    for event in events {
        match event {
            ModelEvent::Text(piece) => run.push(piece),
            ModelEvent::Call(item) => {
                close_run(&mut run, &mut written, redact);
                written.push(ModelEvent::Call(call(&item, redact)));
            }
        }
    }
    close_run(&mut run, &mut written, redact);
    written
}

fn close_run(run: &mut Vec<String>, written: &mut Vec<ModelEvent>, redact: &RedactText) {
    let whole = run.concat();
    let shown = redact(&whole);
    if shown == whole {
        written.extend(run.drain(..).map(ModelEvent::Text));
    } else {
        run.clear();
        written.push(ModelEvent::Text(shown));
    }
}

fn message(message: &ChatMessage, redact: &RedactText) -> ChatMessage {
    match message {
        ChatMessage::User { text } => ChatMessage::User { text: redact(text) },
        ChatMessage::Assistant { text, calls } => ChatMessage::Assistant {
            text: redact(text),
            calls: calls.iter().map(|item| call(item, redact)).collect(),
        },
        ChatMessage::Tool {
            call_id,
            name,
            content,
            is_error,
        } => ChatMessage::Tool {
            call_id: redact(call_id),
            name: redact(name),
            content: redact(content),
            is_error: *is_error,
        },
    }
}

fn tool(tool: &ToolSpec, redact: &RedactText) -> ToolSpec {
    ToolSpec {
        name: redact(&tool.name),
        description: redact(&tool.description),
        parameters: value(&tool.parameters, redact),
    }
}

fn reply(reply: &ModelReply, redact: &RedactText) -> ModelReply {
    ModelReply {
        text: redact(&reply.text),
        calls: reply.calls.iter().map(|item| call(item, redact)).collect(),
        usage: reply.usage,
        stop: reply.stop,
        model: redact(&reply.model),
    }
}

fn call(call: &ToolCall, redact: &RedactText) -> ToolCall {
    let arguments = match &call.arguments {
        Arguments::Object(object) => Arguments::Object(
            object
                .iter()
                .map(|(key, item)| (redact(key), value(item, redact)))
                .collect(),
        ),
        Arguments::Malformed { text, reason } => Arguments::Malformed {
            text: redact(text),
            reason: redact(reason),
        },
    };
    ToolCall {
        id: redact(&call.id),
        name: redact(&call.name),
        arguments,
        opaque: call.opaque.as_deref().map(|text| redact(text)),
    }
}

/// Arguments and schemas were parsed, so their depth is bounded.
fn value(json: &Value, redact: &RedactText) -> Value {
    match json {
        Value::String(text) => Value::String(redact(text)),
        Value::Array(list) => list.iter().map(|item| value(item, redact)).collect(),
        Value::Object(object) => object
            .iter()
            .map(|(key, item)| (redact(key), value(item, redact)))
            .collect(),
        plain => plain.clone(),
    }
}
