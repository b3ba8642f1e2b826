//! Writes a reply as OpenAI's chat completions have it: whole, or as events.

use proofhouse_wire::sse::SseEvent;
use serde_json::{Value, json};

use super::super::fresh_id;
use crate::model::{ModelEvent, ModelReply, StopReason, ToolCall};

/// What every piece of one reply has in common.
struct Head {
    id: String,
    created: i64,
    model: String,
}

impl Head {
    fn new(reply: &ModelReply) -> Self {
        Self {
            id: format!("chatcmpl-{}", fresh_id()),
            created: jiff::Timestamp::now().as_second(),
            model: reply.model.clone(),
        }
    }

    fn object(&self, kind: &str, choices: &Value) -> Value {
        json!({
            "id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices,
        })
    }

    fn event(&self, delta: &Value, finish: Option<&str>) -> Value {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        self.object("chat.completion.chunk", &json!([choice]))
    }
}

/// The whole reply.
pub(super) fn whole(reply: &ModelReply) -> String {
    let content = if reply.text.is_empty() && !reply.calls.is_empty() {
        Value::Null
    } else {
        reply.text.as_str().into()
    };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if !reply.calls.is_empty() {
        message["tool_calls"] = reply.calls.iter().map(call).collect();
    }
    let choice = json!({
        "index": 0, "message": message, "logprobs": null, "finish_reason": finish(reply.stop),
    });
    let mut object = Head::new(reply).object("chat.completion", &json!([choice]));
    object["usage"] = usage(reply);
    object.to_string()
}

/// The reply as the events it came in, and the tokens at the end where they are asked for.
pub(super) fn events(reply: &ModelReply, came: &[ModelEvent], tell_usage: bool) -> String {
    let head = Head::new(reply);
    let mut written = String::new();
    let mut write = |event: &Value| written.push_str(&SseEvent::data(event.to_string()).encode());
    write(&head.event(&json!({"role": "assistant", "content": ""}), None));
    let mut calls = 0;
    for event in came {
        let delta = match event {
            ModelEvent::Text(text) => json!({"content": text}),
            ModelEvent::Call(made) => {
                let mut call = call(made);
                call["index"] = calls.into();
                calls += 1;
                json!({"tool_calls": [call]})
            }
        };
        write(&head.event(&delta, None));
    }
    write(&head.event(&json!({}), Some(finish(reply.stop))));
    if tell_usage {
        let mut last = head.object("chat.completion.chunk", &json!([]));
        last["usage"] = usage(reply);
        write(&last);
    }
    written.push_str("data: [DONE]\n\n");
    written
}

fn call(call: &ToolCall) -> Value {
    json!({"id": call.id, "type": "function", "function": {
        "name": call.name, "arguments": call.arguments.to_text(),
    }})
}

fn finish(stop: StopReason) -> &'static str {
    match stop {
        StopReason::End => "stop",
        StopReason::ToolCalls | StopReason::CallLimit => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::Refused => "content_filter",
    }
}

fn usage(reply: &ModelReply) -> Value {
    let usage = reply.usage;
    json!({
        "prompt_tokens": usage.prompt, "completion_tokens": usage.completion,
        "total_tokens": usage.prompt.saturating_add(usage.completion),
    })
}
