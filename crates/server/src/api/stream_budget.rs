//! What streams may take: how many there may be, of all and of one peer, and how many bytes wait for those who do not read.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_wire::sync::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::{Api, Caller};
use crate::connection_limiter::ConnectionLimits;
use crate::peer;
use crate::problem::Problem;

/// Bytes that are read for one reader at a time; a single turn may be larger.
pub(super) const READER_BYTES: usize = 256 << 10;
/// Bytes that are read for all readers together and that they have not taken yet.
const ALL_BYTES: usize = 64 << 20;
/// How long a reader waits for its share before its stream ends; the client comes back.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it is believed that a key is good.
const BELIEVED: Duration = Duration::from_millis(2_500);

/// How many streams there may be. The rest of the connections is for everything else: health, signing in, requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// Of all peers together.
    pub all: usize,
    /// Of one peer.
    pub of_peer: usize,
}

impl StreamLimits {
    /// Three quarters of the connections.
    #[must_use]
    pub fn within(connections: ConnectionLimits) -> Self {
        let share = |count: usize| (count / 4 * 3).max(1);
        Self {
            all: share(connections.all),
            of_peer: share(connections.of_peer),
        }
    }
}

/// What streams take now.
#[derive(Debug)]
pub(crate) struct StreamBudget {
    limits: StreamLimits,
    open: Mutex<OpenStreams>,
    bytes: Arc<Semaphore>,
    /// The keys that were found to be good, and when.
    believed: Mutex<HashMap<String, Instant>>,
}

#[derive(Debug, Default)]
struct OpenStreams {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// The right of a stream to be there, until this is dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    budget: Arc<StreamBudget>,
    peer: Option<IpAddr>,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = lock(&self.budget.open);
        open.all = open.all.saturating_sub(1);
        if let Some(peer) = self.peer
            && let Some(count) = open.of.get_mut(&peer)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.of.remove(&peer);
            }
        }
    }
}

impl StreamBudget {
    pub(crate) fn new(limits: StreamLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            open: Mutex::default(),
            bytes: Arc::new(Semaphore::new(ALL_BYTES)),
            believed: Mutex::default(),
        })
    }

    /// Admits a stream, if there is room.
    pub(crate) fn admit(self: &Arc<Self>, address: Option<IpAddr>) -> Option<StreamPermit> {
        let peer = address.map(peer::of);
        let mut open = lock(&self.open);
        let of_peer = peer.and_then(|peer| open.of.get(&peer)).copied();
        if open.all >= self.limits.all || of_peer.unwrap_or(0) >= self.limits.of_peer {
            return None;
        }
        open.all += 1;
        if let Some(peer) = peer {
            *open.of.entry(peer).or_default() += 1;
        }
        drop(open);
        Some(StreamPermit {
            budget: Arc::clone(self),
            peer,
        })
    }

    /// The right to hold so many bytes for a reader, unless others do not let go of theirs. What is larger than everything
    /// is held alone.
    pub(super) async fn hold(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let wanted = u32::try_from(bytes.min(ALL_BYTES)).ok()?;
        let asked = Arc::clone(&self.bytes).acquire_many_owned(wanted);
        tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()
    }

    /// Insists that whoever follows a stream may still do so. Many streams of one key ask once.
    pub(crate) async fn let_in(&self, api: &Api, caller: &Caller) -> Result<(), Problem> {
        let hash = caller.hash();
        if self.is_believed(&hash) {
            return Ok(());
        }
        caller.is_still_let_in(api).await?;
        if !hash.is_empty() {
            self.believe(&hash);
        }
        Ok(())
    }

    /// Whether a key was found to be good just now, for any stream.
    fn is_believed(&self, hash: &str) -> bool {
        let believed = lock(&self.believed);
        believed
            .get(hash)
            .is_some_and(|since| since.elapsed() < BELIEVED)
    }

    /// A key was found to be good.
    fn believe(&self, hash: &str) {
        let mut believed = lock(&self.believed);
        believed.retain(|_, since| since.elapsed() < BELIEVED);
        believed.insert(hash.to_owned(), Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn streams_leave_room_and_give_it_back() {
        let budget = StreamBudget::new(StreamLimits { all: 3, of_peer: 2 });
        let (one, other) = ("192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        let first = budget.admit(one);
        let second = budget.admit(one);
        assert!(first.is_some() && second.is_some());
        assert!(budget.admit(one).is_none(), "one peer has its share");
        let third = budget.admit(other);
        assert!(third.is_some());
        assert!(budget.admit(other).is_none(), "there is no more room");
        drop(first);
        assert!(budget.admit(other).is_some());
        drop((second, third));
        assert_eq!(lock(&budget.open).all, 0);
        assert!(lock(&budget.open).of.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn all_readers_share_the_bytes() {
        let budget = StreamBudget::new(StreamLimits { all: 3, of_peer: 3 });
        let everything = budget.hold(usize::MAX).await;
        assert!(everything.is_some());
        assert!(budget.hold(1).await.is_none(), "somebody has all of it");
        drop(everything);
        assert!(budget.hold(1).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_believed_for_a_moment() {
        let budget = StreamBudget::new(StreamLimits { all: 1, of_peer: 1 });
        assert!(!budget.is_believed("a"));
        budget.believe("a");
        assert!(budget.is_believed("a") && !budget.is_believed("b"));
        tokio::time::advance(BELIEVED).await;
        assert!(!budget.is_believed("a"));
    }
}
