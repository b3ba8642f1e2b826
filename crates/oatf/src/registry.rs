//! What the three bound protocols define: modes, operations, events. Anything else is accepted,
//! with a warning.

/// The modes version 0.1 binds.
///
/// ```
/// assert!(proofhouse_oatf::known_modes().contains(&"mcp_server"));
/// ```
#[must_use]
pub fn known_modes() -> &'static [&'static str] {
    &[
        "mcp_server",
        "mcp_client",
        "a2a_server",
        "a2a_client",
        "ag_ui_client",
    ]
}

/// The protocols version 0.1 binds.
///
/// ```
/// assert_eq!(proofhouse_oatf::known_protocols(), ["mcp", "a2a", "ag_ui"]);
/// ```
#[must_use]
pub fn known_protocols() -> &'static [&'static str] {
    &["mcp", "a2a", "ag_ui"]
}

const MCP_REQUESTS: &[&str] = &[
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "tasks/get",
    "tasks/result",
    "tasks/list",
    "tasks/cancel",
];

const MCP_TO_SERVER: &[&str] = &[
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
];

const MCP_TO_CLIENT: &[&str] = &[
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/prompts/list_changed",
    "notifications/message",
    "notifications/progress",
    "notifications/cancelled",
    "notifications/tasks/status",
    "notifications/elicitation/complete",
];

const A2A_OPERATIONS: &[&str] = &[
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/list",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    "agent/getAuthenticatedExtendedCard",
    "agent_card/get",
];

const A2A_TO_CLIENT: &[&str] = &["task/status", "task/artifact"];

const AG_UI_EVENTS: &[&str] = &[
    "run_agent_input",
    "run_started",
    "run_finished",
    "run_error",
    "step_started",
    "step_finished",
    "text_message_start",
    "text_message_content",
    "text_message_end",
    "text_message_chunk",
    "tool_call_start",
    "tool_call_args",
    "tool_call_end",
    "tool_call_chunk",
    "tool_call_result",
    "state_snapshot",
    "state_delta",
    "messages_snapshot",
    "activity_snapshot",
    "activity_delta",
    "raw",
    "custom",
];

/// Requests the server side of MCP sends, so that "request" is not what the agent sent.
pub(crate) const MCP_SERVER_INITIATED: &[&str] =
    &["sampling/createMessage", "elicitation/create", "roots/list"];

/// Whether an indicator's surface is an operation of `protocol`; `None` for unknown protocols.
pub(crate) fn is_known_surface(protocol: &str, surface: &str) -> Option<bool> {
    known_surfaces(protocol)
        .map(|mut known| known.any(|name| name == surface) || is_family(protocol, surface))
}

/// The operations of `protocol`, for suggestions.
pub(crate) fn known_surfaces(protocol: &str) -> Option<impl Iterator<Item = &'static str>> {
    let lists: [&'static [&'static str]; 3] = match protocol {
        "mcp" => [MCP_REQUESTS, MCP_TO_SERVER, MCP_TO_CLIENT],
        "a2a" => [A2A_OPERATIONS, A2A_TO_CLIENT, &[]],
        "ag_ui" => [AG_UI_EVENTS, &[], &[]],
        _ => return None,
    };
    Some(lists.into_iter().flatten().copied())
}

/// Whether a trigger in `mode` can see `event`; `None` for unknown modes.
pub(crate) fn is_known_event(mode: &str, event: &str) -> Option<bool> {
    known_events(mode).map(|mut known| {
        known.any(|name| name == event) || is_family(crate::extract_protocol(mode), event)
    })
}

/// The events a trigger in `mode` can see, for suggestions.
pub(crate) fn known_events(mode: &str) -> Option<impl Iterator<Item = &'static str>> {
    let lists: [&'static [&'static str]; 2] = match mode {
        "mcp_server" => [MCP_REQUESTS, MCP_TO_SERVER],
        "mcp_client" => [MCP_REQUESTS, MCP_TO_CLIENT],
        "a2a_server" => [A2A_OPERATIONS, &[]],
        "a2a_client" => [A2A_OPERATIONS, A2A_TO_CLIENT],
        "ag_ui_client" => [AG_UI_EVENTS, &[]],
        _ => return None,
    };
    Some(lists.into_iter().flatten().copied())
}

/// Event families whose members the protocol keeps adding to.
fn is_family(protocol: &str, name: &str) -> bool {
    protocol == "ag_ui" && (name.starts_with("reasoning_") || name.starts_with("thinking_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surfaces_and_events() {
        assert_eq!(is_known_surface("mcp", "tools/call"), Some(true));
        assert_eq!(is_known_surface("mcp", "message/send"), Some(false));
        assert_eq!(is_known_surface("a2a", "task/status"), Some(true));
        assert_eq!(is_known_surface("ag_ui", "reasoning_start"), Some(true));
        assert_eq!(is_known_surface("mcp", "reasoning_start"), Some(false));
        assert_eq!(is_known_surface("voice", "x"), None);
        assert_eq!(
            is_known_event("mcp_server", "notifications/elicitation/complete"),
            Some(false)
        );
        assert_eq!(
            is_known_event("mcp_client", "notifications/elicitation/complete"),
            Some(true)
        );
        assert_eq!(is_known_event("a2a_server", "task/status"), Some(false));
        assert_eq!(is_known_event("a2a_client", "task/status"), Some(true));
        assert_eq!(is_known_event("ag_ui_client", "thinking_end"), Some(true));
        assert_eq!(is_known_event("voice_server", "x"), None);
    }
}
