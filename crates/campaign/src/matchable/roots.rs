//! What the messages of the bound protocols can have at their root, by operation, and what states may say.

use proofhouse_oatf::{Direction, Mode, Protocol};
use proofhouse_protocol::a2a::{self, A2aMethod};
use proofhouse_protocol::ag_ui::{self, AgUiEventType};
use proofhouse_protocol::mcp::{McpMethod, McpNotification};
use proofhouse_range::UNPARSED;

/// An operation, or the beginning of several, with what its requests and its responses have at their root.
type Row = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

static MCP: &[Row] = &[
    (
        "initialize",
        &["protocolVersion", "capabilities", "clientInfo"],
        &[
            "protocolVersion",
            "capabilities",
            "serverInfo",
            "instructions",
        ],
    ),
    (
        "server/discover",
        &[],
        &[
            "supportedVersions",
            "capabilities",
            "serverInfo",
            "instructions",
            "ttlMs",
            "cacheScope",
        ],
    ),
    ("ping", &[], &[]),
    (
        "tools/list",
        &["cursor"],
        &["tools", "nextCursor", "ttlMs", "cacheScope"],
    ),
    (
        "tools/call",
        &[
            "name",
            "arguments",
            "task",
            "inputResponses",
            "requestState",
        ],
        &["content", "structuredContent", "isError", "task"],
    ),
    (
        "resources/list",
        &["cursor"],
        &["resources", "nextCursor", "ttlMs", "cacheScope"],
    ),
    (
        "resources/templates/list",
        &["cursor"],
        &["resourceTemplates", "nextCursor", "ttlMs", "cacheScope"],
    ),
    (
        "resources/read",
        &["uri", "inputResponses", "requestState"],
        &["contents", "ttlMs", "cacheScope"],
    ),
    ("resources/", &["uri"], &[]),
    (
        "prompts/list",
        &["cursor"],
        &["prompts", "nextCursor", "ttlMs", "cacheScope"],
    ),
    (
        "prompts/get",
        &["name", "arguments", "inputResponses", "requestState"],
        &["description", "messages"],
    ),
    (
        "completion/complete",
        &["ref", "argument", "context"],
        &["completion"],
    ),
    ("logging/setLevel", &["level"], &[]),
    (
        "sampling/createMessage",
        &[
            "messages",
            "modelPreferences",
            "systemPrompt",
            "includeContext",
            "temperature",
            "maxTokens",
            "stopSequences",
            "metadata",
            "tools",
            "toolChoice",
            "task",
        ],
        &["role", "content", "model", "stopReason", "task"],
    ),
    (
        "elicitation/create",
        &[
            "message",
            "requestedSchema",
            "mode",
            "url",
            "elicitationId",
            "task",
        ],
        &["action", "content", "task"],
    ),
    ("roots/list", &[], &["roots"]),
    (
        "subscriptions/listen",
        &["notifications", "uris", "filter", "subscriptions"],
        &["subscriptionId"],
    ),
];

/// What responses of MCP may have besides.
static MCP_ANSWERS: &[&str] = &[
    "resultType",
    "inputRequests",
    "requestState",
    "code",
    "message",
    "data",
    "error",
];

static A2A_TASK: &[&str] = &[
    "kind",
    "id",
    "contextId",
    "status",
    "artifacts",
    "history",
    "metadata",
    "messageId",
    "role",
    "parts",
    "content",
    "referenceTaskIds",
    "extensions",
    "taskId",
    "artifact",
    "append",
    "lastChunk",
    "final",
    "index",
    "task",
    "message",
    "msg",
    "statusUpdate",
    "artifactUpdate",
    "tasks",
    "nextPageToken",
    "pageSize",
    "totalSize",
    "configs",
    "url",
    "token",
    "authentication",
    "pushNotificationConfig",
    "config",
];

static A2A_CARD: &[&str] = &[
    "name",
    "description",
    "url",
    "version",
    "provider",
    "capabilities",
    "authentication",
    "securitySchemes",
    "security",
    "securityRequirements",
    "defaultInputModes",
    "defaultOutputModes",
    "skills",
    "iconUrl",
    "documentationUrl",
    "preferredTransport",
    "additionalInterfaces",
    "supportedInterfaces",
    "protocolVersion",
    "protocolVersions",
    "signatures",
    "supportsAuthenticatedExtendedCard",
    "supportsExtendedAgentCard",
    "metadata",
];

static A2A: &[Row] = &[
    (
        "message/",
        &["message", "configuration", "metadata", "tenant"],
        A2A_TASK,
    ),
    (
        "tasks/",
        &[
            "id",
            "taskId",
            "name",
            "historyLength",
            "metadata",
            "tenant",
            "contextId",
            "status",
            "pageSize",
            "pageToken",
            "lastUpdatedAfter",
            "includeArtifacts",
            "pushNotificationConfig",
            "pushNotificationConfigId",
            "config",
            "configId",
            "url",
            "token",
            "authentication",
            "parent",
        ],
        A2A_TASK,
    ),
    ("task/", A2A_TASK, A2A_TASK),
    ("agent", &["tenant"], A2A_CARD),
];

/// What responses of A2A may have besides.
static A2A_ANSWERS: &[&str] = &["code", "message", "data", "error"];

static AG_UI_INPUT: &[&str] = &[
    "threadId",
    "runId",
    "parentRunId",
    "state",
    "messages",
    "tools",
    "context",
    "forwardedProps",
    "resume",
    "agent",
    "config",
];

static AG_UI_EVENTS: &[&str] = &[
    "type",
    "timestamp",
    "rawEvent",
    "threadId",
    "runId",
    "parentRunId",
    "input",
    "result",
    "outcome",
    "interrupts",
    "message",
    "code",
    "stepName",
    "messageId",
    "role",
    "name",
    "delta",
    "title",
    "toolCallId",
    "toolCallName",
    "parentMessageId",
    "args",
    "content",
    "snapshot",
    "messages",
    "activityType",
    "replace",
    "patch",
    "event",
    "source",
    "value",
    "encryptedValue",
    "entityId",
    "subtype",
    "status",
    "contentType",
    "body",
    "metadata",
    "error",
];

static AG_UI: &[Row] = &[
    ("run_agent_input", AG_UI_INPUT, AG_UI_EVENTS),
    ("", AG_UI_EVENTS, AG_UI_EVENTS),
];

/// The operations that messages of a protocol can have, for known protocols.
pub(super) fn surfaces(protocol: &Protocol) -> Option<Vec<&'static str>> {
    let mut surfaces: Vec<&'static str> = match protocol {
        Protocol::Mcp => {
            let methods = McpMethod::ALL.iter().map(|method| method.as_str());
            let told = McpNotification::ALL.iter().map(|told| told.as_str());
            methods.chain(told).collect()
        }
        Protocol::A2a => {
            let methods = A2aMethod::ALL.iter().map(|method| method.event());
            let others = [a2a::CARD_EVENT, a2a::STATUS_EVENT, a2a::ARTIFACT_EVENT];
            methods.chain(others).collect()
        }
        Protocol::AgUi => {
            let events = AgUiEventType::ALL.iter().map(|event| event.operation());
            events.chain([ag_ui::INPUT_EVENT]).collect()
        }
        Protocol::Other(_) => return None,
    };
    surfaces.push(UNPARSED);
    Some(surfaces)
}

/// Whether a protocol keeps adding to the operations that begin like this.
pub(super) fn is_of_family(protocol: &Protocol, surface: &str) -> bool {
    *protocol == Protocol::AgUi
        && (surface.starts_with("reasoning_") || surface.starts_with("thinking_"))
}

/// What messages can have at their root; `None` where that can be anything.
pub(super) fn roots(
    protocol: &Protocol,
    surface: Option<&str>,
    direction: Option<Direction>,
) -> Option<Vec<&'static str>> {
    let (rows, answers): (&[Row], &[&str]) = match protocol {
        Protocol::Mcp => (MCP, MCP_ANSWERS),
        Protocol::A2a => (A2A, A2A_ANSWERS),
        Protocol::AgUi => (AG_UI, &[]),
        Protocol::Other(_) => return None,
    };
    let rows: Vec<&Row> = match surface {
        None => rows.iter().collect(),
        // The whole of an entry of another operation first; of what begins alike, the first row.
        Some(surface) => {
            let same = rows.iter().find(|(name, ..)| *name == surface);
            let row = same.or_else(|| {
                let is_family =
                    |name: &str| name.is_empty() || name.ends_with('/') || name == "agent";
                rows.iter()
                    .find(|(name, ..)| is_family(name) && surface.starts_with(name))
            });
            vec![row?]
        }
    };
    // Notifications and tasks of MCP carry what others of them define.
    let is_open = |surface: Option<&str>| *protocol == Protocol::Mcp && surface.is_none();
    let mut roots = Vec::new();
    for (_, request, response) in rows {
        roots.extend_from_slice(request);
        // Responses to clients are enriched with what was asked.
        if direction != Some(Direction::Request) {
            roots.extend_from_slice(response);
            roots.extend_from_slice(answers);
        }
    }
    if is_open(surface) {
        roots.extend_from_slice(MCP_NOTIFIED);
    }
    Some(roots)
}

/// What notifications and tasks of MCP have, where an indicator looks at every operation.
static MCP_NOTIFIED: &[&str] = &[
    "requestId",
    "reason",
    "progressToken",
    "progress",
    "total",
    "message",
    "level",
    "logger",
    "data",
    "uri",
    "taskId",
    "status",
    "statusMessage",
    "createdAt",
    "lastUpdatedAt",
    "ttl",
    "pollInterval",
    "tasks",
    "elicitationId",
    "notifications",
];

/// The keys that a state of this mode may have, for known modes.
pub(super) fn state_keys(mode: &Mode) -> Option<&'static [&'static str]> {
    Some(match mode {
        Mode::McpServer => &[
            "protocol_version",
            "server_info",
            "instructions",
            "capabilities",
            "tools",
            "resources",
            "resource_templates",
            "prompts",
            "elicitations",
        ],
        Mode::McpClient => &[
            "protocol_version",
            "client_info",
            "capabilities",
            "actions",
            "sampling_responses",
            "elicitation_responses",
            "roots",
        ],
        Mode::A2aServer => &["agent_card", "task_responses", "verbatim"],
        Mode::A2aClient => &["actions", "verbatim"],
        Mode::AgUiClient => &["run_agent_input", "tool_responses"],
        Mode::Other(_) => return None,
    })
}
