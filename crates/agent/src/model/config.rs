//! How a model is reached: address, key, limits and patience.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_manifest::interpolate::Sealed;
use proofhouse_model::MAX_CALLS_PER_TURN;
use proofhouse_wire::AddressGuard;
use proofhouse_wire::gate::RequestGate;
use proofhouse_wire::retry::{Jitter, RetryPolicy};

/// When a request that came to nothing is sent again: four attempts, 500 ms doubling, pauses up to a
/// minute if the provider asks for them; for more, the caller decides.
const RETRY: RetryPolicy = RetryPolicy {
    attempts: 4,
    base: Duration::from_millis(500),
    cap: Duration::from_secs(60),
    max_retry_after: Duration::from_secs(60),
    jitter: Jitter::Full,
};

/// What [`open`](super::open) needs beside the name of a model.
#[derive(Clone)]
pub struct ModelConfig {
    /// Where the provider is, if not at its usual address.
    pub base_url: Option<String>,
    /// The key. Libraries do not read the environment; the caller does.
    pub key: Option<Sealed<String>>,
    /// The version of the API, for Azure and Anthropic.
    pub api_version: Option<String>,
    /// More headers, as some gateways want them. They may hold secrets.
    pub headers: Sealed<Vec<(String, String)>>,
    /// Whether to ask for the reply piece by piece.
    pub stream: bool,
    /// Limits and patience.
    pub limits: ModelLimits,
    /// Which addresses may be connected to; without one, all.
    pub guard: Option<Arc<dyn AddressGuard>>,
    /// What requests go through that count together with those of others.
    pub gate: Option<Arc<dyn RequestGate>>,
    /// Where files of `sim:scripted:` and `replay:` are looked for.
    pub directory: PathBuf,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            base_url: None,
            key: None,
            api_version: None,
            headers: Sealed::new(Vec::new()),
            stream: true,
            limits: ModelLimits::default(),
            guard: None,
            gate: None,
            directory: PathBuf::from("."),
        }
    }
}

impl fmt::Debug for ModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelConfig")
            .field("base_url", &self.base_url)
            .field("key", &self.key)
            .field("stream", &self.stream)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What one reply may cost. Every bound is there because a provider, or who poses as one, is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelLimits {
    /// Opening a connection.
    pub connect: Duration,
    /// From sending the request to the first byte; models think before they speak.
    pub first_byte: Duration,
    /// Between two pieces of a stream.
    pub between_chunks: Duration,
    /// Everything together, retries included: an endless stream ends here at the latest.
    pub total: Duration,
    /// Bytes of an answer, streamed or not; escapes and framing make it several times the text.
    pub max_bytes: usize,
    /// Bytes of the text of a reply; no context window is as large.
    pub max_text_bytes: usize,
    /// Bytes of the arguments of one call.
    pub max_argument_bytes: usize,
    /// Calls in one turn; people read what an agent did.
    pub max_calls: usize,
    /// When and how often to ask again. Once a reply has begun it is never repeated.
    pub retry: RetryPolicy,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(120),
            between_chunks: Duration::from_secs(60),
            total: Duration::from_secs(600),
            max_bytes: 32 << 20,
            max_text_bytes: 4 << 20,
            max_argument_bytes: 1 << 20,
            max_calls: MAX_CALLS_PER_TURN,
            retry: RETRY,
        }
    }
}
