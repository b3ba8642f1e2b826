//! Which protocol a JSON-RPC method belongs to, and what a result without a request may be.

use proofhouse_oatf::{Direction, Protocol};
use serde_json::Value;

use super::a2a;

/// The operation of a response that nothing is known about.
pub(crate) const UNKNOWN: &str = "unknown";

/// The protocol that a method can only belong to; `None` when it may be of either.
pub(crate) fn protocol_of(method: &str, params: &Value) -> Option<Protocol> {
    match method {
        // Both have tasks; A2A names one by `id`, MCP by `taskId`.
        "tasks/get" | "tasks/cancel" => {
            match (params.get("id").is_some(), params.get("taskId").is_some()) {
                (true, false) => Some(Protocol::A2a),
                (false, true) => Some(Protocol::Mcp),
                _ => None,
            }
        }
        "tasks/list" => None,
        "message/send" | "message/stream" | "tasks/resubscribe" | "agent_card/get" => {
            Some(Protocol::A2a)
        }
        "initialize" | "ping" | "tasks/result" | "server/discover" => Some(Protocol::Mcp),
        _ => {
            let a2a_families = ["tasks/pushNotificationConfig/", "agent/"];
            let mcp_families = [
                "tools/",
                "resources/",
                "prompts/",
                "completion/",
                "logging/",
                "sampling/",
                "elicitation/",
                "roots/",
                "notifications/",
                "subscriptions/",
            ];
            if a2a::operation(method).is_some() || starts_with(method, &a2a_families) {
                Some(Protocol::A2a)
            } else if starts_with(method, &mcp_families) {
                Some(Protocol::Mcp)
            } else {
                None
            }
        }
    }
}

/// Notifications of MCP that only a server sends; those that both may send are not among them.
const OF_SERVERS: [&str; 7] = [
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/prompts/list_changed",
    "notifications/message",
    "notifications/elicitation/complete",
    "notifications/subscriptions/acknowledged",
];

/// The side of the protocol that a request or notification stands on: what a server says unasked
/// stands on the side of its responses, as in a live run.
pub(crate) fn side_of(method: &str) -> Direction {
    if OF_SERVERS.contains(&method) {
        Direction::Response
    } else {
        Direction::Request
    }
}

fn starts_with(method: &str, families: &[&str]) -> bool {
    families.iter().any(|family| method.starts_with(family))
}

/// Whether a response is enriched with the parameters of its request.
pub(crate) fn enriches(protocol: &Protocol, operation: &str) -> bool {
    *protocol == Protocol::Mcp && matches!(operation, "tools/call" | "prompts/get")
}

/// The protocol and operation that the shape of a result suggests.
pub(crate) fn guess(result: &Value, is_error: bool) -> (Option<Protocol>, &'static str) {
    if is_error {
        return (None, UNKNOWN);
    }
    let has = |key: &str| result.get(key).is_some();
    let has_list = |key: &str| result.get(key).is_some_and(Value::is_array);
    match result.get("kind").and_then(Value::as_str) {
        Some("task" | "message") => return (Some(Protocol::A2a), "message/send"),
        Some("status-update" | "artifact-update") => {
            return (Some(Protocol::A2a), "message/stream");
        }
        _ => {}
    }
    if a2a::is_modern_result(result) {
        let stream = has("statusUpdate") || has("artifactUpdate");
        return (
            Some(Protocol::A2a),
            if stream {
                "message/stream"
            } else {
                "message/send"
            },
        );
    }
    let operation = if has("protocolVersion") && has("capabilities") {
        "initialize"
    } else if has_list("tools") {
        "tools/list"
    } else if has_list("resources") {
        "resources/list"
    } else if has_list("resourceTemplates") {
        "resources/templates/list"
    } else if has_list("contents") {
        "resources/read"
    } else if has_list("prompts") {
        "prompts/list"
    } else if has_list("messages") {
        "prompts/get"
    } else if has_list("content") {
        "tools/call"
    } else if has_list("roots") {
        "roots/list"
    } else {
        return (None, UNKNOWN);
    };
    (Some(Protocol::Mcp), operation)
}

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
