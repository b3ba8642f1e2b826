//! One session over several guards: what one learns, the others know before its client does.
//!
//! Every guard of a session holds all that was learned, so one that dies takes nothing with it. A guard that joins
//! is told what the others know before its client is answered, and a result is passed on only when every partner knows
//! its texts: a client cannot carry a value from one server to another faster than the guards do. A partner that does not
//! answer in time is left out, and that is told.

mod fact;
mod group;
mod partner;
mod place;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;

use fact::portions;
pub(crate) use fact::{MAX_TOLD, SharedFact};
pub use group::SessionGroup;
use partner::{HEARD_TIME, PartnerIncoming, ShareMessage, SharePartner, Unheard, greet};
pub use place::{ShareError, ShareSetup, SharedBy};
use place::{SharePlace, SocketFile};

use crate::engine::GuardSession;
use crate::finding::{FindingCode, GuardDecision};

/// How many partners a guard may have.
const MAX_PARTNERS: usize = 64;

/// A session that the guard of one server takes part in, until it is dropped.
pub struct SessionShare {
    state: Arc<ShareState>,
    /// Others find us by it.
    socket: SocketFile,
}

struct ShareState {
    /// The name of our server.
    server: String,
    session: Arc<Mutex<GuardSession>>,
    /// The sessions that the session stands for, where it has no messages of its own.
    group: Option<SessionGroup>,
    partners: Mutex<BTreeMap<u64, Arc<SharePartner>>>,
    next: AtomicU64,
    cancel: CancellationToken,
}

impl Drop for SessionShare {
    fn drop(&mut self) {
        self.state.cancel.cancel();
    }
}

impl SessionShare {
    /// Joins the guards that are there, and lets those find us that come later.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no place where guards can meet safely.
    pub async fn join(
        setup: &ShareSetup,
        server: &str,
        session: Arc<Mutex<GuardSession>>,
    ) -> Result<Self, ShareError> {
        Self::join_for(setup, server, session, None).await
    }

    /// The same for a guard over HTTP, whose clients have a session each: the sessions of the group that is returned know what
    /// partners learn, and partners what they learn. `hub` is a session that has seen nothing.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no place where guards can meet safely.
    pub async fn join_as_group(
        setup: &ShareSetup,
        server: &str,
        hub: GuardSession,
    ) -> Result<(Self, SessionGroup), ShareError> {
        let hub = Arc::new(Mutex::new(hub));
        let group = SessionGroup::with_hub(Arc::clone(&hub));
        let share = Self::join_for(setup, server, hub, Some(group.clone())).await?;
        Ok((share, group))
    }

    async fn join_for(
        setup: &ShareSetup,
        server: &str,
        session: Arc<Mutex<GuardSession>>,
        group: Option<SessionGroup>,
    ) -> Result<Self, ShareError> {
        let place = SharePlace::open(setup)?;
        let held = place.hold().await?;
        let (listener, socket) = place.bind()?.into_parts();
        let state = Arc::new(ShareState {
            server: server.to_owned(),
            session,
            group,
            partners: Mutex::default(),
            next: AtomicU64::new(1),
            cancel: CancellationToken::new(),
        });
        state.with_session(GuardSession::share);
        let share = Self {
            state: Arc::clone(&state),
            socket,
        };
        for path in place.others(&share.socket)? {
            state.meet(&path).await;
        }
        tokio::spawn(accept(Arc::clone(&state), listener));
        drop(held);
        Ok(share)
    }

    /// The socket at which others join.
    #[must_use]
    pub fn socket(&self) -> &Path {
        self.socket.path()
    }

    /// How many partners there are.
    #[must_use]
    pub fn partners(&self) -> usize {
        self.state.with_partners(|partners| partners.len())
    }

    /// Tells the partners what the session learned since this was called last, and waits until they know it.
    pub async fn tell(&self) {
        let facts = self.state.with_session(GuardSession::take_facts);
        if facts.is_empty() {
            return;
        }
        let partners: Vec<_> = self
            .state
            .with_partners(|partners| partners.values().cloned().collect());
        if partners.is_empty() {
            return;
        }
        self.state.tell(&partners, facts).await;
    }
}

impl ShareState {
    fn with_session<T>(&self, work: impl FnOnce(&mut GuardSession) -> T) -> T {
        work(&mut lock(&self.session))
    }

    fn with_partners<T>(&self, work: impl FnOnce(&mut BTreeMap<u64, Arc<SharePartner>>) -> T) -> T {
        work(&mut lock(&self.partners))
    }

    fn learn(&self, facts: &[SharedFact]) {
        match &self.group {
            Some(group) => group.learn(facts),
            None => self.with_session(|session| session.learn(facts)),
        }
    }

    fn note(&self, code: FindingCode, message: &str) {
        self.with_session(|session| session.note(code, GuardDecision::Log, message));
    }

    async fn tell(&self, partners: &[Arc<SharePartner>], facts: Vec<SharedFact>) {
        let mut told: Vec<Result<u64, Unheard>> = partners.iter().map(|_| Ok(0)).collect();
        for portion in portions(facts) {
            for (partner, told) in partners.iter().zip(&mut told) {
                *told = told.and_then(|_| partner.tell(&portion));
            }
        }
        for (partner, told) in partners.iter().zip(told) {
            let heard = match told {
                Ok(number) => partner.heard(number).await,
                Err(unheard) => Err(unheard),
            };
            match heard {
                // Whoever reads from it tells that it left.
                Ok(()) | Err(Unheard::Gone) => {}
                Err(Unheard::Silent) => self.lose(partner),
            }
        }
    }

    /// A partner does not answer: it is left out.
    fn lose(&self, partner: &SharePartner) {
        partner.cancel.cancel();
        if self
            .with_partners(|partners| partners.remove(&partner.id))
            .is_some()
        {
            let message = format!(
                "the guard of `{}` does not answer; values are no longer followed from here to it",
                partner.server
            );
            self.note(FindingCode::PartnerLost, &message);
        }
    }

    /// Meets a guard that was there before us, and hears what it knows.
    async fn meet(self: &Arc<Self>, path: &Path) {
        let connected = UnixStream::connect(path).await;
        let stream = match connected {
            Ok(stream) => stream,
            Err(error) => {
                // Its process ended without a word.
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    let _ = std::fs::remove_file(path);
                }
                return;
            }
        };
        let (ready, is_ready) = oneshot::channel();
        let met = self.take_in(stream, Some(ready)).await;
        let heard = tokio::time::timeout(HEARD_TIME, is_ready).await;
        if met.is_err() || !matches!(heard, Ok(Ok(()))) {
            let message =
                "a guard of this session does not answer; what it knows is not known here";
            self.note(FindingCode::PartnerLost, message);
        }
    }

    /// Greets whoever is at the other end, and listens to it from now on.
    async fn take_in(
        self: &Arc<Self>,
        stream: UnixStream,
        ready: Option<oneshot::Sender<()>>,
    ) -> io::Result<Arc<SharePartner>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (partner, incoming) =
            greet(id, stream, &self.server, self.cancel.child_token()).await?;
        let partner = Arc::new(partner);
        self.with_partners(|partners| partners.insert(id, Arc::clone(&partner)));
        tokio::spawn(listen(
            Arc::clone(self),
            Arc::clone(&partner),
            incoming,
            ready,
        ));
        Ok(partner)
    }

    /// Tells a guard that joins what is known here.
    async fn welcome(self: Arc<Self>, stream: UnixStream) {
        let Ok(partner) = self.take_in(stream, None).await else {
            return;
        };
        // It is told what comes from now on, so nothing is missed in between.
        let facts = self.with_session(|session| session.all_facts());
        for portion in portions(facts) {
            match partner.tell(&portion) {
                Ok(number) if partner.heard(number).await.is_ok() => {}
                _ => return self.lose(&partner),
            }
        }
        if partner.say(&ShareMessage::Ready).is_ok() {
            let message = format!("the guard of `{}` joined the session", partner.server);
            self.note(FindingCode::PartnerJoined, &message);
        }
    }
}

/// Lets others join.
async fn accept(state: Arc<ShareState>, listener: UnixListener) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = state.cancel.cancelled() => return,
        };
        let Ok((stream, _)) = accepted else {
            // Too many open files, perhaps: others must be able to close theirs.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        if state.with_partners(|partners| partners.len()) < MAX_PARTNERS {
            tokio::spawn(Arc::clone(&state).welcome(stream));
        }
    }
}

/// Listens to a partner until it leaves.
async fn listen(
    state: Arc<ShareState>,
    partner: Arc<SharePartner>,
    mut incoming: PartnerIncoming,
    mut ready: Option<oneshot::Sender<()>>,
) {
    loop {
        let message = tokio::select! {
            message = incoming.next() => message,
            () = partner.cancel.cancelled() => None,
        };
        match message {
            Some(ShareMessage::Facts { number, facts }) => {
                state.learn(&facts);
                if partner.say(&ShareMessage::Heard { number }).is_err() {
                    break;
                }
            }
            Some(ShareMessage::Heard { number }) => {
                incoming.heard.send_replace(number);
            }
            Some(ShareMessage::Ready) => {
                if let Some(ready) = ready.take() {
                    let _ = ready.send(());
                }
            }
            Some(ShareMessage::Hello { .. }) | None => break,
        }
    }
    partner.cancel.cancel();
    let left = state.with_partners(|partners| partners.remove(&partner.id));
    if left.is_some() && !state.cancel.is_cancelled() {
        let message = format!(
            "the guard of `{}` left the session; what it saw stays known here",
            partner.server
        );
        state.note(FindingCode::PartnerLeft, &message);
    }
}
