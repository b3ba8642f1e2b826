//! How long and how large: the defaults of every call, in one place.

use std::time::Duration;

use proofhouse_wire::retry::{Jitter, RetryPolicy};

/// How requests are repeated that were not sent, or that may be sent twice: three attempts, 200 ms
/// doubling, `Retry-After` up to 30 s.
const RETRY: RetryPolicy = RetryPolicy {
    attempts: 3,
    base: Duration::from_millis(200),
    cap: Duration::from_secs(30),
    max_retry_after: Duration::from_secs(30),
    jitter: Jitter::Full,
};

/// The bounds of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLimits {
    /// Opening a connection.
    pub connect: Duration,
    /// One HTTP request, from the start to the last byte of the answer.
    pub http: Duration,
    /// Bytes of a response.
    pub max_response_bytes: usize,
    /// Bytes of a result that the model sees.
    pub max_result_bytes: usize,
    /// How requests are repeated.
    pub retry: RetryPolicy,
    /// How long a host that nobody answers at is waited for, so that an outage can heal.
    pub outage: Duration,
    /// How many operations of a description are functions of their own; more are searched for.
    pub max_functions: usize,
    /// Starting an MCP server, from nothing to its list of tools.
    pub mcp_start: Duration,
    /// One call of a tool of an MCP server, however often the server asks back.
    pub mcp_call: Duration,
    /// What a runtime that cleans up after a cancelled call may take for it.
    pub cancel: Duration,
    /// Kubernetes Jobs.
    pub job: JobLimits,
}

impl Default for ToolLimits {
    /// Connect 5 s, HTTP 30 s, outages 30 s, responses of 10 MiB, results of 1 MiB, MCP start 30 s and call 120 s.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            http: Duration::from_secs(30),
            max_response_bytes: 10 << 20,
            max_result_bytes: 1 << 20,
            retry: RETRY,
            outage: Duration::from_secs(30),
            max_functions: 128,
            mcp_start: Duration::from_secs(30),
            mcp_call: Duration::from_secs(120),
            cancel: Duration::from_secs(5),
            job: JobLimits::default(),
        }
    }
}

/// The times of a Kubernetes Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLimits {
    /// A call, from before its Job is made to its result. The cluster ends the Job after that time too.
    pub deadline: Duration,
    /// How often the cluster is asked, beside what it says by itself.
    pub poll: Duration,
    /// How long a container may be unable to start. Registries have hiccups, so not at once.
    pub start_patience: Duration,
    /// How long the cluster may not answer while a Job is waited for. Control planes restart.
    pub silence: Duration,
    /// How long the cluster keeps a finished Job that nobody deletes.
    pub keep: Duration,
    /// Deleting a Job at the end of a call.
    pub cleanup: Duration,
}

impl Default for JobLimits {
    /// Ten minutes; asked every 2 s; 20 s for containers that cannot start, 30 s of silence; kept for
    /// 5 min; deleted in 3 s.
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(600),
            poll: Duration::from_secs(2),
            start_patience: Duration::from_secs(20),
            silence: Duration::from_secs(30),
            keep: Duration::from_secs(300),
            cleanup: Duration::from_secs(3),
        }
    }
}
