//! What the three bound protocols define: modes, operations, events. Anything else is accepted,
//! with a warning.

use crate::model::{Mode, Protocol, Surface};

/// The modes version 0.1 binds, as [`Mode`] lists them.
///
/// ```
/// assert!(proofhouse_oatf::known_modes().contains(&"mcp_server"));
/// ```
#[must_use]
pub fn known_modes() -> &'static [&'static str] {
    Mode::NAMES
}

/// The protocols version 0.1 binds, as [`Protocol`] lists them.
///
/// ```
/// assert_eq!(proofhouse_oatf::known_protocols(), ["mcp", "a2a", "ag_ui"]);
/// ```
#[must_use]
pub fn known_protocols() -> &'static [&'static str] {
    Protocol::NAMES
}

/// The operations of one protocol, by the side that sees them.
struct ProtocolBinding {
    both: &'static [Surface],
    to_server: &'static [Surface],
    to_client: &'static [Surface],
}

static MCP: ProtocolBinding = ProtocolBinding {
    both: MCP_REQUESTS,
    to_server: MCP_TO_SERVER,
    to_client: MCP_TO_CLIENT,
};

static A2A: ProtocolBinding = ProtocolBinding {
    both: A2A_OPERATIONS,
    to_server: &[],
    to_client: A2A_TO_CLIENT,
};

static AG_UI: ProtocolBinding = ProtocolBinding {
    both: AG_UI_EVENTS,
    to_server: &[],
    to_client: &[],
};

/// The operations of a protocol that version 0.1 binds.
fn binding(protocol: &Protocol) -> Option<&'static ProtocolBinding> {
    match protocol {
        Protocol::Mcp => Some(&MCP),
        Protocol::A2a => Some(&A2A),
        Protocol::AgUi => Some(&AG_UI),
        Protocol::Other(_) => None,
    }
}

const MCP_REQUESTS: &[Surface] = &[
    Surface::Initialize,
    Surface::Ping,
    Surface::ToolsList,
    Surface::ToolsCall,
    Surface::ResourcesList,
    Surface::ResourcesRead,
    Surface::ResourcesTemplatesList,
    Surface::ResourcesSubscribe,
    Surface::ResourcesUnsubscribe,
    Surface::PromptsList,
    Surface::PromptsGet,
    Surface::CompletionComplete,
    Surface::LoggingSetLevel,
    Surface::SamplingCreateMessage,
    Surface::ElicitationCreate,
    Surface::RootsList,
    Surface::TasksGet,
    Surface::TasksResult,
    Surface::TasksList,
    Surface::TasksCancel,
];

const MCP_TO_SERVER: &[Surface] = &[
    Surface::NotificationsInitialized,
    Surface::NotificationsCancelled,
    Surface::NotificationsProgress,
    Surface::NotificationsRootsListChanged,
];

const MCP_TO_CLIENT: &[Surface] = &[
    Surface::NotificationsToolsListChanged,
    Surface::NotificationsResourcesListChanged,
    Surface::NotificationsResourcesUpdated,
    Surface::NotificationsPromptsListChanged,
    Surface::NotificationsMessage,
    Surface::NotificationsProgress,
    Surface::NotificationsCancelled,
    Surface::NotificationsTasksStatus,
    Surface::NotificationsElicitationComplete,
];

const A2A_OPERATIONS: &[Surface] = &[
    Surface::MessageSend,
    Surface::MessageStream,
    Surface::TasksGet,
    Surface::TasksCancel,
    Surface::TasksResubscribe,
    Surface::TasksList,
    Surface::TasksPushNotificationConfigSet,
    Surface::TasksPushNotificationConfigGet,
    Surface::TasksPushNotificationConfigList,
    Surface::TasksPushNotificationConfigDelete,
    Surface::AgentGetAuthenticatedExtendedCard,
    Surface::AgentCardGet,
];

const A2A_TO_CLIENT: &[Surface] = &[Surface::TaskStatus, Surface::TaskArtifact];

const AG_UI_EVENTS: &[Surface] = &[
    Surface::RunAgentInput,
    Surface::RunStarted,
    Surface::RunFinished,
    Surface::RunError,
    Surface::StepStarted,
    Surface::StepFinished,
    Surface::TextMessageStart,
    Surface::TextMessageContent,
    Surface::TextMessageEnd,
    Surface::TextMessageChunk,
    Surface::ToolCallStart,
    Surface::ToolCallArgs,
    Surface::ToolCallEnd,
    Surface::ToolCallChunk,
    Surface::ToolCallResult,
    Surface::StateSnapshot,
    Surface::StateDelta,
    Surface::MessagesSnapshot,
    Surface::ActivitySnapshot,
    Surface::ActivityDelta,
    Surface::Raw,
    Surface::Custom,
];

/// Requests the server side of MCP sends, so that "request" is not what the agent sent.
pub(crate) const MCP_SERVER_INITIATED: &[Surface] = &[
    Surface::SamplingCreateMessage,
    Surface::ElicitationCreate,
    Surface::RootsList,
];

/// Whether an indicator's surface is an operation of `protocol`; `None` for unknown protocols.
pub(crate) fn is_known_surface(protocol: &Protocol, surface: &Surface) -> Option<bool> {
    known_surfaces(protocol).map(|mut known| {
        known.any(|name| name == surface.as_str()) || is_family(protocol, surface.as_str())
    })
}

/// The operations of `protocol`, for suggestions.
pub(crate) fn known_surfaces(protocol: &Protocol) -> Option<impl Iterator<Item = &'static str>> {
    let binding = binding(protocol)?;
    let lists = [binding.both, binding.to_server, binding.to_client];
    Some(lists.into_iter().flatten().map(Surface::as_str))
}

/// Whether a trigger in `mode` can see `event`; `None` for unknown modes.
pub(crate) fn is_known_event(mode: &Mode, event: &str) -> Option<bool> {
    known_events(mode)
        .map(|mut known| known.any(|name| name == event) || is_family(&mode.protocol(), event))
}

/// The events a trigger in `mode` can see, for suggestions.
pub(crate) fn known_events(mode: &Mode) -> Option<impl Iterator<Item = &'static str>> {
    if !mode.is_known() {
        return None;
    }
    let binding = binding(&mode.protocol())?;
    let seen_here = if mode.is_server() {
        binding.to_server
    } else {
        binding.to_client
    };
    let lists = [binding.both, seen_here];
    Some(lists.into_iter().flatten().map(Surface::as_str))
}

/// Event families whose members the protocol keeps adding to.
fn is_family(protocol: &Protocol, name: &str) -> bool {
    *protocol == Protocol::AgUi && (name.starts_with("reasoning_") || name.starts_with("thinking_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_protocol::a2a::{self, A2aMethod};
    use proofhouse_protocol::ag_ui::{self, AgUiEventType};
    use proofhouse_protocol::mcp::{McpMethod, McpNotification, McpParty, McpRevision};

    /// The revision of MCP that version 0.1 binds.
    const BOUND: McpRevision = McpRevision::V2025_11_25;

    fn names(surfaces: &[Surface]) -> Vec<&str> {
        surfaces.iter().map(Surface::as_str).collect()
    }

    #[test]
    fn surfaces_are_those_of_the_protocols() {
        let requests = McpMethod::ALL.iter();
        let requests = requests.filter(|method| method.exists_in(BOUND));
        let requests: Vec<&str> = requests.map(|method| method.as_str()).collect();
        assert_eq!(names(MCP_REQUESTS), requests);
        let told_by = |unheard: McpParty| {
            let all = McpNotification::ALL.iter();
            let told = all.filter(|told| told.exists_in(BOUND) && told.sender() != unheard);
            let mut told: Vec<&str> = told.map(|told| told.as_str()).collect();
            told.sort_unstable();
            told
        };
        let sorted = |surfaces: &'static [Surface]| {
            let mut names = names(surfaces);
            names.sort_unstable();
            names
        };
        assert_eq!(sorted(MCP_TO_CLIENT), told_by(McpParty::Client));
        // Clients may tell of tasks as well, but 0.1 does not bind that.
        let mut heard = told_by(McpParty::Server);
        heard.retain(|name| *name != McpNotification::TasksStatus.as_str());
        assert_eq!(sorted(MCP_TO_SERVER), heard);
        let asked = McpMethod::ALL.iter();
        let asked = asked.filter(|method| method.sender() == McpParty::Server);
        let asked: Vec<&str> = asked.map(|method| method.as_str()).collect();
        assert_eq!(names(MCP_SERVER_INITIATED), asked);

        let operations = A2aMethod::ALL.iter().map(|method| method.event());
        let operations: Vec<&str> = operations.chain([a2a::CARD_EVENT]).collect();
        assert_eq!(names(A2A_OPERATIONS), operations);
        assert_eq!(
            names(A2A_TO_CLIENT),
            [a2a::STATUS_EVENT, a2a::ARTIFACT_EVENT]
        );

        // Those of reasoning are a family, and subagents came later.
        let events = AgUiEventType::ALL.iter();
        let events = events.filter(|event| !event.is_reasoning() && !event.is_subagent());
        let mut expected = vec![ag_ui::INPUT_EVENT];
        expected.extend(events.map(|event| event.operation()));
        assert_eq!(names(AG_UI_EVENTS), expected);
    }

    #[test]
    fn surfaces_and_events() {
        let is_known_surface = |protocol: &str, surface: &str| {
            is_known_surface(&Protocol::from(protocol), &Surface::from(surface))
        };
        let is_known_event = |mode: &str, event: &str| is_known_event(&Mode::from(mode), event);
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
