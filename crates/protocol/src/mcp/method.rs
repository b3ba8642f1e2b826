//! The requests of MCP: what each is called, who sends it, and which revisions have it.

use super::McpRevision;

names! {
    /// A request of MCP, in whichever revision it exists.
    ///
    /// ```
    /// use proofhouse_protocol::mcp::{McpMethod, McpRevision};
    ///
    /// let method = McpMethod::parse("tools/call").unwrap();
    /// assert_eq!(method.item_param(), Some("name"));
    /// assert!(McpMethod::ServerDiscover.exists_in(McpRevision::V2026_07_28));
    /// assert!(!McpMethod::Ping.exists_in(McpRevision::V2026_07_28));
    /// assert_eq!(McpMethod::parse("tools/fly"), None);
    /// ```
    pub enum McpMethod {
        /// The handshake.
        Initialize = "initialize",
        /// Asks whether the other end is there.
        Ping = "ping",
        /// The tools there are.
        ToolsList = "tools/list",
        /// Calls a tool.
        ToolsCall = "tools/call",
        /// The resources there are.
        ResourcesList = "resources/list",
        /// Reads a resource.
        ResourcesRead = "resources/read",
        /// The templates of resources there are.
        ResourcesTemplatesList = "resources/templates/list",
        /// Asks to hear of changes of a resource.
        ResourcesSubscribe = "resources/subscribe",
        /// Asks not to hear of them any more.
        ResourcesUnsubscribe = "resources/unsubscribe",
        /// The prompts there are.
        PromptsList = "prompts/list",
        /// A prompt with its arguments filled in.
        PromptsGet = "prompts/get",
        /// Suggestions for an argument.
        CompletionComplete = "completion/complete",
        /// Says how urgent log messages must be.
        LoggingSetLevel = "logging/setLevel",
        /// Asks the client's model.
        SamplingCreateMessage = "sampling/createMessage",
        /// Asks the client's user.
        ElicitationCreate = "elicitation/create",
        /// The directories that the client offers.
        RootsList = "roots/list",
        /// How far a task is.
        TasksGet = "tasks/get",
        /// What a task came to.
        TasksResult = "tasks/result",
        /// The tasks there are.
        TasksList = "tasks/list",
        /// Cancels a task.
        TasksCancel = "tasks/cancel",
        /// What a server of the stateless revisions says of itself.
        ServerDiscover = "server/discover",
        /// Asks to hear of changes, on a stream that stays open.
        SubscriptionsListen = "subscriptions/listen",
    }
}

/// Who sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum McpParty {
    /// The client only.
    Client,
    /// The server only.
    Server,
    /// Either.
    Both,
}

impl McpMethod {
    /// Who sends it.
    #[must_use]
    pub const fn sender(self) -> McpParty {
        match self {
            Self::Ping
            | Self::TasksGet
            | Self::TasksResult
            | Self::TasksList
            | Self::TasksCancel => McpParty::Both,
            Self::SamplingCreateMessage | Self::ElicitationCreate | Self::RootsList => {
                McpParty::Server
            }
            Self::Initialize
            | Self::ToolsList
            | Self::ToolsCall
            | Self::ResourcesList
            | Self::ResourcesRead
            | Self::ResourcesTemplatesList
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe
            | Self::PromptsList
            | Self::PromptsGet
            | Self::CompletionComplete
            | Self::LoggingSetLevel
            | Self::ServerDiscover
            | Self::SubscriptionsListen => McpParty::Client,
        }
    }

    /// Whether a revision has it. What servers ask clients travels inside of results from 2026-07-28 on, under the
    /// same name; tasks are an extension there.
    #[must_use]
    pub fn exists_in(self, revision: McpRevision) -> bool {
        match self {
            Self::Initialize
            | Self::Ping
            | Self::LoggingSetLevel
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe => revision.has_sessions(),
            Self::ElicitationCreate => revision >= McpRevision::V2025_06_18,
            Self::TasksGet | Self::TasksResult | Self::TasksList | Self::TasksCancel => {
                revision >= McpRevision::V2025_11_25 && revision.has_sessions()
            }
            Self::ServerDiscover | Self::SubscriptionsListen => revision.is_stateless(),
            Self::ToolsList
            | Self::ToolsCall
            | Self::ResourcesList
            | Self::ResourcesRead
            | Self::ResourcesTemplatesList
            | Self::PromptsList
            | Self::PromptsGet
            | Self::CompletionComplete
            | Self::SamplingCreateMessage
            | Self::RootsList => true,
        }
    }

    /// The parameter that names the tool, prompt or resource that it uses; `None` for a method that uses none.
    #[must_use]
    pub const fn item_param(self) -> Option<&'static str> {
        match self {
            Self::ToolsCall | Self::PromptsGet => Some("name"),
            Self::ResourcesRead => Some("uri"),
            Self::Initialize
            | Self::Ping
            | Self::ToolsList
            | Self::ResourcesList
            | Self::ResourcesTemplatesList
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe
            | Self::PromptsList
            | Self::CompletionComplete
            | Self::LoggingSetLevel
            | Self::SamplingCreateMessage
            | Self::ElicitationCreate
            | Self::RootsList
            | Self::TasksGet
            | Self::TasksResult
            | Self::TasksList
            | Self::TasksCancel
            | Self::ServerDiscover
            | Self::SubscriptionsListen => None,
        }
    }

    /// The parameter that a client repeats in the header `Mcp-Name`, also for the tasks of an extension.
    ///
    /// ```
    /// use proofhouse_protocol::mcp::McpMethod;
    ///
    /// assert_eq!(McpMethod::mirrored_param("resources/read"), Some("uri"));
    /// assert_eq!(McpMethod::mirrored_param("tasks/update"), Some("taskId"));
    /// assert_eq!(McpMethod::mirrored_param("tools/list"), None);
    /// ```
    #[must_use]
    pub fn mirrored_param(method: &str) -> Option<&'static str> {
        let item = Self::parse(method).and_then(Self::item_param);
        item.or_else(|| method.starts_with("tasks/").then_some("taskId"))
    }

    /// What a client must have declared for a server to ask it this; `None` for what needs no declaration.
    #[must_use]
    pub const fn client_capability(self) -> Option<&'static str> {
        match self {
            Self::ElicitationCreate => Some("elicitation"),
            Self::SamplingCreateMessage => Some("sampling"),
            Self::RootsList => Some("roots"),
            Self::Initialize
            | Self::Ping
            | Self::ToolsList
            | Self::ToolsCall
            | Self::ResourcesList
            | Self::ResourcesRead
            | Self::ResourcesTemplatesList
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe
            | Self::PromptsList
            | Self::PromptsGet
            | Self::CompletionComplete
            | Self::LoggingSetLevel
            | Self::TasksGet
            | Self::TasksResult
            | Self::TasksList
            | Self::TasksCancel
            | Self::ServerDiscover
            | Self::SubscriptionsListen => None,
        }
    }

    /// Whether its result only makes sense together with what was asked for: which tool, which prompt.
    #[must_use]
    pub const fn result_needs_call(self) -> bool {
        matches!(self, Self::ToolsCall | Self::PromptsGet)
    }

    /// Whether its result may ask for input first (`input_required`), in the stateless revisions.
    #[must_use]
    pub const fn may_require_input(self) -> bool {
        self.item_param().is_some()
    }

    /// Whether its result says how long it may be kept, in the stateless revisions.
    #[must_use]
    pub const fn is_cacheable(self) -> bool {
        matches!(
            self,
            Self::ServerDiscover
                | Self::ToolsList
                | Self::ResourcesList
                | Self::ResourcesTemplatesList
                | Self::PromptsList
                | Self::ResourcesRead
        )
    }

    /// Whether it may be cancelled once it is sent.
    #[must_use]
    pub const fn is_cancellable(self) -> bool {
        !matches!(self, Self::Initialize | Self::ServerDiscover)
    }

    /// The member of its result that is a list and tells its result from others; `None` where there is none.
    ///
    /// ```
    /// use proofhouse_protocol::mcp::McpMethod;
    ///
    /// assert_eq!(McpMethod::ResourcesRead.list_member(), Some("contents"));
    /// ```
    #[must_use]
    pub const fn list_member(self) -> Option<&'static str> {
        Some(match self {
            Self::ToolsList => "tools",
            Self::ToolsCall => "content",
            Self::ResourcesList => "resources",
            Self::ResourcesRead => "contents",
            Self::ResourcesTemplatesList => "resourceTemplates",
            Self::PromptsList => "prompts",
            Self::PromptsGet => "messages",
            Self::RootsList => "roots",
            Self::Initialize
            | Self::Ping
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe
            | Self::CompletionComplete
            | Self::LoggingSetLevel
            | Self::SamplingCreateMessage
            | Self::ElicitationCreate
            | Self::TasksGet
            | Self::TasksResult
            | Self::TasksList
            | Self::TasksCancel
            | Self::ServerDiscover
            | Self::SubscriptionsListen => return None,
        })
    }

    /// Whether a method can only be one of MCP, by the family that its name begins with; methods to come are of a
    /// family, too.
    ///
    /// ```
    /// use proofhouse_protocol::mcp::McpMethod;
    ///
    /// assert!(McpMethod::is_of_family("notifications/anything") && McpMethod::is_of_family("tools/fly"));
    /// assert!(!McpMethod::is_of_family("tasks/get"), "A2A has tasks as well");
    /// ```
    #[must_use]
    pub fn is_of_family(method: &str) -> bool {
        const FAMILIES: [&str; 10] = [
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
        FAMILIES.iter().any(|family| method.starts_with(family))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_come_and_go_with_revisions() {
        let of = |revision| {
            let all = McpMethod::ALL.iter();
            all.filter(|method| method.exists_in(revision)).count()
        };
        let counts: Vec<usize> = McpRevision::ALL.iter().map(|known| of(*known)).collect();
        assert_eq!(counts, [15, 15, 16, 20, 13]);
    }
}
