//! The notifications of MCP, and the subscriptions that they come through from 2026-07-28 on.

use serde_json::{Map, Value, json};

use super::{McpParty, McpRevision, meta};
use crate::rpc;

/// Resources that one subscription is heard for; a client could ask for any number.
const MAX_RESOURCES: usize = 1_000;

names! {
    /// A notification of MCP, in whichever revision it exists.
    ///
    /// ```
    /// use proofhouse_protocol::mcp::{McpNotification, McpParty};
    ///
    /// let told = McpNotification::parse("notifications/tools/list_changed").unwrap();
    /// assert_eq!((told.sender(), told.subscription()), (McpParty::Server, Some("toolsListChanged")));
    /// ```
    pub enum McpNotification {
        /// The client is through with the handshake.
        Initialized = "notifications/initialized",
        /// A request is not waited for any more.
        Cancelled = "notifications/cancelled",
        /// How far a request is.
        Progress = "notifications/progress",
        /// The client offers other directories.
        RootsListChanged = "notifications/roots/list_changed",
        /// There are other tools.
        ToolsListChanged = "notifications/tools/list_changed",
        /// There are other resources.
        ResourcesListChanged = "notifications/resources/list_changed",
        /// A resource has changed.
        ResourcesUpdated = "notifications/resources/updated",
        /// There are other prompts.
        PromptsListChanged = "notifications/prompts/list_changed",
        /// A log message.
        Message = "notifications/message",
        /// How far a task is.
        TasksStatus = "notifications/tasks/status",
        /// What was asked of the user elsewhere is done.
        ElicitationComplete = "notifications/elicitation/complete",
        /// What of a subscription is heard.
        SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged",
    }
}

impl McpNotification {
    /// What the name of every notification begins with.
    pub const PREFIX: &'static str = "notifications/";

    /// Who sends it.
    #[must_use]
    pub const fn sender(self) -> McpParty {
        match self {
            Self::Initialized | Self::RootsListChanged => McpParty::Client,
            Self::Cancelled | Self::Progress | Self::TasksStatus => McpParty::Both,
            Self::ToolsListChanged
            | Self::ResourcesListChanged
            | Self::ResourcesUpdated
            | Self::PromptsListChanged
            | Self::Message
            | Self::ElicitationComplete
            | Self::SubscriptionsAcknowledged => McpParty::Server,
        }
    }

    /// Whether a revision has it.
    #[must_use]
    pub fn exists_in(self, revision: McpRevision) -> bool {
        match self {
            Self::Initialized | Self::RootsListChanged => revision.has_sessions(),
            Self::TasksStatus | Self::ElicitationComplete => {
                revision >= McpRevision::V2025_11_25 && revision.has_sessions()
            }
            Self::SubscriptionsAcknowledged => revision.is_stateless(),
            Self::Cancelled
            | Self::Progress
            | Self::ToolsListChanged
            | Self::ResourcesListChanged
            | Self::ResourcesUpdated
            | Self::PromptsListChanged
            | Self::Message => true,
        }
    }

    /// The member of a subscription's filter that asks for it; `None` for those that nobody subscribes to.
    #[must_use]
    pub const fn subscription(self) -> Option<&'static str> {
        Some(match self {
            Self::ToolsListChanged => "toolsListChanged",
            Self::PromptsListChanged => "promptsListChanged",
            Self::ResourcesListChanged => "resourcesListChanged",
            Self::ResourcesUpdated => "resourceSubscriptions",
            Self::Initialized
            | Self::Cancelled
            | Self::Progress
            | Self::RootsListChanged
            | Self::Message
            | Self::TasksStatus
            | Self::ElicitationComplete
            | Self::SubscriptionsAcknowledged => return None,
        })
    }
}

/// What of a wanted subscription can be heard: the flags that are true, and the resources that are named.
///
/// ```
/// use proofhouse_protocol::mcp::{subscription_filter, wants_notification};
/// use serde_json::json;
///
/// let filter = subscription_filter(&json!({"toolsListChanged": true, "resourceSubscriptions": ["a://b", 3], "x": 1}));
/// assert_eq!(filter, json!({"toolsListChanged": true, "resourceSubscriptions": ["a://b"]}));
/// assert!(wants_notification(&filter, "notifications/tools/list_changed", &json!({})));
/// assert!(wants_notification(&filter, "notifications/resources/updated", &json!({"uri": "a://b"})));
/// assert!(!wants_notification(&filter, "notifications/prompts/list_changed", &json!({})));
/// ```
#[must_use]
pub fn subscription_filter(wanted: &Value) -> Value {
    let mut filter = json!({});
    for list in [
        McpNotification::ToolsListChanged,
        McpNotification::PromptsListChanged,
        McpNotification::ResourcesListChanged,
    ] {
        if let Some(key) = list.subscription()
            && wanted.get(key) == Some(&Value::Bool(true))
        {
            filter[key] = true.into();
        }
    }
    if let Some(key) = McpNotification::ResourcesUpdated.subscription()
        && let Some(Value::Array(uris)) = wanted.get(key)
    {
        let uris = uris.iter().filter(|uri| uri.is_string());
        filter[key] = uris.take(MAX_RESOURCES).cloned().collect();
    }
    filter
}

/// Whether a subscription with this filter hears a notification.
#[must_use]
pub fn wants_notification(filter: &Value, method: &str, params: &Value) -> bool {
    let asked = McpNotification::parse(method)
        .and_then(McpNotification::subscription)
        .and_then(|key| filter.get(key));
    match asked {
        Some(Value::Array(uris)) => params.get("uri").is_some_and(|uri| uris.contains(uri)),
        Some(asked) => *asked == Value::Bool(true),
        None => false,
    }
}

/// Parameters of a notification that say which subscription they belong to.
///
/// ```
/// use proofhouse_protocol::mcp::{meta, tag_params};
/// use serde_json::json;
///
/// let tagged = tag_params(&json!({"uri": "a://b"}), &json!(7));
/// assert_eq!(tagged, json!({"uri": "a://b", "_meta": {meta::SUBSCRIPTION_ID: 7}}));
/// ```
#[must_use]
pub fn tag_params(params: &Value, subscription: &Value) -> Value {
    let mut params = match params {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    let meta = params.entry(meta::KEY).or_insert_with(|| json!({}));
    if let Value::Object(meta) = meta {
        meta.insert(
            meta::SUBSCRIPTION_ID.to_owned(),
            rpc::plain_id(subscription),
        );
    }
    Value::Object(params)
}
