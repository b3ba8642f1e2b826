//! Which protocol a JSON-RPC method belongs to, and what a result without a request may be.

use proofhouse_oatf::{Direction, Protocol};
use proofhouse_protocol::a2a::{A2aMethod, A2aShape, CARD_EVENT};
use proofhouse_protocol::mcp::{McpMethod, McpNotification, McpParty};
use serde_json::Value;

use super::a2a;

/// The operation of a response that nothing is known about.
pub(crate) const UNKNOWN: &str = "unknown";

/// The protocol that a method can only belong to; `None` when it may be of either.
pub(crate) fn protocol_of(method: &str, params: &Value) -> Option<Protocol> {
    let a2a = A2aMethod::parse(method);
    match (McpMethod::parse(method), a2a) {
        // Both have tasks; A2A names one by `id`, MCP by `taskId`.
        (Some(McpMethod::TasksGet | McpMethod::TasksCancel), Some(_)) => {
            match (params.get("id").is_some(), params.get("taskId").is_some()) {
                (true, false) => Some(Protocol::A2a),
                (false, true) => Some(Protocol::Mcp),
                _ => None,
            }
        }
        (Some(_), Some(_)) => None,
        (None, Some(_)) => Some(Protocol::A2a),
        (Some(_), None) => Some(Protocol::Mcp),
        (None, None) if method == CARD_EVENT || A2aMethod::is_of_family(method) => {
            Some(Protocol::A2a)
        }
        (None, None) => McpMethod::is_of_family(method).then_some(Protocol::Mcp),
    }
}

/// The side of the protocol that a request or notification stands on: what a server says unasked
/// stands on the side of its responses, as in a live run.
pub(crate) fn side_of(method: &str) -> Direction {
    match McpNotification::parse(method).map(McpNotification::sender) {
        Some(McpParty::Server) => Direction::Response,
        // Those that both may send are told from a client's side.
        Some(McpParty::Client | McpParty::Both) | None => Direction::Request,
    }
}

/// Whether a response is enriched with the parameters of its request.
pub(crate) fn enriches(protocol: &Protocol, operation: &str) -> bool {
    *protocol == Protocol::Mcp
        && McpMethod::parse(operation).is_some_and(McpMethod::result_needs_call)
}

/// The protocol and operation that the shape of a result suggests.
pub(crate) fn guess(result: &Value, is_error: bool) -> (Option<Protocol>, &'static str) {
    if is_error {
        return (None, UNKNOWN);
    }
    let kind = result.get("kind").and_then(Value::as_str);
    let shape = match kind.and_then(A2aShape::of_kind) {
        Some(shape) => Some(shape),
        None => a2a::wrapped(result),
    };
    if let Some(shape) = shape {
        let method = match shape {
            A2aShape::Task | A2aShape::Message => A2aMethod::SendMessage,
            A2aShape::StatusUpdate | A2aShape::ArtifactUpdate => A2aMethod::StreamMessage,
        };
        return (Some(Protocol::A2a), method.event());
    }
    let has = |key: &str| result.get(key).is_some();
    let has_list = |key: &str| result.get(key).is_some_and(Value::is_array);
    let method = if has("protocolVersion") && has("capabilities") {
        Some(McpMethod::Initialize)
    } else {
        let is_answered = |method: &McpMethod| method.list_member().is_some_and(has_list);
        LISTS.into_iter().find(is_answered)
    };
    match method {
        Some(method) => (Some(Protocol::Mcp), method.as_str()),
        None => (None, UNKNOWN),
    }
}

/// The methods whose results are told by a list, the most telling first.
const LISTS: [McpMethod; 8] = [
    McpMethod::ToolsList,
    McpMethod::ResourcesList,
    McpMethod::ResourcesTemplatesList,
    McpMethod::ResourcesRead,
    McpMethod::PromptsList,
    McpMethod::PromptsGet,
    McpMethod::ToolsCall,
    McpMethod::RootsList,
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn methods_have_protocols() {
        for (method, params, expected) in [
            ("tools/call", json!({}), Some(Protocol::Mcp)),
            ("notifications/progress", json!({}), Some(Protocol::Mcp)),
            ("server/discover", json!({}), Some(Protocol::Mcp)),
            ("message/send", json!({}), Some(Protocol::A2a)),
            ("SendMessage", json!({}), Some(Protocol::A2a)),
            (
                "tasks/pushNotificationConfig/set",
                json!({}),
                Some(Protocol::A2a),
            ),
            ("tasks/get", json!({"id": "1"}), Some(Protocol::A2a)),
            ("tasks/get", json!({"taskId": "1"}), Some(Protocol::Mcp)),
            ("tasks/list", json!({}), None),
            ("own/thing", json!({}), None),
        ] {
            assert_eq!(protocol_of(method, &params), expected, "{method}");
        }
    }

    #[test]
    fn shapes_suggest_operations() {
        for (result, expected) in [
            (json!({"tools": []}), (Some(Protocol::Mcp), "tools/list")),
            (json!({"content": []}), (Some(Protocol::Mcp), "tools/call")),
            (
                json!({"kind": "task"}),
                (Some(Protocol::A2a), "message/send"),
            ),
            (
                json!({"artifactUpdate": {}}),
                (Some(Protocol::A2a), "message/stream"),
            ),
            (json!({}), (None, UNKNOWN)),
            (json!(null), (None, UNKNOWN)),
        ] {
            assert_eq!(guess(&result, false), expected, "{result}");
        }
        assert_eq!(guess(&json!({"tools": []}), true), (None, UNKNOWN));
    }

    #[test]
    fn what_servers_say_unasked_is_on_their_side() {
        for (method, side) in [
            ("notifications/tools/list_changed", Direction::Response),
            ("notifications/message", Direction::Response),
            ("notifications/initialized", Direction::Request),
            ("notifications/progress", Direction::Request),
            ("sampling/createMessage", Direction::Request),
        ] {
            assert_eq!(side_of(method), side, "{method}");
        }
    }
}
