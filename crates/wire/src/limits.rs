//! Every bound on what the other end may send, in one place.

use std::time::Duration;

/// How much the other end may send, how often and how slowly.
///
/// ```
/// use proofhouse_wire::WireLimits;
///
/// let limits = WireLimits { max_message_bytes: 1 << 20, ..WireLimits::default() };
/// assert!(limits.max_connections > 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireLimits {
    /// One message: an HTTP body, a line of stdio, the data of one event.
    pub max_message_bytes: usize,
    /// From this size on a request counts as large: its body waits for room among [`max_bytes_in_flight`], and it is
    /// answered among [`max_large_requests`].
    ///
    /// [`max_bytes_in_flight`]: Self::max_bytes_in_flight
    /// [`max_large_requests`]: Self::max_large_requests
    pub large_message_bytes: usize,
    /// The bodies of all large requests that are read or answered; more wait.
    pub max_bytes_in_flight: usize,
    /// Large requests that are parsed and answered at the same moment; more wait.
    pub max_large_requests: usize,
    /// Everything that is read of one streamed response.
    pub max_stream_bytes: u64,
    /// Events of one stream.
    pub max_events: u64,
    /// Messages in one JSON-RPC batch.
    pub max_batch: usize,
    /// Connections to one server at a time. For another one, the one that is least missed is closed; while all have
    /// requests under way, others wait.
    pub max_connections: usize,
    /// Request headers, in bytes.
    pub max_header_bytes: usize,
    /// Request headers, in number.
    pub max_headers: usize,
    /// From the first byte of a request to the end of its headers.
    pub header_timeout: Duration,
    /// From the end of the headers to the end of the body.
    pub body_timeout: Duration,
    /// How long a body may stand still while others wait for its room.
    pub stall_timeout: Duration,
    /// Opening a connection.
    pub connect_timeout: Duration,
    /// Waiting for a response to begin.
    pub response_timeout: Duration,
    /// Waiting for the next piece of a stream, for the other end to take one, or for the next request of a connection.
    pub idle_timeout: Duration,
    /// What is kept of the error output of a process.
    pub max_stderr_bytes: usize,
    /// How long a process may take to end after it was asked to.
    pub exit_timeout: Duration,
}

impl WireLimits {
    /// The same, for one who gives the other end so long and says itself when that is over: no answer is given up before.
    #[must_use]
    pub fn patient(self, time: Duration) -> Self {
        let longer = time.saturating_mul(2);
        Self {
            response_timeout: self.response_timeout.max(longer),
            idle_timeout: self.idle_timeout.max(longer),
            ..self
        }
    }
}

impl Default for WireLimits {
    /// Messages of 8 MiB, streams of 64 MiB, and times that suit a model behind the other end.
    fn default() -> Self {
        Self {
            max_message_bytes: 8 << 20,
            large_message_bytes: 64 << 10,
            max_bytes_in_flight: 64 << 20,
            max_large_requests: 1,
            max_stream_bytes: 64 << 20,
            max_events: 100_000,
            max_batch: 100,
            max_connections: 256,
            max_header_bytes: 64 << 10,
            max_headers: 100,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(120),
            max_stderr_bytes: 64 << 10,
            exit_timeout: Duration::from_secs(2),
        }
    }
}
