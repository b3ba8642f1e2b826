//! Branches: the different things that a carrier can show, as the document has them, templates not yet resolved.
//!
//! A tool with three responses has three branches, and only one of them is served. Which it was decides whether the
//! attack reached the subject.

use proofhouse_oatf::{Fragment, ResponseEntry};
use proofhouse_protocol::mcp::{McpMethod, McpNotification};
use serde_json::{Map, Value, json};

use crate::exposure::CarrierKind;

/// What a frontend sends.
const INPUT: &str = "run_agent_input";

/// Keys of listed items that do not go over the wire.
const OWN_KEYS: [&str; 6] = [
    "responses",
    "content",
    "x-steps",
    "x-requires",
    "x-completions",
    "x-proofhouse-lenient",
];

/// The branch that an entry of a dispatch list is, whenever it is chosen.
pub(crate) fn of_entry(entry: &ResponseEntry) -> Value {
    let mut branch: Map<String, Value> = entry.fields.clone();
    if let Some(content) = &entry.content {
        branch.insert("content".to_owned(), content.clone());
    }
    if let Some(synthesize) = &entry.synthesize {
        branch.insert("synthesize".to_owned(), json!(synthesize.prompt));
    }
    Value::Object(branch)
}

/// The branch that a message of our own accord is. No parameters and an empty object of them are the same.
pub(crate) fn of_message(method: &str, params: Option<&Value>) -> Value {
    let empty = json!({});
    json!({"method": method, "params": params.filter(|params| !params.is_null() && **params != empty)})
}

/// Everything that a state may show through a carrier.
pub(crate) fn branches(state: &Value, kind: CarrierKind, name: &str) -> Vec<Value> {
    let named = |list: &'static str, key: &'static str| {
        let items = items(state, list);
        items.filter(move |item| item.get(key).is_some_and(|value| value == name))
    };
    match kind {
        CarrierKind::Instructions => state.get("instructions").cloned().into_iter().collect(),
        CarrierKind::ToolListed => {
            let frontend = state.get(INPUT).into_iter();
            let frontend = frontend.flat_map(|input| items(input, "tools"));
            let frontend =
                frontend.filter(|tool| tool.get("name").is_some_and(|value| value == name));
            let servers = named("tools", "name").map(listed);
            servers.chain(frontend.cloned()).collect()
        }
        CarrierKind::PromptListed => named("prompts", "name").map(listed).collect(),
        CarrierKind::ResourceListed => named("resources", "uri")
            .chain(named("resource_templates", "uriTemplate"))
            .map(listed)
            .collect(),
        CarrierKind::ToolResponse => named("tools", "name").flat_map(answers).collect(),
        CarrierKind::Prompt => named("prompts", "name").flat_map(answers).collect(),
        // What a template makes has a name of its own.
        CarrierKind::Resource => named("resources", "uri")
            .chain(items(state, "resource_templates"))
            .flat_map(answers)
            .collect(),
        CarrierKind::Elicitation => {
            let method = McpMethod::ElicitationCreate.as_str();
            let asked = entries(state, "elicitations")
                .map(|entry| of_message(method, Some(&Value::Object(entry.fields))));
            let answered = entries(state, "elicitation_responses").map(|entry| of_entry(&entry));
            asked.chain(answered).chain(steps(state)).collect()
        }
        CarrierKind::Sampling => entries(state, "sampling_responses")
            .map(|entry| of_entry(&entry))
            .chain(steps(state))
            .collect(),
        CarrierKind::Notification => steps(state).collect(),
        CarrierKind::Card => state.get("agent_card").cloned().into_iter().collect(),
        CarrierKind::TaskResponse => entries(state, "task_responses")
            .map(|entry| of_entry(&entry))
            .collect(),
        CarrierKind::Message => {
            let actions = items(state, "actions").filter_map(|action| {
                let method = action.get("method")?.as_str()?;
                Some(of_message(method, action.get("params")))
            });
            let input = state.get(INPUT).map(conversation);
            let given = input.into_iter().chain(state.get("roots").cloned());
            actions.chain(given).chain(steps(state)).collect()
        }
        CarrierKind::Context => of_input(state, "context"),
        CarrierKind::State => of_input(state, "state"),
        CarrierKind::FrontendToolResult => entries(state, "tool_responses")
            .map(|entry| of_entry(&entry))
            .collect(),
    }
}

/// What of an input is the conversation: the rest has carriers of its own.
fn conversation(input: &Value) -> Value {
    let mut input = input.clone();
    if let Some(object) = input.as_object_mut() {
        object.retain(|key, _| !["context", "state", "tools"].contains(&key.as_str()));
    }
    input
}

fn of_input(state: &Value, key: &str) -> Vec<Value> {
    let value = state.get(INPUT).and_then(|input| input.get(key));
    value.cloned().into_iter().collect()
}

fn items<'s>(state: &'s Value, list: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    let items = state.get(list).and_then(Value::as_array);
    items.into_iter().flatten()
}

fn entries<'s>(state: &'s Value, list: &str) -> impl Iterator<Item = ResponseEntry> + use<'s> {
    items(state, list).filter_map(|entry| ResponseEntry::from_value(entry).ok())
}

/// An item as it stands in its list.
fn listed(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(object) = item.as_object_mut() {
        object.retain(|key, _| !OWN_KEYS.contains(&key.as_str()));
    }
    item
}

/// What using an item may give.
fn answers(item: &Value) -> Vec<Value> {
    let responses = entries(item, "responses").map(|entry| of_entry(&entry));
    let content = item
        .get("content")
        .map(|content| json!({"content": content}));
    responses.chain(content).collect()
}

/// What items send before they answer.
fn steps(state: &Value) -> impl Iterator<Item = Value> + use<'_> {
    let lists = ["tools", "resources", "resource_templates", "prompts"];
    let all = lists.into_iter().flat_map(|list| items(state, list));
    all.flat_map(|item| items(item, "x-steps"))
        .filter_map(|step| {
            let (kind, value) = step.as_object()?.iter().next()?;
            Some(match kind.as_str() {
                "progress" if !value.is_object() => {
                    let params = json!({"progress": value});
                    of_message(McpNotification::Progress.as_str(), Some(&params))
                }
                "progress" => of_message(McpNotification::Progress.as_str(), Some(value)),
                "log" if !value.is_object() => {
                    let params = json!({"level": "info", "data": value});
                    of_message(McpNotification::Message.as_str(), Some(&params))
                }
                "log" => of_message(McpNotification::Message.as_str(), Some(value)),
                _ => of_message(value.get("method")?.as_str()?, value.get("params")),
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_response_is_a_branch_and_when_is_no_part_of_it() {
        let state = json!({"tools": [{"name": "t", "description": "d", "x-steps": [{"log": "l"}], "responses": [
            {"when": {"arguments.a": 1}, "content": "one"}, {"content": "two"}]}],
            "actions": [{"method": "tools/call", "params": {"name": "x"}}, {"method": "ping"}]});
        let all = |kind, name| branches(&state, kind, name);
        assert_eq!(
            all(CarrierKind::ToolResponse, "t"),
            [json!({"content": "one"}), json!({"content": "two"})]
        );
        assert_eq!(
            all(CarrierKind::ToolListed, "t"),
            [json!({"name": "t", "description": "d"})]
        );
        assert!(all(CarrierKind::ToolListed, "u").is_empty());
        assert_eq!(all(CarrierKind::Notification, "").len(), 1);
        assert_eq!(
            all(CarrierKind::Message, "")[1],
            of_message("ping", Some(&Value::Null))
        );
    }
}
