//! What the guard says itself: errors that a model can read, and errors of the protocol.

use proofhouse_protocol::mcp::{McpMethod, result_type};
use proofhouse_protocol::rpc;
use serde_json::{Value, json};

use super::open_calls::PendingCall;

/// The code of an error for a message that did not pass.
pub const BLOCKED: i64 = -32010;

/// The code of an error for a request whose server is gone; that of the official SDKs.
pub(super) const CLOSED: i64 = -32000;

/// How many messages a batch may have.
pub(super) const MAX_BATCH: usize = 100;

/// The answer to a request that does not pass. A call of a tool gets a result that says so, which clients show to their
/// model; an error of the protocol often ends the turn instead.
pub(super) fn refusal(call: &PendingCall, message: &str) -> Value {
    let text = format!("Blocked by the Proofhouse guard: {message}");
    if call.method != McpMethod::ToolsCall.as_str() {
        return rpc::error(&call.id, BLOCKED, &text, None);
    }
    let mut result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    if call.is_modern {
        result[result_type::KEY] = json!(result_type::COMPLETE);
    }
    rpc::response(&call.id, result)
}
