//! Limits connections: how many there may be, of all and of one peer, and which one is closed for a new one: one that is idle,
//! or else one that waits for a body that comes too slowly.
//!
//! Admitting a connection and ending it are behind a lock; a request only notes in the state of its own connection that it is
//! under way.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::peer;
use crate::sync::lock;

/// How many connections a listener has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Of all peers together.
    pub all: usize,
    /// Of one peer: an IPv4 address, or a network of IPv6 addresses.
    pub of_peer: usize,
}

impl ConnectionLimits {
    /// The most connections of a listener.
    pub const MOST: usize = 1_024;
}

impl Default for ConnectionLimits {
    /// One peer may have half of it: alone it keeps nobody out, and it may be a proxy before all others.
    fn default() -> Self {
        Self {
            all: Self::MOST,
            of_peer: Self::MOST / 2,
        }
    }
}

/// Admits the connections of a listener.
#[derive(Debug)]
pub struct ConnectionLimiter {
    limits: ConnectionLimits,
    opened: Instant,
    connections: Mutex<ConnectionTable>,
}

#[derive(Debug)]
struct ConnectionTable {
    /// A connection whose client takes longer to send a body makes way when no idle one can, in milliseconds.
    slow_body: u64,
    count: usize,
    of: HashMap<IpAddr, Vec<Arc<ConnectionState>>>,
}

/// What is known of one connection.
#[derive(Debug)]
pub struct ConnectionState {
    opened: Instant,
    requests: AtomicUsize,
    was_used: AtomicBool,
    /// When the last request ended, in milliseconds after the listener was opened.
    idle_since: AtomicU64,
    /// Since when the client has not made room for what it is sent, in the same way; 0 if it has.
    full_since: AtomicU64,
    /// Since when the body of a request has been coming, in the same way; 0 if none is.
    receiving_since: AtomicU64,
    /// Tells the connection to make way.
    leave: CancellationToken,
    /// Nobody waits any more for what it has to send.
    is_given_up: AtomicBool,
}

impl ConnectionState {
    /// Whether a request is under way, from its head to the end of its answer.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Acquire) > 0
    }

    /// Whether there ever was a request.
    #[must_use]
    pub fn was_used(&self) -> bool {
        self.was_used.load(Ordering::Acquire)
    }

    /// Waits until the connection is to make way.
    pub async fn evicted(&self) {
        self.leave.cancelled().await;
    }

    /// The same, for whoever must hold it by itself.
    pub fn eviction(&self) -> WaitForCancellationFutureOwned {
        self.leave.clone().cancelled_owned()
    }

    /// Notes whether the client still has to send the rest of a body.
    pub fn note_receiving(&self, is_receiving: bool) {
        let since = if is_receiving { self.now().max(1) } else { 0 };
        self.receiving_since.store(since, Ordering::Release);
    }

    /// Whether its client has stopped reading for too long.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire)
    }

    /// Notes whether there is something that the client has not made room for.
    pub fn note_full(&self, is_full: bool) {
        if is_full {
            let (now, order) = (self.now().max(1), Ordering::AcqRel);
            // Since when, if it is known already.
            let _ = self
                .full_since
                .compare_exchange(0, now, order, Ordering::Acquire);
        } else {
            self.full_since.store(0, Ordering::Release);
        }
    }

    /// Whether a client has not taken anything of what it is sent for so long.
    fn is_stalled(&self, time: Duration) -> bool {
        match self.full_since.load(Ordering::Acquire) {
            0 => false,
            since => u128::from(self.now().saturating_sub(since)) >= time.as_millis(),
        }
    }

    /// Since when there is something that the client has not made room for, in milliseconds after the listener was opened; 0 if
    /// there is nothing.
    #[must_use]
    pub fn full_since(&self) -> u64 {
        self.full_since.load(Ordering::Acquire)
    }

    /// Whether it can make way, what for, and since when. Of two, the smaller one goes first.
    fn may_leave(&self, slow_body: u64) -> Option<(LeaveReason, u64)> {
        if !self.is_busy() {
            return Some((LeaveReason::Idle, self.idle_since.load(Ordering::Acquire)));
        }
        let since = self.receiving_since.load(Ordering::Acquire);
        let is_slow = since > 0 && self.now().saturating_sub(since) >= slow_body;
        is_slow.then_some((LeaveReason::SlowBody, since))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Why a connection can make way for another one. Whoever is idle loses nothing and goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LeaveReason {
    /// No request is under way.
    Idle,
    /// The body of its request has been coming for too long.
    SlowBody,
}

/// A request under way; the connection does not make way for others meanwhile.
#[derive(Debug)]
pub struct ActiveRequest(Arc<ConnectionState>);

impl ActiveRequest {
    /// A request of this connection, until this is dropped.
    #[must_use]
    pub fn at(state: &Arc<ConnectionState>) -> Self {
        state.requests.fetch_add(1, Ordering::AcqRel);
        state.was_used.store(true, Ordering::Release);
        Self(Arc::clone(state))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.now(), Ordering::Release);
        self.0.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The right of a connection to be there, until this is dropped.
#[derive(Debug)]
pub struct Permit {
    limiter: Arc<ConnectionLimiter>,
    peer: IpAddr,
    /// What is known of the connection.
    pub state: Arc<ConnectionState>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.connections().remove(self.peer, &self.state);
    }
}

/// What a new connection came to.
#[derive(Debug)]
pub enum Admission {
    /// There was room.
    Free(Permit),
    /// There is room because an idle connection makes way.
    Evicted(Permit),
    /// There is no room, and everybody there is busy.
    Full,
}

impl ConnectionLimiter {
    /// A limiter for which a body is slow after this time.
    #[must_use]
    pub fn new(limits: ConnectionLimits, slow_body: Duration) -> Arc<Self> {
        Arc::new(Self {
            limits,
            opened: Instant::now(),
            connections: Mutex::new(ConnectionTable {
                slow_body: u64::try_from(slow_body.as_millis()).unwrap_or(u64::MAX),
                count: 0,
                of: HashMap::new(),
            }),
        })
    }

    /// Admits a new connection. `leave` is cancelled when it is to make way.
    #[must_use]
    pub fn admit(self: &Arc<Self>, address: IpAddr, leave: CancellationToken) -> Admission {
        let peer = peer::of(address);
        let mut connections = self.connections();
        let is_over_share = connections.of.get(&peer).map_or(0, Vec::len) >= self.limits.of_peer;
        let is_full = connections.count >= self.limits.all;
        let evicts = match (is_over_share, is_full) {
            (true, _) => connections.evict_of(peer),
            (false, true) => connections.evict(),
            (false, false) => false,
        };
        if (is_over_share || is_full) && !evicts {
            return Admission::Full;
        }
        let state = Arc::new(ConnectionState {
            opened: self.opened,
            requests: AtomicUsize::new(0),
            was_used: AtomicBool::new(false),
            idle_since: AtomicU64::new(0),
            full_since: AtomicU64::new(0),
            receiving_since: AtomicU64::new(0),
            leave,
            is_given_up: AtomicBool::new(false),
        });
        state.idle_since.store(state.now(), Ordering::Release);
        connections.count += 1;
        connections
            .of
            .entry(peer)
            .or_default()
            .push(Arc::clone(&state));
        drop(connections);
        let permit = Permit {
            limiter: Arc::clone(self),
            peer,
            state,
        };
        if evicts {
            Admission::Evicted(permit)
        } else {
            Admission::Free(permit)
        }
    }

    /// Has so many connections make way, though there is room for more: the machine has none. Returns how many do.
    pub fn evict_idle(&self, count: usize) -> usize {
        let mut connections = self.connections();
        (0..count).take_while(|_| connections.evict()).count()
    }

    /// Gives up the connections whose clients have not taken anything of what they are sent for so long.
    pub fn give_up_stalled(&self, time: Duration) {
        let connections = self.connections();
        let stalled = connections.of.values().flatten();
        for state in stalled.filter(|state| state.is_stalled(time)) {
            state.is_given_up.store(true, Ordering::Release);
            state.leave.cancel();
        }
    }

    fn connections(&self) -> MutexGuard<'_, ConnectionTable> {
        lock(&self.connections)
    }
}

impl ConnectionTable {
    fn remove(&mut self, peer: IpAddr, state: &Arc<ConnectionState>) {
        let Some(those) = self.of.get_mut(&peer) else {
            return;
        };
        let Some(at) = those.iter().position(|one| Arc::ptr_eq(one, state)) else {
            return;
        };
        those.swap_remove(at);
        self.count -= 1;
        if those.is_empty() {
            self.of.remove(&peer);
        }
    }

    /// A connection of whoever has the most makes way: the one that was idle for the longest, or that has sent its body for the
    /// longest where nobody is idle.
    fn evict(&mut self) -> bool {
        let leaving = self.of.iter().filter_map(|(peer, those)| {
            let first = those
                .iter()
                .filter_map(|state| state.may_leave(self.slow_body));
            let (reason, since) = first.min()?;
            Some((Reverse(reason), those.len(), Reverse(since), *peer))
        });
        match leaving.max() {
            Some((.., peer)) => self.evict_of(peer),
            None => false,
        }
    }

    /// The same for the connections of this peer.
    fn evict_of(&mut self, peer: IpAddr) -> bool {
        let those = self.of.get(&peer).into_iter().flatten();
        let leaving = those.filter_map(|state| Some((state.may_leave(self.slow_body)?, state)));
        let Some((_, state)) = leaving.min_by_key(|(reason, _)| *reason) else {
            return false;
        };
        let state = Arc::clone(state);
        self.remove(peer, &state);
        state.leave.cancel();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(all: usize, of_peer: usize) -> Arc<ConnectionLimiter> {
        ConnectionLimiter::new(ConnectionLimits { all, of_peer }, Duration::MAX)
    }

    fn admit(limiter: &Arc<ConnectionLimiter>, address: &str) -> Admission {
        limiter.admit(address.parse().unwrap(), CancellationToken::new())
    }

    fn permit(entry: Admission) -> Permit {
        match entry {
            Admission::Free(permit) | Admission::Evicted(permit) => permit,
            Admission::Full => panic!("there is no room"),
        }
    }

    fn is_evicted(permit: &Permit) -> bool {
        permit.state.leave.is_cancelled()
    }

    #[test]
    fn one_peer_fills_its_share_and_no_more() {
        let limiter = limiter(10, 3);
        let first = permit(admit(&limiter, "192.0.2.1"));
        let busy: Vec<Permit> = (0..2)
            .map(|_| permit(admit(&limiter, "192.0.2.1")))
            .collect();
        let asking: Vec<ActiveRequest> = busy
            .iter()
            .map(|permit| ActiveRequest::at(&permit.state))
            .collect();
        // Its own idle connection makes way, never one in use.
        let other = permit(admit(&limiter, "192.0.2.2"));
        assert!(matches!(
            admit(&limiter, "192.0.2.1"),
            Admission::Evicted(_)
        ));
        assert!(is_evicted(&first) && !busy.iter().any(is_evicted) && !is_evicted(&other));
        // That one left at once, so there is room again; then everybody is busy.
        let third = permit(admit(&limiter, "192.0.2.1"));
        let last = ActiveRequest::at(&third.state);
        assert!(matches!(admit(&limiter, "192.0.2.1"), Admission::Full));
        assert!(matches!(admit(&limiter, "192.0.2.2"), Admission::Free(_)));
        drop((last, asking));
        assert!(matches!(
            admit(&limiter, "192.0.2.1"),
            Admission::Evicted(_)
        ));
    }

    #[test]
    fn whoever_has_the_most_makes_way() {
        let limiter = limiter(4, 3);
        let light = permit(admit(&limiter, "192.0.2.2"));
        let heavy: Vec<Permit> = (0..3)
            .map(|_| permit(admit(&limiter, "192.0.2.1")))
            .collect();
        // The light one was idle for longer.
        heavy[0].state.idle_since.store(30, Ordering::Release);
        heavy[1].state.idle_since.store(20, Ordering::Release);
        heavy[2].state.idle_since.store(25, Ordering::Release);
        light.state.idle_since.store(0, Ordering::Release);
        let new = permit(admit(&limiter, "192.0.2.3"));
        let making_way: Vec<bool> = heavy.iter().map(is_evicted).collect();
        assert_eq!(making_way, [false, true, false]);
        assert!(!is_evicted(&light) && !is_evicted(&new));
        assert_eq!(limiter.evict_idle(10), 4);
        assert_eq!(limiter.connections().count, 0);
    }

    #[test]
    fn a_slow_body_makes_way_where_nobody_is_idle() {
        let limits = ConnectionLimits { all: 3, of_peer: 3 };
        let limiter = ConnectionLimiter::new(limits, Duration::ZERO);
        let busy = |address| {
            let permit = permit(admit(&limiter, address));
            let request = ActiveRequest::at(&permit.state);
            (permit, request)
        };
        // One is answered, and two still send.
        let (answered, slow, slower) = (busy("192.0.2.1"), busy("192.0.2.1"), busy("192.0.2.1"));
        slow.0.state.receiving_since.store(2, Ordering::Release);
        slower.0.state.receiving_since.store(1, Ordering::Release);
        let idle = permit(admit(&limiter, "192.0.2.2"));
        assert!(is_evicted(&slower.0) && !is_evicted(&slow.0) && !is_evicted(&answered.0));
        let last = busy("192.0.2.3");
        assert!(
            is_evicted(&idle) && !is_evicted(&slow.0),
            "idle ones go first"
        );
        // Whoever has sent everything is waited for.
        slow.0.state.note_receiving(false);
        assert!(matches!(admit(&limiter, "192.0.2.4"), Admission::Full));
        drop(last);
        // So is whoever has not had the time to send it.
        let patient = self::limiter(1, 1);
        let sending = permit(admit(&patient, "192.0.2.1"));
        let _request = ActiveRequest::at(&sending.state);
        sending.state.note_receiving(true);
        assert!(matches!(admit(&patient, "192.0.2.1"), Admission::Full));
    }

    #[test]
    fn seats_are_given_back() {
        let limiter = limiter(2, 2);
        for _ in 0..10 {
            let one = permit(admit(&limiter, "192.0.2.1"));
            let other = permit(admit(&limiter, "192.0.2.1"));
            drop((one, other));
        }
        // One that made way and then ends is not counted twice.
        let evicted = permit(admit(&limiter, "192.0.2.1"));
        let kept = permit(admit(&limiter, "192.0.2.1"));
        kept.state.idle_since.store(u64::MAX, Ordering::Release);
        let new = permit(admit(&limiter, "192.0.2.1"));
        drop(evicted);
        assert_eq!(limiter.connections().count, 2);
        drop((kept, new));
        assert_eq!(limiter.connections().count, 0);
        assert!(limiter.connections().of.is_empty());
    }
}
