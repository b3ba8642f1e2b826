//! Inputs: what the document has of one, completed so that agents of every version accept it.

use std::collections::HashMap;
use std::sync::Arc;

use proofhouse_oatf::ResponseEntry;
use serde_json::{Map, Value, json};

use crate::actor::ActorContext;
use crate::drivers::arguments::ArgumentSchema;
use crate::drivers::client::dispatch;
use crate::exposure::CarrierKind;
use crate::phases::PhaseView;

use super::INPUT;

/// A phase's state, read once.
#[derive(Debug)]
pub(super) struct AgUiClientState {
    pub(super) tool_responses: Vec<ResponseEntry>,
    pub(super) problems: Vec<String>,
    pub(super) input: Value,
    prompt: Option<String>,
}

impl AgUiClientState {
    pub(super) fn new(state: &Value) -> Self {
        let mut problems = Vec::new();
        let tool_responses = dispatch::entries(state, "tool_responses", &mut problems);
        let mut input = state.get(INPUT).cloned().unwrap_or_else(|| {
            problems.push(format!("there is no `{INPUT}`; an empty one is sent"));
            json!({})
        });
        // `synthesize` is ours and never goes over the wire.
        let synthesize = input
            .as_object_mut()
            .and_then(|map| map.remove("synthesize"));
        let prompt = synthesize.and_then(|s| Some(s.get("prompt")?.as_str()?.to_owned()));
        Self {
            tool_responses,
            problems,
            input,
            prompt,
        }
    }

    /// The tools that the input offers.
    pub(super) fn tool_names(&self) -> impl Iterator<Item = &str> {
        let tools = self.input.get("tools").and_then(Value::as_array);
        let tools = tools.map(Vec::as_slice).unwrap_or_default();
        tools.iter().filter_map(|tool| tool.get("name")?.as_str())
    }
}

/// What the tools of an input take. One whose schema cannot be used takes anything.
pub(super) fn tool_schemas(input: &Value) -> HashMap<&str, ArgumentSchema> {
    let tools = input.get("tools").and_then(Value::as_array);
    let tools = tools.into_iter().flatten();
    tools
        .filter_map(|tool| {
            let name = tool.get("name")?.as_str()?;
            let schema = ArgumentSchema::of(tool.get("parameters"));
            Some((name, schema.unwrap_or_default()))
        })
        .collect()
}

/// Whether a tool takes these arguments, which came as text.
pub(super) fn allows(schema: &ArgumentSchema, arguments: &str) -> bool {
    if arguments.trim().is_empty() {
        return schema.check(None).is_ok();
    }
    let arguments = serde_json::from_str::<Value>(arguments);
    arguments.is_ok_and(|arguments| schema.check(Some(&arguments)).is_ok())
}

/// What of an input carries something to the agent.
pub(super) fn carriers(input: &Value) -> Vec<(CarrierKind, &str)> {
    let mut carriers = vec![(CarrierKind::Message, INPUT)];
    for (key, kind) in [
        ("context", CarrierKind::Context),
        ("state", CarrierKind::State),
    ] {
        let is_empty = match input.get(key) {
            None | Some(Value::Null) => true,
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(fields)) => fields.is_empty(),
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Bool(_) | Value::Number(_)) => false,
        };
        if !is_empty {
            carriers.push((kind, INPUT));
        }
    }
    let tools = input.get("tools").and_then(Value::as_array);
    let tools = tools.into_iter().flatten();
    let names = tools.filter_map(|tool| tool.get("name")?.as_str());
    carriers.extend(names.map(|name| (CarrierKind::ToolListed, name)));
    carriers
}

/// The input of a phase, templates resolved, messages generated where the document asks for that.
pub(super) async fn of_phase(context: &ActorContext, phase: &Arc<PhaseView>) -> Value {
    let state = phase.prepared(AgUiClientState::new);
    let mut input = context.interpolate(&state.input, None, None);
    if let Some(prompt) = &state.prompt
        && let Some(generated) = context.generate(prompt, input.clone()).await
    {
        if are_messages(&generated) {
            input["messages"] = generated;
        } else {
            context.warn("`synthesize` gave no list of messages; it is passed over");
        }
    }
    input
}

fn are_messages(value: &Value) -> bool {
    value.as_array().is_some_and(|messages| {
        let has_role = |message: &Value| message.get("role").is_some_and(Value::is_string);
        !messages.is_empty() && messages.iter().all(has_role)
    })
}

/// The input of a run that continues the conversation.
pub(super) fn follow_up(
    input: &Value,
    round: usize,
    messages: Vec<Value>,
    state: Option<Value>,
    resume: Vec<Value>,
) -> Value {
    let mut map = input.as_object().cloned().unwrap_or_else(Map::new);
    let run = map.get("runId").and_then(Value::as_str).unwrap_or("run");
    let run = format!("{run}-{}", round + 1);
    map.insert("runId".to_owned(), run.into());
    map.insert("messages".to_owned(), messages.into());
    map.remove("resume");
    if let Some(state) = state {
        map.insert("state".to_owned(), state);
    }
    if !resume.is_empty() {
        map.insert("resume".to_owned(), resume.into());
    }
    Value::Object(map)
}

/// The content of a tool's message: a text or a list of parts as it is, anything else written out.
pub(super) fn tool_message(call: &str, round: usize, answer: Value) -> Map<String, Value> {
    let mut message = Map::new();
    message.insert("id".to_owned(), format!("result-{round}-{call}").into());
    message.insert("role".to_owned(), "tool".into());
    message.insert("toolCallId".to_owned(), call.into());
    message.insert("content".to_owned(), "".into());
    match answer {
        Value::Object(mut given) if given.contains_key("content") => {
            // A whole result, as the protocol has it; what the author says wins.
            given.remove("type");
            if let Some(id) = given.remove("messageId") {
                message.insert("id".to_owned(), id);
            }
            let content = given.remove("content").unwrap_or_default();
            message.extend(given);
            message.insert("content".to_owned(), as_content(content));
        }
        answer => {
            message.insert("content".to_owned(), as_content(answer));
        }
    }
    message
}

fn as_content(value: Value) -> Value {
    match value {
        Value::String(_) => value,
        Value::Null => "".into(),
        Value::Array(parts) if parts.iter().all(|part| part.get("type").is_some()) => parts.into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_be_a_text_parts_a_result_or_anything() {
        for (answer, content) in [
            (json!("plain"), json!("plain")),
            (json!(null), json!("")),
            (json!({"a": 1}), json!("{\"a\":1}")),
            (
                json!([{"type": "text", "text": "x"}]),
                json!([{"type": "text", "text": "x"}]),
            ),
            (json!([1, 2]), json!("[1,2]")),
            (
                json!({"type": "TOOL_CALL_RESULT", "content": "deep"}),
                json!("deep"),
            ),
        ] {
            let message = tool_message("c1", 0, answer);
            assert_eq!(message["content"], content);
            assert_eq!(
                (&message["role"], &message["toolCallId"]),
                (&json!("tool"), &json!("c1"))
            );
            assert!(!message.contains_key("type"));
        }
        let whole = json!({"messageId": "m", "toolCallId": "other", "content": "x"});
        let message = tool_message("c1", 0, whole);
        assert_eq!(
            (&message["id"], &message["toolCallId"]),
            (&json!("m"), &json!("other"))
        );
    }
}
