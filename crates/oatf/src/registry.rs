//! What the three bound protocols define: modes, operations, events. Anything else is accepted,
//! with a warning.

use proofhouse_protocol::a2a::{self, A2aMethod};
use proofhouse_protocol::ag_ui::{self, AgUiEventType};
use proofhouse_protocol::mcp::{McpMethod, McpNotification, McpParty, McpRevision};

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

/// The revision of MCP that version 0.1 binds.
const MCP_REVISION: McpRevision = McpRevision::V2025_11_25;

/// The requests of MCP, of either side: a trigger can see both.
fn mcp_requests() -> impl Iterator<Item = &'static str> {
    let methods = McpMethod::ALL.iter();
    let bound = methods.filter(|method| method.exists_in(MCP_REVISION));
    bound.map(|method| method.as_str())
}

/// The notifications of MCP that the other side than `unheard` may send.
fn mcp_notifications(unheard: McpParty) -> impl Iterator<Item = &'static str> {
    let all = McpNotification::ALL.iter();
    let bound = all.filter(move |notification| {
        notification.exists_in(MCP_REVISION) && notification.sender() != unheard
    });
    bound.map(|notification| notification.as_str())
}

/// The notifications that a server hears. Clients may tell of tasks as well, but 0.1 does not bind that.
fn mcp_to_server() -> impl Iterator<Item = &'static str> {
    let unbound = McpNotification::TasksStatus.as_str();
    mcp_notifications(McpParty::Server).filter(move |name| *name != unbound)
}

fn mcp_to_client() -> impl Iterator<Item = &'static str> {
    mcp_notifications(McpParty::Client)
}

fn a2a_operations() -> impl Iterator<Item = &'static str> {
    let methods = A2aMethod::ALL.iter().map(|method| method.event());
    methods.chain([a2a::CARD_EVENT])
}

const A2A_TO_CLIENT: [&str; 2] = [a2a::STATUS_EVENT, a2a::ARTIFACT_EVENT];

/// The events of AG-UI that 0.1 binds; those of reasoning are a family, and subagents came later.
fn ag_ui_events() -> impl Iterator<Item = &'static str> {
    let all = AgUiEventType::ALL.iter();
    let bound = all.filter(|event| !event.is_reasoning() && !event.is_subagent());
    [ag_ui::INPUT_EVENT]
        .into_iter()
        .chain(bound.map(|event| event.operation()))
}

/// Whether the server side of MCP sends this request, so that "request" is not what the agent sent.
pub(crate) fn is_initiated_by_mcp_server(surface: &str) -> bool {
    McpMethod::parse(surface).is_some_and(|method| method.sender() == McpParty::Server)
}

/// Whether an indicator's surface is an operation of `protocol`; `None` for unknown protocols.
pub(crate) fn is_known_surface(protocol: &str, surface: &str) -> Option<bool> {
    known_surfaces(protocol)
        .map(|mut known| known.any(|name| name == surface) || is_family(protocol, surface))
}

/// The operations of `protocol`, for suggestions.
pub(crate) fn known_surfaces(protocol: &str) -> Option<impl Iterator<Item = &'static str>> {
    let known: Box<dyn Iterator<Item = &'static str>> = match protocol {
        "mcp" => Box::new(mcp_requests().chain(mcp_to_server()).chain(mcp_to_client())),
        "a2a" => Box::new(a2a_operations().chain(A2A_TO_CLIENT)),
        "ag_ui" => Box::new(ag_ui_events()),
        _ => return None,
    };
    Some(known)
}

/// Whether a trigger in `mode` can see `event`; `None` for unknown modes.
pub(crate) fn is_known_event(mode: &str, event: &str) -> Option<bool> {
    known_events(mode).map(|mut known| {
        known.any(|name| name == event) || is_family(crate::extract_protocol(mode), event)
    })
}

/// The events a trigger in `mode` can see, for suggestions.
pub(crate) fn known_events(mode: &str) -> Option<impl Iterator<Item = &'static str>> {
    let known: Box<dyn Iterator<Item = &'static str>> = match mode {
        "mcp_server" => Box::new(mcp_requests().chain(mcp_to_server())),
        "mcp_client" => Box::new(mcp_requests().chain(mcp_to_client())),
        "a2a_server" => Box::new(a2a_operations()),
        "a2a_client" => Box::new(a2a_operations().chain(A2A_TO_CLIENT)),
        "ag_ui_client" => Box::new(ag_ui_events()),
        _ => return None,
    };
    Some(known)
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
