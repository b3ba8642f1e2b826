//! The dialect of OpenAI's chat completions, which Azure, vLLM, Ollama, llama.cpp and gateways speak too.

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

/// The row of openai.
pub(super) const OPENAI: ProviderRow = ProviderRow {
    prefix: "openai",
    rest: "MODEL",
    about: "OpenAI, or anything that speaks its chat completions, with a base URL of its own",
    needs_base_url: false,
    variables: Some(ProviderVariables {
        keys: &["OPENAI_API_KEY"],
        base_url: "OPENAI_BASE_URL",
        api_version: None,
    }),
    make: |name, config| Ok(Arc::new(openai(name, config)?)),
};

/// The row of azure.
pub(super) const AZURE: ProviderRow = ProviderRow {
    prefix: "azure",
    rest: "DEPLOYMENT",
    about: "a deployment of Azure OpenAI; the base URL is that of the resource",
    needs_base_url: true,
    variables: Some(ProviderVariables {
        keys: &["AZURE_OPENAI_API_KEY"],
        base_url: "AZURE_OPENAI_ENDPOINT",
        api_version: Some("OPENAI_API_VERSION"),
    }),
    make: |name, config| Ok(Arc::new(azure(name, config)?)),
};

const USUAL_URL: &str = "https://api.openai.com/v1";
/// The version of Azure's interface that is asked for unless the caller says another.
const AZURE_VERSION: &str = "2024-10-21";

struct OpenAi {
    url: String,
    headers: HeaderMap,
    /// Azure takes it from the URL.
    model: Option<String>,
    /// OpenAI and Azure call the limit differently from those who copied them.
    max_tokens: &'static str,
}

/// A model of OpenAI, or of anybody who speaks its language.
fn openai(model: &str, config: &ModelConfig) -> Result<HttpModel, ModelOpenError> {
    let dialect = OpenAi {
        url: format!("{}/chat/completions", base_url(config, USUAL_URL)?),
        headers: headers(config, "authorization", "Bearer ", &[])?,
        model: Some(model.to_owned()),
        max_tokens: match config.base_url {
            None => "max_completion_tokens",
            Some(_) => "max_tokens",
        },
    };
    HttpModel::new("openai", model, config, Box::new(dialect))
}

/// A deployment of Azure OpenAI.
fn azure(deployment: &str, config: &ModelConfig) -> Result<HttpModel, ModelOpenError> {
    let base = base_url(config, "")?;
    let version = config.api_version.as_deref().unwrap_or(AZURE_VERSION);
    let mut url = url::Url::parse(&base)
        .map_err(|error| ModelOpenError::Config(format!("the base URL is no URL: {error}")))?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty()
            .extend(["openai", "deployments", deployment, "chat", "completions"]);
    }
    url.query_pairs_mut().append_pair("api-version", version);
    let dialect = OpenAi {
        url: url.into(),
        headers: headers(config, "api-key", "", &[])?,
        model: None,
        max_tokens: "max_completion_tokens",
    };
    HttpModel::new("azure", deployment, config, Box::new(dialect))
}

impl ProviderDialect for OpenAi {
    fn write(&self, request: &ModelRequest, stream: bool) -> ProviderRequest {
        let system = request
            .system
            .iter()
            .map(|text| json!({"role": "system", "content": text}));
        let messages: Vec<Value> = system.chain(request.messages.iter().map(message)).collect();
        let mut body = json!({"messages": messages});
        if let Some(model) = &self.model {
            body["model"] = model.as_str().into();
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": schema(&tool.parameters),
                }})
            });
            body["tools"] = tools.collect();
        }
        let options = &request.options;
        if options.searches() {
            body["web_search_options"] = json!({});
        }
        if let Some(temperature) = options.temperature {
            body["temperature"] = temperature.into();
        }
        if let Some(seed) = options.seed {
            body["seed"] = seed.into();
        }
        if let Some(most) = options.max_tokens {
            body[self.max_tokens] = most.into();
        }
        if stream {
            body["stream"] = true.into();
            body["stream_options"] = json!({"include_usage": true});
        }
        ProviderRequest {
            url: self.url.clone(),
            headers: self.headers.clone(),
            body,
        }
    }

    fn event(&self, event: &Value, reply: &mut Assembly<'_>) -> Result<(), AssemblyProblem> {
        reply.model(text(event, "model"));
        usage(event, reply);
        let Some(choice) = items(event, "choices").first() else {
            return Ok(());
        };
        let delta = choice.get("delta").unwrap_or(&Value::Null);
        reply.text(text(delta, "content"))?;
        reply.text(text(delta, "refusal"))?;
        for (place, piece) in items(delta, "tool_calls").iter().enumerate() {
            let key = piece.get("index").and_then(Value::as_u64);
            call_piece(key.unwrap_or(place as u64), piece, reply)?;
        }
        stop(choice, reply);
        Ok(())
    }

    fn whole(&self, body: &Value, reply: &mut Assembly<'_>) -> Result<(), AssemblyProblem> {
        reply.model(text(body, "model"));
        usage(body, reply);
        let Some(choice) = items(body, "choices").first() else {
            return Ok(());
        };
        let message = choice.get("message").unwrap_or(&Value::Null);
        reply.text(text(message, "content"))?;
        reply.text(text(message, "refusal"))?;
        for call in items(message, "tool_calls") {
            let function = call.get("function").unwrap_or(&Value::Null);
            let arguments = function.get("arguments").unwrap_or(&Value::Null);
            reply.whole_call(text(call, "id"), text(function, "name"), arguments, None)?;
        }
        stop(choice, reply);
        Ok(())
    }
}

/// A piece of a call. Some servers give every call the same index, so another id begins another call.
fn call_piece(key: u64, piece: &Value, reply: &mut Assembly<'_>) -> Result<(), AssemblyProblem> {
    let function = piece.get("function").unwrap_or(&Value::Null);
    let (id, name) = (text(piece, "id"), text(function, "name"));
    match reply.open_call(key) {
        Some((open, _)) if id.is_empty() || open.is_empty() || open == id => {
            reply.name_call(key, id, name);
        }
        _ => reply.begin_call(key, id, name)?,
    }
    match function.get("arguments") {
        Some(Value::String(text)) => reply.call_arguments(key, text),
        Some(Value::Null) | None => Ok(()),
        Some(other) => reply.call_arguments(key, &other.to_string()),
    }
}

fn usage(said: &Value, reply: &mut Assembly<'_>) {
    if let Some(usage) = said.get("usage") {
        reply.usage(Usage {
            prompt: count(usage, "prompt_tokens"),
            completion: count(usage, "completion_tokens"),
        });
    }
}

fn stop(choice: &Value, reply: &mut Assembly<'_>) {
    let word = text(choice, "finish_reason");
    let reason = match word {
        "" => return,
        "stop" | "eos" | "end_turn" => Some(StopReason::End),
        "tool_calls" | "function_call" => Some(StopReason::ToolCalls),
        "length" => Some(StopReason::MaxTokens),
        "content_filter" => Some(StopReason::Refused),
        _ => None,
    };
    reply.stop(reason, word);
}

fn message(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::User { text } => json!({"role": "user", "content": text}),
        ChatMessage::Assistant { text, calls } => {
            let content = if text.is_empty() && !calls.is_empty() {
                Value::Null
            } else {
                text.as_str().into()
            };
            let mut written = json!({"role": "assistant", "content": content});
            if !calls.is_empty() {
                let calls = calls.iter().map(|call| {
                    json!({"id": call.id, "type": "function", "function": {
                        "name": call.name,
                        "arguments": call.arguments.to_text(),
                    }})
                });
                written["tool_calls"] = calls.collect();
            }
            written
        }
        ChatMessage::Tool {
            call_id,
            content,
            is_error,
            ..
        } => {
            // There is no field for it; the model should know all the same.
            let content = if *is_error {
                format!("Error: {content}")
            } else {
                content.clone()
            };
            json!({"role": "tool", "tool_call_id": call_id, "content": content})
        }
    }
}
