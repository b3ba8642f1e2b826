//! Sessions: a client of the legacy era, a stdio connection, or everyone of the modern era, with the
//! tools that were opened for it and the calls that it has under way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use proofhouse_protocol::mcp::McpLogLevel;
use proofhouse_protocol::rpc;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;

use super::tools::McpTools;

/// One session.
pub(super) struct McpSession {
    pub(super) id: String,
    pub(super) tools: Arc<dyn McpTools>,
    /// Cancelled when the session ends; that of every call is a child of it.
    pub(super) ended: CancellationToken,
    state: Mutex<SessionState>,
}

struct SessionState {
    calls: HashMap<String, CancellationToken>,
    level: McpLogLevel,
    initialized: bool,
    used: Instant,
    /// Ends the stream that the client listens to, when it opens another one.
    listening: Option<CancellationToken>,
}

/// Why a call cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallRefusal {
    /// A call of the same id is under way.
    SameId,
    /// Too many are under way.
    TooMany,
    /// The session has ended.
    Ended,
}

impl McpSession {
    pub(super) fn new(id: String, tools: Arc<dyn McpTools>, stop: &CancellationToken) -> Self {
        Self {
            id,
            tools,
            ended: stop.child_token(),
            state: Mutex::new(SessionState {
                calls: HashMap::new(),
                level: McpLogLevel::Info,
                initialized: false,
                used: Instant::now(),
                listening: None,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        lock(&self.state)
    }

    /// The handshake takes place; `false` if it did before.
    pub(super) fn initialize(&self) -> bool {
        !std::mem::replace(&mut self.lock().initialized, true)
    }

    pub(super) fn is_initialized(&self) -> bool {
        self.lock().initialized
    }

    pub(super) fn level(&self) -> McpLogLevel {
        self.lock().level
    }

    pub(super) fn set_level(&self, level: McpLogLevel) {
        self.lock().level = level;
    }

    pub(super) fn touch(&self) {
        self.lock().used = Instant::now();
    }

    /// Begins a call. It is over when what is returned is dropped. The shared session has clients whose
    /// ids say nothing to one another; there `key` is empty and nothing can be cancelled by id.
    pub(super) fn begin(
        self: &Arc<Self>,
        key: Option<&Value>,
        most: usize,
    ) -> Result<Underway, CallRefusal> {
        let mut state = self.lock();
        if self.ended.is_cancelled() {
            return Err(CallRefusal::Ended);
        }
        let key = match key {
            Some(id) => rpc::plain_id(id).to_string(),
            None => format!("-{}", unique()),
        };
        if state.calls.contains_key(&key) {
            return Err(CallRefusal::SameId);
        }
        if state.calls.len() >= most {
            return Err(CallRefusal::TooMany);
        }
        let cancel = self.ended.child_token();
        state.calls.insert(key.clone(), cancel.clone());
        state.used = Instant::now();
        Ok(Underway {
            session: Arc::clone(self),
            key,
            cancel,
        })
    }

    /// Cancels the call of an id, if it is under way.
    pub(super) fn cancel(&self, id: &Value) {
        if let Some(cancel) = self.lock().calls.get(&id.to_string()) {
            cancel.cancel();
        }
    }

    /// Waits until no call is under way.
    pub(super) async fn drained(&self) {
        while self.is_busy() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The client listens from now on; whoever listened before does not.
    pub(super) fn listen(&self) -> CancellationToken {
        let mut state = self.lock();
        let token = self.ended.child_token();
        if let Some(earlier) = state.listening.replace(token.clone()) {
            earlier.cancel();
        }
        state.used = Instant::now();
        token
    }

    pub(super) fn stopped_listening(&self, token: &CancellationToken) {
        token.cancel();
        let mut state = self.lock();
        if state
            .listening
            .as_ref()
            .is_some_and(CancellationToken::is_cancelled)
        {
            state.listening = None;
        }
        state.used = Instant::now();
    }

    /// Whether anybody waits for something.
    fn is_busy(&self) -> bool {
        !self.lock().calls.is_empty()
    }

    fn is_listening(&self) -> bool {
        self.lock().listening.is_some()
    }

    fn used(&self) -> Instant {
        self.lock().used
    }

    /// Whether nobody has used it for so long.
    pub(super) fn is_idle(&self, time: Duration) -> bool {
        !self.is_busy() && !self.is_listening() && self.used().elapsed() >= time
    }
}

/// A call that is under way.
pub(super) struct Underway {
    pub(super) session: Arc<McpSession>,
    key: String,
    pub(super) cancel: CancellationToken,
}

impl Drop for Underway {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        state.calls.remove(&self.key);
        state.used = Instant::now();
    }
}

fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The sessions of an HTTP server, at most so many.
#[derive(Default)]
pub(super) struct McpSessions {
    all: HashMap<String, Arc<McpSession>>,
}

impl McpSessions {
    pub(super) fn find(&self, id: &str) -> Option<Arc<McpSession>> {
        self.all.get(id).cloned()
    }

    /// Adds a session. When there are too many, the one that was idle for longest goes and is returned;
    /// sessions to whose stream somebody listens go last. Nothing is added when all have calls under way.
    pub(super) fn add(
        &mut self,
        session: &Arc<McpSession>,
        most: usize,
    ) -> Result<Option<Arc<McpSession>>, CallRefusal> {
        let mut evicted = None;
        if self.all.len() >= most {
            let idle = self.all.values().filter(|session| !session.is_busy());
            let oldest = idle.min_by_key(|session| (session.is_listening(), session.used()));
            let oldest = oldest.ok_or(CallRefusal::TooMany)?.id.clone();
            evicted = self.all.remove(&oldest);
        }
        self.all.insert(session.id.clone(), Arc::clone(session));
        Ok(evicted)
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<McpSession>> {
        self.all.remove(id)
    }

    /// Takes out the sessions that nobody has used for so long.
    pub(super) fn take_idle(&mut self, time: Duration) -> Vec<Arc<McpSession>> {
        let idle = self.all.values().filter(|session| session.is_idle(time));
        let idle: Vec<_> = idle.cloned().collect();
        for session in &idle {
            self.all.remove(&session.id);
        }
        idle
    }

    pub(super) fn take_all(&mut self) -> Vec<Arc<McpSession>> {
        self.all.drain().map(|(_, session)| session).collect()
    }
}

/// An id that nobody can guess: it is what lets a client into its session.
pub(super) fn unguessable() -> Option<String> {
    let mut bytes = [0_u8; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(HEXLOWER.encode(&bytes))
}
