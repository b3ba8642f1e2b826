//! What a phase sends, as the document has it and as the wire gets it.

use proofhouse_protocol::a2a::{A2aMethod, A2aVersion, CARD_EVENT, translate_params};
use serde_json::{Value, json};

use crate::drivers::a2a::{complete, is_verbatim};

/// The action that fetches the card; it is no method.
pub(super) const CARD: &str = CARD_EVENT;

/// One action.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct A2aClientAction {
    method: String,
    pub(super) params: Option<Value>,
    verbatim: bool,
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(super) struct PreparedMessage {
    pub(super) operation: Option<A2aMethod>,
    pub(super) event: String,
    pub(super) generation: A2aVersion,
    /// As triggers and indicators see it.
    pub(super) content: Value,
    pub(super) method: String,
    pub(super) params: Option<Value>,
}

/// Reads the `actions` of a state, and tells what could not be read.
pub(super) fn read(state: &Value) -> (Vec<A2aClientAction>, Vec<String>) {
    let (mut actions, mut problems) = (Vec::new(), Vec::new());
    match state.get("actions") {
        None | Some(Value::Null) => {}
        Some(Value::Array(written)) => {
            for (index, action) in written.iter().enumerate() {
                match action.get("method").and_then(Value::as_str) {
                    Some(method) => actions.push(A2aClientAction {
                        method: method.to_owned(),
                        params: action.get("params").cloned(),
                        verbatim: is_verbatim(action) || is_verbatim(state),
                    }),
                    None => {
                        problems.push(format!("actions[{index}] has no `method`; it is left out"));
                    }
                }
            }
        }
        Some(_) => problems.push("`actions` is not a list; it is left out".to_owned()),
    }
    (actions, problems)
}

impl A2aClientAction {
    /// The action that `send` asks for.
    pub(super) fn sending(method: String, params: Option<Value>) -> Self {
        Self {
            method,
            params,
            verbatim: false,
        }
    }

    pub(super) fn method(&self) -> &str {
        &self.method
    }

    pub(super) fn event(&self) -> &str {
        A2aMethod::event_of(&self.method)
    }

    pub(super) fn is_card(&self) -> bool {
        self.method == CARD
    }

    /// The request for a peer of a generation, with the parameters given, templates resolved.
    pub(super) fn prepare(&self, params: Option<Value>, peer: A2aVersion) -> PreparedMessage {
        let known = A2aMethod::parse(&self.method);
        let event = self.event().to_owned();
        let Some((operation, written)) = known else {
            return PreparedMessage {
                operation: None,
                event,
                generation: peer,
                content: params.clone().unwrap_or_else(|| json!({})),
                method: self.method.clone(),
                params,
            };
        };
        let given = params.clone().unwrap_or_else(|| json!({}));
        let mut content = translate_params(operation, &given, A2aVersion::V0_3);
        if self.verbatim {
            return PreparedMessage {
                operation: Some(operation),
                event,
                generation: written,
                content,
                method: self.method.clone(),
                params,
            };
        }
        complete::complete_request(&mut content);
        PreparedMessage {
            operation: Some(operation),
            event,
            generation: peer,
            method: operation.as_str(peer).to_owned(),
            params: Some(translate_params(operation, &content, peer)),
            content,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_speak_as_the_peer_does_unless_they_are_verbatim() {
        let state = json!({"actions": [
            {"method": "message/send", "params": {"message": {"parts": [{"kind": "text", "text": "hi"}]}}},
            {"method": "message/send", "params": {"message": {"parts": [{"kind": "text", "text": "hi"}]}}, "verbatim": true},
            {"method": "agent_card/get"}, {"params": {}}, {"method": "x/y"},
        ]});
        let (actions, problems) = read(&state);
        assert_eq!((actions.len(), problems.len()), (4, 1));
        let prepare = |n: usize| actions[n].prepare(actions[n].params.clone(), A2aVersion::V1_0);
        let sent = prepare(0);
        assert_eq!(
            (&*sent.event, &*sent.method),
            ("message/send", "SendMessage")
        );
        let message = &sent.params.unwrap()["message"];
        assert_eq!(
            (&message["role"], &message["parts"]),
            (&json!("ROLE_USER"), &json!([{"text": "hi"}]))
        );
        assert!(message["messageId"].is_string());
        let sent = prepare(1);
        assert_eq!(&*sent.method, "message/send");
        assert_eq!(sent.params, state["actions"][1].get("params").cloned());
        assert!(actions[2].is_card());
        assert_eq!(&*prepare(3).method, "x/y");
        assert_eq!(read(&json!({"actions": 3})).1.len(), 1);
        assert_eq!(read(&json!(null)), (Vec::new(), Vec::new()));
    }
}
