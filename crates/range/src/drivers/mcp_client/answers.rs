//! Answers to what servers ask of clients: from the dispatch lists, or a refusal the protocol knows.

use std::sync::Arc;

use proofhouse_protocol::mcp::{McpMethod, error};
use proofhouse_protocol::rpc;
use serde_json::{Value, json};

use crate::actor::ActorContext;
use crate::branches;
use crate::drivers::client::dispatch;
use crate::exposure::CarrierKind;
use crate::phases::PhaseView;

use super::state::McpClientState;

/// An answer: a result, or the code and message of an error.
pub(super) type McpClientAnswer = Result<Value, (i64, String)>;

/// Whether there is a result to answer with, and not only a refusal.
pub(super) fn can_answer(
    context: &ActorContext,
    phase: &Arc<PhaseView>,
    method: &str,
    params: &Value,
) -> bool {
    match McpMethod::parse(method) {
        Some(McpMethod::Ping | McpMethod::RootsList | McpMethod::ElicitationCreate) => true,
        Some(McpMethod::SamplingCreateMessage) => {
            let state = phase.prepared(McpClientState::new);
            let entry = context.select(method, &state.sampling_responses, params);
            entry.is_some_and(|entry| entry.content.is_some() || entry.synthesize.is_some())
        }
        _ => false,
    }
}

/// Answers a request of the server as the phase has it.
pub(super) async fn answer(
    context: &ActorContext,
    phase: &Arc<PhaseView>,
    method: &str,
    params: &Value,
) -> McpClientAnswer {
    let state = phase.prepared(McpClientState::new);
    match McpMethod::parse(method) {
        Some(McpMethod::Ping) => Ok(json!({})),
        Some(McpMethod::RootsList) => {
            let roots = context.interpolate(&state.roots, Some(params), None);
            Ok(json!({"roots": roots}))
        }
        Some(McpMethod::SamplingCreateMessage) => {
            let refusal = || {
                (
                    error::SAMPLING_REJECTED,
                    "User rejected sampling request".to_owned(),
                )
            };
            let entry = context
                .select(method, &state.sampling_responses, params)
                .ok_or_else(refusal)?;
            let content = dispatch::content(context, entry, params, is_completion).await;
            content.map(completion).ok_or_else(refusal)
        }
        Some(McpMethod::ElicitationCreate) => {
            let Some(entry) = context.select(method, &state.elicitation_responses, params) else {
                return Ok(json!({"action": "decline"}));
            };
            let action = entry.fields.get("action").cloned();
            let action = action.unwrap_or_else(|| json!("accept"));
            let mut result = json!({"action": context.interpolate(&action, Some(params), None)});
            if let Some(content) = dispatch::content(context, entry, params, Value::is_object).await
            {
                result["content"] = content;
            }
            Ok(result)
        }
        _ => Err((rpc::METHOD_NOT_FOUND, format!("Method not found: {method}"))),
    }
}

/// Tells that an answer from the document reached the server.
pub(super) fn delivered(
    context: &ActorContext,
    phase: &Arc<PhaseView>,
    method: &str,
    params: &Value,
) {
    let state = phase.prepared(McpClientState::new);
    let chosen = |entries| {
        let entry = context.select(method, entries, params);
        entry.map_or(Value::Null, branches::of_entry)
    };
    let (kind, branch) = match McpMethod::parse(method) {
        Some(McpMethod::SamplingCreateMessage) => {
            (CarrierKind::Sampling, chosen(&state.sampling_responses))
        }
        Some(McpMethod::ElicitationCreate) => (
            CarrierKind::Elicitation,
            chosen(&state.elicitation_responses),
        ),
        Some(McpMethod::RootsList) => {
            let roots = phase.state.get("roots").cloned();
            (CarrierKind::Message, roots.unwrap_or_default())
        }
        _ => return,
    };
    context.delivered_branch(phase, kind, method, &branch);
}

/// Tells which answers could reach the server.
pub(super) fn planned(context: &ActorContext, state: &McpClientState) {
    if !state.sampling_responses.is_empty() {
        let method = McpMethod::SamplingCreateMessage.as_str();
        context.planned(CarrierKind::Sampling, method);
    }
    if !state.elicitation_responses.is_empty() {
        let method = McpMethod::ElicitationCreate.as_str();
        context.planned(CarrierKind::Elicitation, method);
    }
}

fn is_completion(value: &Value) -> bool {
    value.is_string() || value.is_object()
}

/// A whole result goes as it is; a text or a content block becomes the content of one.
fn completion(content: Value) -> Value {
    let block = match content {
        Value::Object(ref map) if map.contains_key("content") => return content,
        Value::String(text) => json!({"type": "text", "text": text}),
        other => other,
    };
    json!({
        "role": "assistant",
        "content": block,
        "model": "oatf-client",
        "stopReason": "endTurn",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_may_be_given_whole_or_in_part() {
        let whole = json!({"role": "user", "content": [], "x": 1});
        assert_eq!(completion(whole.clone()), whole);
        let text = completion(json!("hi"));
        assert_eq!(text["content"], json!({"type": "text", "text": "hi"}));
        assert_eq!(text["role"], "assistant");
    }
}
