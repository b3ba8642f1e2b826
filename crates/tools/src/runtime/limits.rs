//! How long and how large: the defaults of every call, in one place.

use std::time::Duration;

/// The bounds of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Opening a connection.
    pub connect: Duration,
    /// One HTTP request, from the start to the last byte of the answer.
    pub http: Duration,
    /// Bytes of a response.
    pub max_response_bytes: usize,
    /// Bytes of a result that the model sees.
    pub max_result_bytes: usize,
    /// How requests are repeated.
    pub retry: Retry,
    /// Starting an MCP server, from nothing to its list of tools.
    pub mcp_start: Duration,
    /// One call of a tool of an MCP server, however often the server asks back.
    pub mcp_call: Duration,
    /// What a runtime that cleans up after a cancelled call may take for it.
    pub cancel: Duration,
}

/// How requests are repeated that were not sent, or that may be sent twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// How often at most, the first one included.
    pub tries: u32,
    /// The longest wait before the second try; it doubles with each further one.
    pub base: Duration,
    /// The longest wait that a server may ask for.
    pub max_retry_after: Duration,
}

impl Default for Limits {
    /// Connect 5 s, HTTP 30 s, responses of 10 MiB, results of 1 MiB, MCP start 30 s and call 120 s.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            http: Duration::from_secs(30),
            max_response_bytes: 10 << 20,
            max_result_bytes: 1 << 20,
            retry: Retry::default(),
            mcp_start: Duration::from_secs(30),
            mcp_call: Duration::from_secs(120),
            cancel: Duration::from_secs(5),
        }
    }
}

impl Default for Retry {
    /// Three tries, 200 ms doubling, `Retry-After` up to 30 s.
    fn default() -> Self {
        Self {
            tries: 3,
            base: Duration::from_millis(200),
            max_retry_after: Duration::from_secs(30),
        }
    }
}

impl Retry {
    /// The wait after the try of this number, from 1, for `chance` between 0 and 1: full jitter.
    ///
    /// ```
    /// use proofhouse_tools::runtime::Retry;
    /// let retry = Retry::default();
    /// assert_eq!(retry.wait(2, 0.5).as_millis(), 200);
    /// ```
    #[must_use]
    pub fn wait(&self, number: u32, chance: f64) -> Duration {
        let most = self
            .base
            .saturating_mul(1 << number.saturating_sub(1).min(10));
        most.mul_f64(chance.clamp(0.0, 1.0))
    }
}
