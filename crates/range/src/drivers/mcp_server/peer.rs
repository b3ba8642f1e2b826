//! A client of the legacy era: what it told us, what we asked it, what of it is still running.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use proofhouse_protocol::mcp::{McpLogLevel, McpRevision};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::outlet::StdoutLines;
use super::streams::Streams;
use crate::presence::OpenPresence;

/// Questions that wait for an answer; more would be a client that never answers.
const MAX_ASKED: usize = 256;
/// Calls of one client that run at a time.
const MAX_RUNNING: usize = 256;
/// Resources that one client may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 1_000;
/// Bytes of their names: a name may be as long as a message, and there may be many clients.
const MAX_SUBSCRIPTION_BYTES: usize = 256 << 10;
/// Bytes of JSON that are kept of what a client says it can do, for the same reason.
const MAX_CAPABILITY_BYTES: usize = 64 << 10;

/// A client.
#[derive(Debug)]
pub(super) struct McpPeer {
    pub(super) id: String,
    /// How it is reached when no call of its is open; event streams otherwise.
    pub(super) lines: Option<Arc<StdoutLines>>,
    streams: Streams,
    known: Mutex<ClientFacts>,
    asked: Mutex<HashMap<u64, ClientRequest>>,
    next_ask: AtomicU64,
    running: Mutex<HashMap<String, CancellationToken>>,
    used: Mutex<Instant>,
    /// Tells the run that the session is open, until it is closed.
    presence: Mutex<Option<OpenPresence>>,
}

#[derive(Debug)]
struct ClientFacts {
    version: String,
    capabilities: Arc<Value>,
    initialized: bool,
    level: Option<McpLogLevel>,
    subscriptions: HashSet<String>,
}

#[derive(Debug)]
struct ClientRequest {
    method: String,
    answer: Option<oneshot::Sender<Value>>,
}

impl McpPeer {
    pub(super) fn new(id: String, lines: Option<Arc<StdoutLines>>) -> Self {
        Self {
            id,
            lines,
            streams: Streams::default(),
            known: Mutex::new(ClientFacts {
                version: String::new(),
                capabilities: Arc::new(json!({})),
                initialized: false,
                level: None,
                subscriptions: HashSet::new(),
            }),
            asked: Mutex::default(),
            next_ask: AtomicU64::new(1),
            running: Mutex::default(),
            used: Mutex::new(Instant::now()),
            presence: Mutex::default(),
        }
    }

    /// The session has begun, as the run counts it.
    pub(super) fn is_there(&self, presence: OpenPresence) {
        *lock(&self.presence) = Some(presence);
    }

    pub(super) fn streams(&self) -> &Streams {
        &self.streams
    }

    /// The handshake took place.
    pub(super) fn introduce(&self, version: &str, capabilities: &Value) {
        let mut known = lock(&self.known);
        version.clone_into(&mut known.version);
        known.capabilities = Arc::new(bounded(capabilities));
    }

    /// The client is ready; `true` the first time.
    pub(super) fn initialize(&self) -> bool {
        !std::mem::replace(&mut lock(&self.known).initialized, true)
    }

    pub(super) fn is_initialized(&self) -> bool {
        lock(&self.known).initialized
    }

    pub(super) fn capabilities(&self) -> Arc<Value> {
        Arc::clone(&lock(&self.known).capabilities)
    }

    /// Whether a stream may begin with an empty event; older clients would read it as a message.
    pub(super) fn knows_priming(&self) -> bool {
        let version = &lock(&self.known).version;
        match McpRevision::parse(version) {
            Some(revision) => revision.primes_streams(),
            // A document may insist on a version to come.
            None => version.as_str() > McpRevision::LATEST_WITH_SESSIONS.as_str(),
        }
    }

    /// Whether the session may have batches.
    pub(super) fn has_batches(&self) -> bool {
        McpRevision::parse(&lock(&self.known).version).is_some_and(McpRevision::has_batches)
    }

    /// Whether the client looks for what is wrong with its arguments in the result of a call.
    pub(super) fn reads_input_errors_in_results(&self) -> bool {
        let revision = McpRevision::parse(&lock(&self.known).version);
        revision.is_none_or(McpRevision::has_input_errors_in_results)
    }

    pub(super) fn level(&self) -> Option<McpLogLevel> {
        lock(&self.known).level
    }

    pub(super) fn set_level(&self, level: McpLogLevel) {
        lock(&self.known).level = Some(level);
    }

    /// `false` when there are too many.
    pub(super) fn subscribe(&self, uri: &str) -> bool {
        let subscriptions = &mut lock(&self.known).subscriptions;
        if subscriptions.contains(uri) {
            return true;
        }
        let bytes: usize = subscriptions.iter().map(String::len).sum();
        if subscriptions.len() >= MAX_SUBSCRIPTIONS || bytes + uri.len() > MAX_SUBSCRIPTION_BYTES {
            return false;
        }
        subscriptions.insert(uri.to_owned())
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        lock(&self.known).subscriptions.remove(uri);
    }

    pub(super) fn is_subscribed(&self, uri: &str) -> bool {
        lock(&self.known).subscriptions.contains(uri)
    }

    /// The session ends: its calls are cancelled and its streams closed.
    pub(super) fn close(&self) {
        drop(lock(&self.presence).take());
        for (_, token) in lock(&self.running).drain() {
            token.cancel();
        }
        lock(&self.asked).clear();
        self.streams.end_all();
    }

    /// The id of a new question; its answer arrives at the receiver. `None` when too many wait.
    pub(super) fn ask(&self, method: &str) -> Option<(u64, oneshot::Receiver<Value>)> {
        let mut asked = lock(&self.asked);
        if asked.len() >= MAX_ASKED {
            return None;
        }
        let id = self.next_ask.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let question = ClientRequest {
            method: method.to_owned(),
            answer: Some(sender),
        };
        asked.insert(id, question);
        Some((id, receiver))
    }

    /// The method of the question that an answer is for, and who waits for it.
    pub(super) fn answered(&self, id: &Value) -> Option<(String, Option<oneshot::Sender<Value>>)> {
        let asked = lock(&self.asked).remove(&id.as_u64()?)?;
        Some((asked.method, asked.answer))
    }

    /// Nobody waits for the answer any more.
    pub(super) fn forget(&self, id: u64) {
        lock(&self.asked).remove(&id);
    }

    /// A call begins. The token is cancelled when the client cancels the call; `None` when the id is
    /// taken or there are too many.
    pub(super) fn start(&self, id: &Value) -> Option<CancellationToken> {
        let mut running = lock(&self.running);
        let id = id.to_string();
        if running.len() >= MAX_RUNNING || running.contains_key(&id) {
            return None;
        }
        let token = CancellationToken::new();
        running.insert(id, token.clone());
        Some(token)
    }

    pub(super) fn finish(&self, id: &Value) {
        lock(&self.running).remove(&id.to_string());
    }

    /// The client cancels a call; `false` when it is not running.
    pub(super) fn cancel(&self, id: &Value) -> bool {
        let token = lock(&self.running).remove(&id.to_string());
        token.is_some_and(|token| {
            token.cancel();
            true
        })
    }

    pub(super) fn touch(&self) {
        *lock(&self.used) = Instant::now();
    }

    pub(super) fn used(&self) -> Instant {
        *lock(&self.used)
    }
}

/// The capabilities that there is room for; the rest counts as not declared.
fn bounded(capabilities: &Value) -> Value {
    let mut room = MAX_CAPABILITY_BYTES;
    let declared = capabilities.as_object().into_iter().flatten();
    let kept = declared.filter(|(name, detail)| {
        let size = name.len() + detail.to_string().len();
        let fits = size <= room;
        room -= if fits { size } else { 0 };
        fits
    });
    Value::Object(
        kept.map(|(name, detail)| (name.clone(), detail.clone()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_makes_us_remember_is_bounded_in_bytes() {
        let peer = McpPeer::new("a".to_owned(), None);
        let long = "x".repeat(MAX_CAPABILITY_BYTES);
        peer.introduce(
            McpRevision::LATEST_WITH_SESSIONS.as_str(),
            &json!({"big": long, "sampling": {}, "roots": {}}),
        );
        assert_eq!(*peer.capabilities(), json!({"sampling": {}, "roots": {}}));
        peer.introduce("", &json!("nonsense"));
        assert_eq!(*peer.capabilities(), json!({}));

        let name = |number: usize| format!("{number}{}", "x".repeat(MAX_SUBSCRIPTION_BYTES / 4));
        let kept = (0..10).filter(|number| peer.subscribe(&name(*number)));
        assert_eq!(kept.count(), 3);
        assert!(peer.subscribe(&name(0)), "it is there already");
        assert!(peer.subscribe("short"));
    }
}
