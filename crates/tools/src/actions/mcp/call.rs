//! Calls: one call of a tool, with the rounds in which a server asks back.

use std::collections::BTreeMap;

use proofhouse_wire::trace::TraceParent;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, InputRequest, InputRequests,
    RequestParamsMeta as _,
};
use serde_json::{Map, Value, json};

use super::connection::McpConnection;
use super::failure::{CallFailure, of_call};
use super::server_task;
use crate::runtime::{ActionError, ActionFailure};

/// How often a server may ask back before the call is given up. Everything is declined the first time,
/// so who asks more often does not listen.
pub(super) const MAX_ROUNDS: usize = 5;

/// Calls a tool.
pub(super) async fn call(
    connection: &McpConnection,
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<CallToolResult, CallFailure> {
    let peer = connection.peer();
    let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    if let Some(current) = TraceParent::current() {
        // The messages of a connection are sent from elsewhere, so that the call itself says what it is for.
        params.set_traceparent(&current.to_string());
    }
    for _ in 0..MAX_ROUNDS {
        match peer.call_tool_once(params.clone()).await.map_err(of_call)? {
            CallToolResponse::Complete(result) => return Ok(result),
            CallToolResponse::InputRequired(asked) => {
                let requests = asked.input_requests.unwrap_or_default();
                params.input_responses = Some(declined(&requests));
                params.request_state = asked.request_state;
            }
            CallToolResponse::Task(created) => {
                return server_task::finish(peer, connection.cancellations(), created.task).await;
            }
            _ => return Err(unusable("the kind of the server's answer is unknown")),
        }
    }
    Err(unusable(&format!(
        "the server still asks for input after it was declined {MAX_ROUNDS} times"
    )))
}

/// The answers to what a server asks for. Nobody is there to be asked, no model is lent and no file is
/// shown. A request for a model has no answer that declines it, so it gets none.
pub(super) fn declined(requests: &InputRequests) -> BTreeMap<String, Value> {
    requests
        .iter()
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

pub(super) fn unusable(message: &str) -> CallFailure {
    CallFailure::Other(ActionError::new(ActionFailure::Response, message))
}
