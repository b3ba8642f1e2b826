//! The open enumerations: protocols, modes, surfaces and frameworks. The format lists the names it knows and accepts
//! any other, so each of these types has a case for every listed name and one for the rest.

use std::fmt;
use std::sync::Arc;

/// A name that a version of the format does not list.
///
/// It comes only from reading a text, so a listed name is never found in here, and two values are equal exactly when
/// their texts are.
///
/// ```
/// use proofhouse_oatf::Protocol;
/// let Protocol::Other(name) = Protocol::from("voice") else { unreachable!() };
/// assert_eq!(name.as_str(), "voice");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct OtherName(Arc<str>);

impl OtherName {
    /// The name as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OtherName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Declares an enumeration with a case for every name that the format lists, and one for all others.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident => $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )+
            /// A name that this version of the format does not list.
            Other(OtherName),
        }

        impl $name {
            /// Every listed name, in the order of the specification.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// Every listed case, in the order of the specification.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),+];

            /// The name as it stands in documents.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )+
                    Self::Other(name) => name.as_str(),
                }
            }

            /// Whether this version of the format lists the name.
            #[must_use]
            pub fn is_known(&self) -> bool {
                !matches!(self, Self::Other(_))
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $( $text => Self::$variant, )+
                    other => Self::Other(OtherName(other.into())),
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::from(text.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::convert::Infallible;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Ok(Self::from(text))
            }
        }

        /// The empty name, which no valid document has.
        impl Default for $name {
            fn default() -> Self {
                Self::Other(OtherName::default())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        /// Ordered as their texts are.
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct NameText;

                impl serde::de::Visitor<'_> for NameText {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a string")
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        Ok($name::from(text))
                    }
                }

                deserializer.deserialize_str(NameText)
            }
        }
    };
}

open_enum! {
    /// A protocol that agents speak.
    ///
    /// ```
    /// use proofhouse_oatf::Protocol;
    /// assert_eq!(Protocol::from("mcp"), Protocol::Mcp);
    /// assert_eq!(Protocol::AgUi.to_string(), "ag_ui");
    /// assert!(!Protocol::from("voice").is_known());
    /// assert_eq!(Protocol::from("voice").as_str(), "voice");
    /// ```
    pub enum Protocol {
        /// The Model Context Protocol.
        Mcp => "mcp",
        /// Agent2Agent.
        A2a => "a2a",
        /// AG-UI.
        AgUi => "ag_ui",
    }
}

open_enum! {
    /// The attacker's posture: a protocol and the side that is played.
    ///
    /// ```
    /// use proofhouse_oatf::{Mode, Protocol};
    /// let mode = Mode::from("mcp_server");
    /// assert_eq!(mode, Mode::McpServer);
    /// assert!(mode.is_server() && mode.protocol() == Protocol::Mcp);
    ///
    /// let mode = Mode::from("voice_client");
    /// assert!(mode.is_client() && !mode.is_known());
    /// assert_eq!(mode.protocol(), Protocol::from("voice"));
    /// assert_eq!(mode.to_string(), "voice_client");
    /// ```
    pub enum Mode {
        /// An MCP server that the agent connects to.
        McpServer => "mcp_server",
        /// An MCP client of a server under test.
        McpClient => "mcp_client",
        /// An A2A agent that the agent asks.
        A2aServer => "a2a_server",
        /// An A2A client of the agent.
        A2aClient => "a2a_client",
        /// A frontend of the agent.
        AgUiClient => "ag_ui_client",
    }
}

impl Mode {
    /// The protocol: everything before `_server` or `_client`.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        Protocol::from(self.protocol_text())
    }

    /// The text of [`Mode::protocol`].
    #[must_use]
    pub fn protocol_text(&self) -> &str {
        crate::extract_protocol(self.as_str())
    }

    /// The lists of its state from which requests are answered, beside the `responses` of tools and prompts.
    pub(crate) fn dispatch_lists(&self) -> &'static [&'static str] {
        match self {
            Self::McpServer => &["elicitations"],
            Self::McpClient => &["sampling_responses", "elicitation_responses"],
            Self::A2aServer => &["task_responses"],
            Self::AgUiClient => &["tool_responses"],
            Self::A2aClient | Self::Other(_) => &[],
        }
    }

    /// Whether the server's side is played, so that the agent under test comes to the actor.
    #[must_use]
    pub fn is_server(&self) -> bool {
        self.as_str().ends_with("_server")
    }

    /// Whether the client's side is played, so that the actor goes to the agent under test.
    #[must_use]
    pub fn is_client(&self) -> bool {
        self.as_str().ends_with("_client")
    }
}

open_enum! {
    /// A framework of threats that documents map to.
    ///
    /// A name that is not listed means the same as `other`, but is kept as written.
    ///
    /// ```
    /// use proofhouse_oatf::Framework;
    /// assert_eq!(Framework::from("cwe"), Framework::Cwe);
    /// assert_eq!(Framework::from("nist_ai").to_string(), "nist_ai");
    /// assert!(Framework::from("other").is_known());
    /// ```
    pub enum Framework {
        /// MITRE ATLAS.
        Atlas => "atlas",
        /// MITRE ATT&CK.
        MitreAttack => "mitre_attack",
        /// The OWASP Top 10 for large language models.
        OwaspLlm => "owasp_llm",
        /// The OWASP Top 10 for MCP.
        OwaspMcp => "owasp_mcp",
        /// The OWASP Top 10 for agentic applications.
        OwaspAgentic => "owasp_agentic",
        /// The Common Weakness Enumeration.
        Cwe => "cwe",
        /// `other`: the document's author says that it is none of these.
        Unlisted => "other",
    }
}

open_enum! {
    /// The operation of a protocol that an indicator looks at.
    ///
    /// Protocols gain operations, so a name that is not listed here is as good as any; whether an operation belongs to
    /// an indicator's protocol is for V-018 to tell.
    ///
    /// ```
    /// use proofhouse_oatf::Surface;
    /// assert_eq!(Surface::from("tools/call"), Surface::ToolsCall);
    /// assert_eq!(Surface::AgentCardGet.as_str(), "agent_card/get");
    /// assert_eq!(Surface::from("reasoning_start").to_string(), "reasoning_start");
    /// ```
    pub enum Surface {
        /// Of MCP.
        Initialize => "initialize",
        /// Of MCP.
        Ping => "ping",
        /// Of MCP.
        ToolsList => "tools/list",
        /// Of MCP.
        ToolsCall => "tools/call",
        /// Of MCP.
        ResourcesList => "resources/list",
        /// Of MCP.
        ResourcesRead => "resources/read",
        /// Of MCP.
        ResourcesTemplatesList => "resources/templates/list",
        /// Of MCP.
        ResourcesSubscribe => "resources/subscribe",
        /// Of MCP.
        ResourcesUnsubscribe => "resources/unsubscribe",
        /// Of MCP.
        PromptsList => "prompts/list",
        /// Of MCP.
        PromptsGet => "prompts/get",
        /// Of MCP.
        CompletionComplete => "completion/complete",
        /// Of MCP.
        LoggingSetLevel => "logging/setLevel",
        /// Of MCP.
        SamplingCreateMessage => "sampling/createMessage",
        /// Of MCP.
        ElicitationCreate => "elicitation/create",
        /// Of MCP.
        RootsList => "roots/list",
        /// Of MCP and A2A.
        TasksGet => "tasks/get",
        /// Of MCP.
        TasksResult => "tasks/result",
        /// Of MCP and A2A.
        TasksList => "tasks/list",
        /// Of MCP and A2A.
        TasksCancel => "tasks/cancel",
        /// Of MCP.
        NotificationsInitialized => "notifications/initialized",
        /// Of MCP.
        NotificationsCancelled => "notifications/cancelled",
        /// Of MCP.
        NotificationsProgress => "notifications/progress",
        /// Of MCP.
        NotificationsRootsListChanged => "notifications/roots/list_changed",
        /// Of MCP.
        NotificationsToolsListChanged => "notifications/tools/list_changed",
        /// Of MCP.
        NotificationsResourcesListChanged => "notifications/resources/list_changed",
        /// Of MCP.
        NotificationsResourcesUpdated => "notifications/resources/updated",
        /// Of MCP.
        NotificationsPromptsListChanged => "notifications/prompts/list_changed",
        /// Of MCP.
        NotificationsMessage => "notifications/message",
        /// Of MCP.
        NotificationsTasksStatus => "notifications/tasks/status",
        /// Of MCP.
        NotificationsElicitationComplete => "notifications/elicitation/complete",
        /// Of A2A.
        MessageSend => "message/send",
        /// Of A2A.
        MessageStream => "message/stream",
        /// Of A2A.
        TasksResubscribe => "tasks/resubscribe",
        /// Of A2A.
        TasksPushNotificationConfigSet => "tasks/pushNotificationConfig/set",
        /// Of A2A.
        TasksPushNotificationConfigGet => "tasks/pushNotificationConfig/get",
        /// Of A2A.
        TasksPushNotificationConfigList => "tasks/pushNotificationConfig/list",
        /// Of A2A.
        TasksPushNotificationConfigDelete => "tasks/pushNotificationConfig/delete",
        /// Of A2A.
        AgentGetAuthenticatedExtendedCard => "agent/getAuthenticatedExtendedCard",
        /// Of A2A.
        AgentCardGet => "agent_card/get",
        /// Of A2A.
        TaskStatus => "task/status",
        /// Of A2A.
        TaskArtifact => "task/artifact",
        /// Of AG-UI.
        RunAgentInput => "run_agent_input",
        /// Of AG-UI.
        RunStarted => "run_started",
        /// Of AG-UI.
        RunFinished => "run_finished",
        /// Of AG-UI.
        RunError => "run_error",
        /// Of AG-UI.
        StepStarted => "step_started",
        /// Of AG-UI.
        StepFinished => "step_finished",
        /// Of AG-UI.
        TextMessageStart => "text_message_start",
        /// Of AG-UI.
        TextMessageContent => "text_message_content",
        /// Of AG-UI.
        TextMessageEnd => "text_message_end",
        /// Of AG-UI.
        TextMessageChunk => "text_message_chunk",
        /// Of AG-UI.
        ToolCallStart => "tool_call_start",
        /// Of AG-UI.
        ToolCallArgs => "tool_call_args",
        /// Of AG-UI.
        ToolCallEnd => "tool_call_end",
        /// Of AG-UI.
        ToolCallChunk => "tool_call_chunk",
        /// Of AG-UI.
        ToolCallResult => "tool_call_result",
        /// Of AG-UI.
        StateSnapshot => "state_snapshot",
        /// Of AG-UI.
        StateDelta => "state_delta",
        /// Of AG-UI.
        MessagesSnapshot => "messages_snapshot",
        /// Of AG-UI.
        ActivitySnapshot => "activity_snapshot",
        /// Of AG-UI.
        ActivityDelta => "activity_delta",
        /// Of AG-UI.
        Raw => "raw",
        /// Of AG-UI.
        Custom => "custom",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_survive_and_are_ordered_as_texts() {
        for text in [
            "mcp_server",
            "voice_client",
            "",
            "MCP_SERVER",
            " mcp_server",
            "é_server",
        ] {
            let mode = Mode::from(text);
            assert_eq!(mode.to_string(), text);
            assert_eq!(mode, text.parse().unwrap());
            assert_eq!(mode, Mode::from(text.to_owned()));
            let json = serde_json::to_string(&mode).unwrap();
            assert_eq!(json, serde_json::to_string(text).unwrap());
            assert_eq!(serde_json::from_str::<Mode>(&json).unwrap(), mode);
        }
        let mut modes: Vec<Mode> = ["z_server", "mcp_server", "a2a_client", "b_client"]
            .map(Mode::from)
            .into();
        modes.sort();
        let texts: Vec<&str> = modes.iter().map(Mode::as_str).collect();
        assert_eq!(texts, ["a2a_client", "b_client", "mcp_server", "z_server"]);
    }

    #[test]
    fn listed_names_have_cases() {
        fn check<T: for<'t> From<&'t str> + PartialEq + fmt::Debug>(names: &[&str], known: &[T]) {
            assert_eq!(names.len(), known.len());
            for (name, case) in names.iter().zip(known) {
                assert_eq!(&T::from(name), case);
            }
        }
        check(Protocol::NAMES, Protocol::KNOWN);
        check(Mode::NAMES, Mode::KNOWN);
        check(Surface::NAMES, Surface::KNOWN);
        check(Framework::NAMES, Framework::KNOWN);
        assert!(Mode::KNOWN.iter().all(Mode::is_known));
        assert!(!Mode::default().is_known());
    }

    #[test]
    fn modes_have_a_protocol_and_a_side() {
        for mode in Mode::KNOWN {
            assert!(mode.protocol().is_known(), "{mode}");
            assert!(mode.is_server() != mode.is_client(), "{mode}");
        }
        let odd = Mode::from("server");
        assert!(!odd.is_server() && !odd.is_client());
        assert_eq!(odd.protocol(), Protocol::from("server"));
    }
}
