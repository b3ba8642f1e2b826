//! How much clients of a server may ask of it, and for how long.

use std::time::Duration;

/// The bounds of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeLimits {
    /// Sizes and times of connections. Arguments of tools are small, so messages are smaller than
    /// elsewhere.
    pub wire: proofhouse_wire::WireLimits,
    /// Sessions over HTTP; one more makes the one go that was idle for longest.
    pub max_sessions: usize,
    /// Calls of one session at a time; further ones are refused, not queued.
    pub max_session_calls: usize,
    /// Calls of everyone at a time.
    pub max_calls: usize,
    /// Streams of the modern era that wait for changes.
    pub max_listeners: usize,
    /// Tools on one page of a list.
    pub page: usize,
    /// How long one call may take. Jobs have ten minutes of their own.
    pub call: Duration,
    /// How long a session may be without a message before it is ended.
    pub idle: Duration,
    /// After how long a call is answered with a stream, which shows that it is under way.
    pub stream_after: Duration,
    /// How often a silent stream says that it is there.
    pub keep_alive: Duration,
    /// What calls may take to end after they were cancelled, and tools to close after that.
    pub close: Duration,
    /// What calls may still take when a client over stdio has closed its end.
    pub drain: Duration,
}

impl Default for ServeLimits {
    /// 64 sessions of 16 calls each, 128 calls in all, of 15 minutes each; an hour of silence.
    fn default() -> Self {
        Self {
            wire: proofhouse_wire::WireLimits {
                max_message_bytes: 4 << 20,
                ..proofhouse_wire::WireLimits::default()
            },
            max_sessions: 64,
            max_session_calls: 16,
            max_calls: 128,
            max_listeners: 64,
            page: 200,
            call: Duration::from_secs(15 * 60),
            idle: Duration::from_secs(60 * 60),
            stream_after: Duration::from_secs(2),
            keep_alive: Duration::from_secs(15),
            close: Duration::from_secs(10),
            drain: Duration::from_secs(1),
        }
    }
}
