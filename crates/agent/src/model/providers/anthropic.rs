//! The dialect of Anthropic's messages API.

use std::sync::Arc;

use proofhouse_wire::HeaderMap;
use serde_json::{Value, json};

use super::super::{
    ChatMessage, ModelConfig, ModelOpenError, ModelRequest, ProviderRow, ProviderVariables,
    StopReason, Usage,
};
use super::assembly::{Assembly, AssemblyProblem};
use super::http_model::{HttpModel, base_url, headers};
use super::{ProviderDialect, ProviderRequest, count, items, schema, text};

/// The row of anthropic.
pub(super) const ANTHROPIC: ProviderRow = ProviderRow {
    prefix: "anthropic",
    rest: "MODEL",
    about: "Anthropic's messages API",
    needs_base_url: false,
    variables: Some(ProviderVariables {
        keys: &["ANTHROPIC_API_KEY"],
        base_url: "ANTHROPIC_BASE_URL",
        api_version: None,
    }),
    make: |name, config| Ok(Arc::new(anthropic(name, config)?)),
};

const USUAL_URL: &str = "https://api.anthropic.com";
const API_VERSION: &str = "2023-06-01";
/// The provider insists on a limit; this one suits a turn of an agent.
const DEFAULT_MAX_TOKENS: u32 = 4096;

struct Anthropic {
    url: String,
    headers: HeaderMap,
    model: String,
}

/// A model of Anthropic.
fn anthropic(model: &str, config: &ModelConfig) -> Result<HttpModel, ModelOpenError> {
    let version = config.api_version.as_deref().unwrap_or(API_VERSION);
    let dialect = Anthropic {
        url: format!("{}/v1/messages", base_url(config, USUAL_URL)?),
        headers: headers(config, "x-api-key", "", &[("anthropic-version", version)])?,
        model: model.to_owned(),
    };
    HttpModel::new("anthropic", model, config, Box::new(dialect))
}

impl ProviderDialect for Anthropic {
    fn write(&self, request: &ModelRequest, stream: bool) -> ProviderRequest {
        let options = &request.options;
        let mut body = json!({
            "model": self.model,
            "max_tokens": options.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            "messages": messages(&request.messages),
        });
        if let Some(system) = &request.system {
            body["system"] = system.as_str().into();
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": schema(&tool.parameters),
                })
            });
            body["tools"] = tools.collect();
        }
        if options.searches() {
            let search = json!({"type": "web_search_20250305", "name": "web_search"});
            match body["tools"].as_array_mut() {
                Some(tools) => tools.push(search),
                None => body["tools"] = json!([search]),
            }
        }
        if let Some(temperature) = options.temperature {
            body["temperature"] = temperature.into();
        }
        if stream {
            body["stream"] = true.into();
        }
        ProviderRequest {
            url: self.url.clone(),
            headers: self.headers.clone(),
            body,
        }
    }

    fn event(&self, event: &Value, reply: &mut Assembly<'_>) -> Result<(), AssemblyProblem> {
        let key = count(event, "index");
        match text(event, "type") {
            "message_start" => {
                let message = event.get("message").unwrap_or(&Value::Null);
                reply.model(text(message, "model"));
                usage(message, reply);
            }
            "content_block_start" => {
                let block = event.get("content_block").unwrap_or(&Value::Null);
                match text(block, "type") {
                    "text" => reply.text(text(block, "text"))?,
                    "tool_use" => reply.begin_call(key, text(block, "id"), text(block, "name"))?,
                    _ => {}
                }
            }
            "content_block_delta" => {
                let delta = event.get("delta").unwrap_or(&Value::Null);
                match text(delta, "type") {
                    "text_delta" => reply.text(text(delta, "text"))?,
                    "input_json_delta" => reply.call_arguments(key, text(delta, "partial_json"))?,
                    _ => {}
                }
            }
            "content_block_stop" => reply.close_call(key),
            "message_delta" => {
                usage(event, reply);
                stop(event.get("delta").unwrap_or(&Value::Null), reply);
            }
            "message_stop" => reply.end(),
            // Pings, and whatever is added to the protocol later.
            _ => {}
        }
        Ok(())
    }

    fn whole(&self, body: &Value, reply: &mut Assembly<'_>) -> Result<(), AssemblyProblem> {
        reply.model(text(body, "model"));
        usage(body, reply);
        for block in items(body, "content") {
            match text(block, "type") {
                "text" => reply.text(text(block, "text"))?,
                "tool_use" => {
                    let input = block.get("input").unwrap_or(&Value::Null);
                    reply.whole_call(text(block, "id"), text(block, "name"), input, None)?;
                }
                _ => {}
            }
        }
        stop(body, reply);
        Ok(())
    }
}

fn usage(said: &Value, reply: &mut Assembly<'_>) {
    if let Some(usage) = said.get("usage") {
        let cached = count(usage, "cache_creation_input_tokens")
            .saturating_add(count(usage, "cache_read_input_tokens"));
        reply.usage(Usage {
            prompt: count(usage, "input_tokens").saturating_add(cached),
            completion: count(usage, "output_tokens"),
        });
    }
}

fn stop(said: &Value, reply: &mut Assembly<'_>) {
    let word = text(said, "stop_reason");
    let reason = match word {
        "" => return,
        "end_turn" | "stop_sequence" => Some(StopReason::End),
        "tool_use" => Some(StopReason::ToolCalls),
        "max_tokens" | "model_context_window_exceeded" => Some(StopReason::MaxTokens),
        "refusal" => Some(StopReason::Refused),
        _ => None,
    };
    reply.stop(reason, word);
}

/// Messages of the same role are one: results of several calls must stand in one message.
fn messages(messages: &[ChatMessage]) -> Vec<Value> {
    let mut written: Vec<Value> = Vec::new();
    for message in messages {
        let (role, blocks) = match message {
            ChatMessage::User { text } => ("user", vec![json!({"type": "text", "text": text})]),
            ChatMessage::Assistant { text, calls } => {
                // Blocks of no text are rejected.
                let said = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
                let calls = calls.iter().map(|call| {
                    json!({
                        "type": "tool_use",
                        "id": call.id,
                        "name": call.name,
                        "input": call.arguments.to_object(),
                    })
                });
                ("assistant", said.into_iter().chain(calls).collect())
            }
            ChatMessage::Tool {
                call_id,
                content,
                is_error,
                ..
            } => {
                let result = json!({
                    "type": "tool_result",
                    "tool_use_id": call_id,
                    "content": content,
                    "is_error": is_error,
                });
                ("user", vec![result])
            }
        };
        if blocks.is_empty() {
            continue;
        }
        match written.last_mut() {
            Some(last) if last["role"] == role => {
                if let Some(content) = last["content"].as_array_mut() {
                    content.extend(blocks);
                }
            }
            _ => written.push(json!({"role": role, "content": blocks})),
        }
    }
    written
}
