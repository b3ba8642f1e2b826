//! The events of a run, and which belong together.

/// A name from an agent is cut here; real ones have a quarter of that.
const MAX_NAME_CHARS: usize = 100;

/// Defines the events from rows of a doc comment, a variant, its type on the wire and its operation in traces.
macro_rules! events {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $text:literal | $operation:literal,)+
        }
    ) => {
        names! {
            $(#[$meta])*
            pub enum $name {
                $($(#[$doc])* $variant = $text,)+
            }
        }

        impl $name {
            /// Its name in traces and threat documents: that of the wire in lower case.
            #[must_use]
            pub const fn operation(self) -> &'static str {
                match self {
                    $(Self::$variant => $operation,)+
                }
            }
        }
    };
}

events! {
    /// The type of an event of AG-UI.
    ///
    /// ```
    /// use proofhouse_protocol::ag_ui::AgUiEventType;
    ///
    /// let event = AgUiEventType::parse("TOOL_CALL_START").unwrap();
    /// assert_eq!(event.operation(), "tool_call_start");
    /// assert_eq!(AgUiEventType::parse("tool_call_start"), None, "the wire has it in capitals");
    /// ```
    pub enum AgUiEventType {
        /// A run begins.
        RunStarted = "RUN_STARTED" | "run_started",
        /// A run is over.
        RunFinished = "RUN_FINISHED" | "run_finished",
        /// A run failed.
        RunError = "RUN_ERROR" | "run_error",
        /// A step of a run begins.
        StepStarted = "STEP_STARTED" | "step_started",
        /// A step of a run is over.
        StepFinished = "STEP_FINISHED" | "step_finished",
        /// A message begins.
        TextMessageStart = "TEXT_MESSAGE_START" | "text_message_start",
        /// A piece of a message.
        TextMessageContent = "TEXT_MESSAGE_CONTENT" | "text_message_content",
        /// A message is over.
        TextMessageEnd = "TEXT_MESSAGE_END" | "text_message_end",
        /// A piece of a message that begins and ends by itself.
        TextMessageChunk = "TEXT_MESSAGE_CHUNK" | "text_message_chunk",
        /// A call of a tool begins.
        ToolCallStart = "TOOL_CALL_START" | "tool_call_start",
        /// A piece of the arguments of a call.
        ToolCallArgs = "TOOL_CALL_ARGS" | "tool_call_args",
        /// The arguments of a call are complete.
        ToolCallEnd = "TOOL_CALL_END" | "tool_call_end",
        /// A piece of a call that begins and ends by itself.
        ToolCallChunk = "TOOL_CALL_CHUNK" | "tool_call_chunk",
        /// What a call came to.
        ToolCallResult = "TOOL_CALL_RESULT" | "tool_call_result",
        /// The whole state.
        StateSnapshot = "STATE_SNAPSHOT" | "state_snapshot",
        /// A change of the state, as a JSON patch.
        StateDelta = "STATE_DELTA" | "state_delta",
        /// The whole conversation.
        MessagesSnapshot = "MESSAGES_SNAPSHOT" | "messages_snapshot",
        /// A whole activity.
        ActivitySnapshot = "ACTIVITY_SNAPSHOT" | "activity_snapshot",
        /// A change of an activity.
        ActivityDelta = "ACTIVITY_DELTA" | "activity_delta",
        /// Something of another system.
        Raw = "RAW" | "raw",
        /// Something that the two ends agreed on.
        Custom = "CUSTOM" | "custom",
        /// Reasoning begins.
        ReasoningStart = "REASONING_START" | "reasoning_start",
        /// Reasoning is over.
        ReasoningEnd = "REASONING_END" | "reasoning_end",
        /// A message of reasoning begins.
        ReasoningMessageStart = "REASONING_MESSAGE_START" | "reasoning_message_start",
        /// A piece of a message of reasoning.
        ReasoningMessageContent = "REASONING_MESSAGE_CONTENT" | "reasoning_message_content",
        /// A message of reasoning is over.
        ReasoningMessageEnd = "REASONING_MESSAGE_END" | "reasoning_message_end",
        /// A piece of a message of reasoning that begins and ends by itself.
        ReasoningMessageChunk = "REASONING_MESSAGE_CHUNK" | "reasoning_message_chunk",
        /// Reasoning that only the model's provider can read.
        ReasoningEncryptedValue = "REASONING_ENCRYPTED_VALUE" | "reasoning_encrypted_value",
        /// Another agent begins to work.
        SubagentStarted = "SUBAGENT_STARTED" | "subagent_started",
        /// Another agent is done.
        SubagentFinished = "SUBAGENT_FINISHED" | "subagent_finished",
        /// Another agent failed.
        SubagentError = "SUBAGENT_ERROR" | "subagent_error",
    }
}

impl AgUiEventType {
    /// Whether it is about what the model thinks.
    #[must_use]
    pub const fn is_reasoning(self) -> bool {
        matches!(
            self,
            Self::ReasoningStart
                | Self::ReasoningEnd
                | Self::ReasoningMessageStart
                | Self::ReasoningMessageContent
                | Self::ReasoningMessageEnd
                | Self::ReasoningMessageChunk
                | Self::ReasoningEncryptedValue
        )
    }

    /// Whether it is about another agent that works for this one.
    #[must_use]
    pub const fn is_subagent(self) -> bool {
        matches!(
            self,
            Self::SubagentStarted | Self::SubagentFinished | Self::SubagentError
        )
    }

    /// Whether its `delta` is text that the user reads.
    #[must_use]
    pub const fn has_text(self) -> bool {
        matches!(self, Self::TextMessageContent | Self::TextMessageChunk)
    }

    /// Whether a run may begin with it.
    #[must_use]
    pub const fn may_come_first(self) -> bool {
        matches!(self, Self::RunStarted | Self::RunError)
    }
}

/// A family of events that may also come in chunks, which begin and end by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgUiChunk {
    /// Messages.
    Text,
    /// Calls of tools.
    Tool,
    /// Messages of reasoning.
    Reasoning,
}

impl AgUiChunk {
    /// The family of a chunk; `None` for an event that is none.
    ///
    /// ```
    /// use proofhouse_protocol::ag_ui::{AgUiChunk, AgUiEventType};
    ///
    /// let chunk = AgUiChunk::of(AgUiEventType::ToolCallChunk).unwrap();
    /// assert_eq!((chunk.id_member(), chunk.start()), ("toolCallId", AgUiEventType::ToolCallStart));
    /// ```
    #[must_use]
    pub const fn of(event: AgUiEventType) -> Option<Self> {
        match event {
            AgUiEventType::TextMessageChunk => Some(Self::Text),
            AgUiEventType::ToolCallChunk => Some(Self::Tool),
            AgUiEventType::ReasoningMessageChunk => Some(Self::Reasoning),
            _ => None,
        }
    }

    /// The member of its events that tells which message or call they belong to.
    #[must_use]
    pub const fn id_member(self) -> &'static str {
        match self {
            Self::Tool => "toolCallId",
            Self::Text | Self::Reasoning => "messageId",
        }
    }

    /// The event that begins one.
    #[must_use]
    pub const fn start(self) -> AgUiEventType {
        match self {
            Self::Text => AgUiEventType::TextMessageStart,
            Self::Tool => AgUiEventType::ToolCallStart,
            Self::Reasoning => AgUiEventType::ReasoningMessageStart,
        }
    }

    /// The event that adds to one.
    #[must_use]
    pub const fn content(self) -> AgUiEventType {
        match self {
            Self::Text => AgUiEventType::TextMessageContent,
            Self::Tool => AgUiEventType::ToolCallArgs,
            Self::Reasoning => AgUiEventType::ReasoningMessageContent,
        }
    }

    /// The chunk itself.
    #[must_use]
    pub const fn chunk(self) -> AgUiEventType {
        match self {
            Self::Text => AgUiEventType::TextMessageChunk,
            Self::Tool => AgUiEventType::ToolCallChunk,
            Self::Reasoning => AgUiEventType::ReasoningMessageChunk,
        }
    }

    /// The event that ends one.
    #[must_use]
    pub const fn end(self) -> AgUiEventType {
        match self {
            Self::Text => AgUiEventType::TextMessageEnd,
            Self::Tool => AgUiEventType::ToolCallEnd,
            Self::Reasoning => AgUiEventType::ReasoningMessageEnd,
        }
    }
}

/// Whether an event may come in the middle of a message without ending it, by its type on the wire, known or not.
///
/// ```
/// use proofhouse_protocol::ag_ui::is_aside;
///
/// assert!(is_aside("STATE_DELTA") && !is_aside("TOOL_CALL_START"));
/// ```
#[must_use]
pub fn is_aside(event_type: &str) -> bool {
    ["RAW", "CUSTOM", "STATE_", "ACTIVITY_", "STEP_"]
        .iter()
        .any(|family| event_type.starts_with(family))
}

/// The names that events of reasoning had before, in traces and threat documents, and those that they have now.
pub const THINKING_ALIASES: [(&str, &str); 5] = [
    ("thinking_start", "reasoning_start"),
    ("thinking_end", "reasoning_end"),
    ("thinking_text_message_start", "reasoning_message_start"),
    ("thinking_text_message_content", "reasoning_message_content"),
    ("thinking_text_message_end", "reasoning_message_end"),
];

/// The name of an event in traces and threat documents, from its type on the wire, known or not. It is cut to a
/// length that real ones do not have.
///
/// ```
/// assert_eq!(proofhouse_protocol::ag_ui::operation_of("TOOL_CALL_START"), "tool_call_start");
/// ```
#[must_use]
pub fn operation_of(event_type: &str) -> String {
    let name: String = event_type.chars().take(MAX_NAME_CHARS).collect();
    name.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_types_in_lower_case() {
        for event in AgUiEventType::ALL {
            assert_eq!(event.operation(), operation_of(event.as_str()));
            assert_eq!(AgUiEventType::parse(event.as_str()), Some(*event));
        }
        for (_, newer) in THINKING_ALIASES {
            let mut all = AgUiEventType::ALL.iter();
            assert!(all.any(|event| event.operation() == newer), "{newer}");
        }
        assert_eq!(operation_of(&"X".repeat(1000)).len(), MAX_NAME_CHARS);
    }
}
