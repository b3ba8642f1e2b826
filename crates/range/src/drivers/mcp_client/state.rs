//! A client's state, read once per phase.

use proofhouse_oatf::ResponseEntry;
use serde_json::{Value, json};

use crate::drivers::client::dispatch;

/// What a phase has the client do, and how it answers.
#[derive(Debug)]
pub(super) struct McpClientState {
    pub(super) client_info: Option<Value>,
    pub(super) capabilities: Option<Value>,
    /// The version to speak, when the document insists on one.
    pub(super) protocol_version: Option<String>,
    pub(super) actions: Vec<McpClientAction>,
    pub(super) sampling_responses: Vec<ResponseEntry>,
    pub(super) elicitation_responses: Vec<ResponseEntry>,
    pub(super) roots: Value,
    pub(super) problems: Vec<String>,
}

/// A message to send, templates not yet resolved.
#[derive(Debug, Clone)]
pub(super) struct McpClientAction {
    pub(super) method: String,
    pub(super) params: Option<Value>,
}

impl McpClientState {
    pub(super) fn new(state: &Value) -> Self {
        let mut problems = Vec::new();
        let sampling_responses = dispatch::entries(state, "sampling_responses", &mut problems);
        let elicitation_responses =
            dispatch::entries(state, "elicitation_responses", &mut problems);
        let actions = actions(state.get("actions"), &mut problems);
        let version = state.get("protocol_version").and_then(Value::as_str);
        Self {
            client_info: state.get("client_info").cloned(),
            capabilities: state.get("capabilities").cloned(),
            protocol_version: version.map(str::to_owned),
            actions,
            sampling_responses,
            elicitation_responses,
            roots: state.get("roots").cloned().unwrap_or_else(|| json!([])),
            problems,
        }
    }
}

fn actions(list: Option<&Value>, problems: &mut Vec<String>) -> Vec<McpClientAction> {
    let list = match list {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => {
            problems.push("`actions` is not a list and is passed over".to_owned());
            return Vec::new();
        }
    };
    let mut actions = Vec::with_capacity(list.len());
    for (position, action) in list.iter().enumerate() {
        match action.get("method").and_then(Value::as_str) {
            Some(method) => actions.push(McpClientAction {
                method: method.to_owned(),
                params: action.get("params").cloned(),
            }),
            None => problems.push(format!("`actions[{position}]` has no method; passed over")),
        }
    }
    actions
}

/// Who a client says it is when the document does not say.
pub(super) fn default_client_info() -> Value {
    json!({"name": "oatf-client", "version": "1.0.0"})
}

/// The capabilities a client declares when the document does not say: roots, and whatever one of
/// its phases has answers for, because servers do not ask what a client did not declare.
pub(super) fn default_capabilities<'s>(states: impl Iterator<Item = &'s McpClientState>) -> Value {
    let mut capabilities = json!({"roots": {"listChanged": true}});
    for state in states {
        if !state.sampling_responses.is_empty() {
            capabilities["sampling"] = json!({});
        }
        if !state.elicitation_responses.is_empty() {
            capabilities["elicitation"] = json!({"form": {}, "url": {}});
        }
    }
    capabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_told_and_the_rest_is_used() {
        let state = McpClientState::new(&json!({
            "actions": [{"method": "tools/list"}, {"params": {}}, 7],
            "sampling_responses": [{"content": {}}, {"when": 3}],
            "elicitation_responses": "no",
        }));
        assert_eq!(state.actions.len(), 1);
        assert_eq!(state.sampling_responses.len(), 1);
        assert_eq!(state.problems.len(), 4, "{:?}", state.problems);
        let capabilities = default_capabilities([&state].into_iter());
        let expected = json!({"roots": {"listChanged": true}, "sampling": {}});
        assert_eq!(capabilities, expected);
    }
}
