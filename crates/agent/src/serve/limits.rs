//! How much those who reach an agent may ask of it, and for how long.

use std::time::Duration;

/// The bounds of a served agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLimits {
    /// Sizes and times of connections. Conversations are text, so messages are smaller than elsewhere.
    pub wire: proofhouse_wire::WireLimits,
    /// Conversations of one protocol; one more makes the one go that was idle for longest.
    pub max_conversations: usize,
    /// Answers under way over AG-UI and A2A together; further ones are refused, not queued.
    pub max_runs: usize,
    /// What one conversation may wait for: messages of A2A that come while another is answered.
    pub max_waiting: usize,
    /// Tasks of A2A that can be asked for; the oldest that are over go first.
    pub max_records: usize,
    /// What clients may say in one conversation, in bytes: it is kept as long as the conversation is.
    pub max_conversation_bytes: usize,
    /// Messages in the history that a client of AG-UI sends.
    pub max_messages: usize,
    /// Functions that a client of AG-UI offers.
    pub max_tools: usize,
    /// What a client may say about the circumstances, in bytes; the rest is cut.
    pub max_context_bytes: usize,
    /// How long one answer may take, questions to people included.
    pub run: Duration,
    /// How long a conversation may be without a message before it is ended.
    pub idle: Duration,
    /// How often a silent stream says that it is there.
    pub keep_alive: Duration,
    /// What tasks may take to end, with their tools.
    pub close: Duration,
    /// The bounds of MCP.
    pub mcp: proofhouse_mcp_serve::ServeLimits,
}

impl Default for AgentLimits {
    /// 128 conversations, 64 answers at a time of at most half an hour; an hour of silence.
    fn default() -> Self {
        Self {
            wire: proofhouse_wire::WireLimits {
                max_message_bytes: 4 << 20,
                ..proofhouse_wire::WireLimits::default()
            },
            max_conversations: 128,
            max_runs: 64,
            max_waiting: 8,
            max_records: 512,
            max_conversation_bytes: 4 << 20,
            max_messages: 2_000,
            max_tools: 128,
            max_context_bytes: 64 << 10,
            run: Duration::from_secs(30 * 60),
            idle: Duration::from_secs(60 * 60),
            keep_alive: Duration::from_secs(15),
            close: Duration::from_secs(10),
            mcp: proofhouse_mcp_serve::ServeLimits::default(),
        }
    }
}
