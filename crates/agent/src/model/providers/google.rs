//! The dialect of Google's Gemini API.

use std::sync::Arc;

use proofhouse_wire::HeaderMap;
use serde_json::{Value, json};

use super::super::{
    ChatMessage, ModelConfig, ModelError, ModelErrorKind, ModelOpenError, ModelRequest,
    ProviderRow, ProviderVariables, StopReason, Usage,
};
use super::assembly::{Assembly, AssemblyProblem};
use super::http_model::{HttpModel, base_url, headers};
use super::{ProviderDialect, ProviderRequest, count, items, schema, text};

/// The row of google.
pub(super) const GOOGLE: ProviderRow = ProviderRow {
    prefix: "google",
    rest: "MODEL",
    about: "Google's Gemini API",
    needs_base_url: false,
    variables: Some(ProviderVariables {
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url: "GOOGLE_GEMINI_BASE_URL",
        api_version: None,
    }),
    make: |name, config| Ok(Arc::new(google(name, config)?)),
};

const USUAL_URL: &str = "https://generativelanguage.googleapis.com";

struct Google {
    /// The address of the model, without what is done with it.
    url: String,
    headers: HeaderMap,
}

/// A model of Google.
fn google(model: &str, config: &ModelConfig) -> Result<HttpModel, ModelOpenError> {
    let base = base_url(config, USUAL_URL)?;
    let mut url = url::Url::parse(&base)
        .map_err(|error| ModelOpenError::Config(format!("the base URL is no URL: {error}")))?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(["v1beta", "models", model]);
    }
    let dialect = Google {
        url: url.into(),
        headers: headers(config, "x-goog-api-key", "", &[])?,
    };
    HttpModel::new("google", model, config, Box::new(dialect))
}

impl ProviderDialect for Google {
    fn write(&self, request: &ModelRequest, stream: bool) -> ProviderRequest {
        let mut body = json!({"contents": contents(&request.messages)});
        if let Some(system) = &request.system {
            body["systemInstruction"] = json!({"parts": [{"text": system}]});
        }
        if !request.tools.is_empty() {
            let tools: Vec<_> = request
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "name": tool.name,
                        "description": tool.description,
                        "parametersJsonSchema": schema(&tool.parameters),
                    })
                })
                .collect();
            body["tools"] = json!([{"functionDeclarations": tools}]);
        }
        let options = &request.options;
        if options.searches() {
            match body["tools"].as_array_mut() {
                Some(tools) => tools.push(json!({"googleSearch": {}})),
                None => body["tools"] = json!([{"googleSearch": {}}]),
            }
        }
        let mut generation = json!({});
        if let Some(temperature) = options.temperature {
            generation["temperature"] = temperature.into();
        }
        if let Some(seed) = options.seed {
            // The field has 32 bits; the lower ones tell seeds apart as well.
            generation["seed"] = (seed & 0x7fff_ffff).into();
        }
        if let Some(most) = options.max_tokens {
            generation["maxOutputTokens"] = most.into();
        }
        if generation != json!({}) {
            body["generationConfig"] = generation;
        }
        let action = if stream {
            ":streamGenerateContent?alt=sse"
        } else {
            ":generateContent"
        };
        ProviderRequest {
            url: format!("{}{action}", self.url),
            headers: self.headers.clone(),
            body,
        }
    }

    fn event(&self, event: &Value, reply: &mut Assembly<'_>) -> Result<(), AssemblyProblem> {
        reply.model(text(event, "modelVersion"));
        if let Some(usage) = event.get("usageMetadata") {
            reply.usage(Usage {
                prompt: count(usage, "promptTokenCount"),
                completion: count(usage, "candidatesTokenCount")
                    .saturating_add(count(usage, "thoughtsTokenCount")),
            });
        }
        if let Some(reason) = event.pointer("/promptFeedback/blockReason") {
            let message = format!("the provider blocked the request: {reason}");
            return Err(ModelError::new(ModelErrorKind::Refused, message).into());
        }
        let Some(candidate) = items(event, "candidates").first() else {
            return Ok(());
        };
        let content = candidate.get("content").unwrap_or(&Value::Null);
        for part in items(content, "parts") {
            if part.get("thought") == Some(&Value::Bool(true)) {
                continue;
            }
            reply.text(text(part, "text"))?;
            if let Some(call) = part.get("functionCall") {
                let arguments = call.get("args").unwrap_or(&Value::Null);
                let signature = part.get("thoughtSignature").and_then(Value::as_str);
                reply.whole_call(
                    text(call, "id"),
                    text(call, "name"),
                    arguments,
                    signature.map(str::to_owned),
                )?;
            }
        }
        stop(candidate, reply)
    }

    fn whole(&self, body: &Value, reply: &mut Assembly<'_>) -> Result<(), AssemblyProblem> {
        // A stream that was not asked for as events comes as one list.
        match body {
            Value::Array(pieces) => pieces.iter().try_for_each(|piece| self.event(piece, reply)),
            whole => self.event(whole, reply),
        }
    }
}

fn stop(candidate: &Value, reply: &mut Assembly<'_>) -> Result<(), AssemblyProblem> {
    let word = text(candidate, "finishReason");
    let reason = match word {
        "" | "FINISH_REASON_UNSPECIFIED" => return Ok(()),
        "STOP" => Some(StopReason::End),
        "MAX_TOKENS" => Some(StopReason::MaxTokens),
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => Some(StopReason::Refused),
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
            let said: String = text(candidate, "finishMessage").chars().take(300).collect();
            let message = format!("the model made a call that its provider rejects: {said}");
            return Err(ModelError::new(ModelErrorKind::Garbage, message).into());
        }
        _ => None,
    };
    reply.stop(reason, word);
    Ok(())
}

/// Messages of the same role are one: results of several calls must stand in one message.
fn contents(messages: &[ChatMessage]) -> Vec<Value> {
    let mut written: Vec<Value> = Vec::new();
    for message in messages {
        let (role, parts) = match message {
            ChatMessage::User { text } => ("user", vec![json!({"text": text})]),
            ChatMessage::Assistant { text, calls } => {
                let said = (!text.is_empty()).then(|| json!({"text": text}));
                let calls = calls.iter().map(|call| {
                    let mut part = json!({"functionCall": {
                        "name": call.name,
                        "args": call.arguments.to_object(),
                    }});
                    if let Some(signature) = &call.opaque {
                        part["thoughtSignature"] = signature.as_str().into();
                    }
                    part
                });
                ("model", said.into_iter().chain(calls).collect())
            }
            ChatMessage::Tool {
                name,
                content,
                is_error,
                ..
            } => {
                let field = if *is_error { "error" } else { "result" };
                let result =
                    json!({"functionResponse": {"name": name, "response": {field: content}}});
                ("user", vec![result])
            }
        };
        if parts.is_empty() {
            continue;
        }
        match written.last_mut() {
            Some(last) if last["role"] == role => {
                if let Some(list) = last["parts"].as_array_mut() {
                    list.extend(parts);
                }
            }
            _ => written.push(json!({"role": role, "parts": parts})),
        }
    }
    written
}
