//! Calls: one call of a tool, with the rounds in which a server asks back.

use std::collections::BTreeMap;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, InputRequest, InputRequiredResult,
};
use rmcp::service::{Peer, RoleClient};
use serde_json::{Map, Value, json};

use super::failure::{CallFailure, of_call};
use crate::runtime::{ActionError, ActionFailure};

/// How often a server may ask back before the call is given up. Everything is declined the first time,
/// so who asks more often does not listen.
const MAX_ROUNDS: usize = 5;

/// Calls a tool.
pub(super) async fn call(
    peer: &Peer<RoleClient>,
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<CallToolResult, CallFailure> {
    let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    for _ in 0..MAX_ROUNDS {
        match peer.call_tool_once(params.clone()).await.map_err(of_call)? {
            CallToolResponse::Complete(result) => return Ok(result),
            CallToolResponse::InputRequired(asked) => {
                params.input_responses = Some(declined(&asked));
                params.request_state = asked.request_state;
            }
            _ => {
                return Err(unusable(
                    "the server answers with a task, which was not asked for",
                ));
            }
        }
    }
    Err(unusable(&format!(
        "the server still asks for input after it was declined {MAX_ROUNDS} times"
    )))
}

/// The answers to what a server asks for. Nobody is there to be asked, no model is lent and no file is
/// shown. A request for a model has no answer that declines it, so it gets none.
fn declined(asked: &InputRequiredResult) -> BTreeMap<String, Value> {
    let requests = asked.input_requests.iter().flatten();
    requests
        .filter_map(|(key, request)| {
            let answer = match request {
                InputRequest::Elicitation(_) => json!({"action": "decline"}),
                InputRequest::ListRoots(_) => json!({"roots": []}),
                _ => return None,
            };
            Some((key.clone(), answer))
        })
        .collect()
}

fn unusable(message: &str) -> CallFailure {
    CallFailure::Other(ActionError::new(ActionFailure::Response, message))
}
