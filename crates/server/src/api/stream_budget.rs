//! What streams may take: how many there may be, of all and of one peer, and how many bytes wait for those who do not read.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use http::header::CONTENT_LENGTH;
use hyper::body::Body as _;
use prometheus_client::metrics::gauge::Gauge;
use proofhouse_wire::sync::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::metrics::Metrics;
use proofhouse_wire::connection_limiter::ConnectionLimits;
use proofhouse_wire::peer;

/// Bytes that are read for one reader at a time; a single turn may be larger.
pub(super) const READER_BYTES: usize = 256 << 10;
/// Bytes that are read for all readers together and that they have not taken yet.
const ALL_BYTES: usize = 64 << 20;
/// Bytes of turns on a page; a single turn may be larger.
pub(crate) const PAGE_BYTES: usize = 1 << 20;
/// Bytes of an answer that are handed over at once.
const PIECE: usize = 64 << 10;
/// How long a reader waits for its share before its stream ends; the client comes back.
const PATIENCE: Duration = Duration::from_secs(10);

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
    /// How many streams there are, for the metrics.
    stream_count: Gauge,
    /// How many bytes are held, for the metrics.
    byte_count: Gauge,
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

/// The right to hold bytes for a reader, until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    _permit: OwnedSemaphorePermit,
    bytes: i64,
    count: Gauge,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.count.dec_by(self.bytes);
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.budget.stream_count.dec();
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
    /// A budget that tells these metrics what is taken of it.
    pub(crate) fn new(limits: StreamLimits, metrics: &Metrics) -> Arc<Self> {
        Arc::new(Self {
            limits,
            open: Mutex::default(),
            bytes: Arc::new(Semaphore::new(ALL_BYTES)),
            stream_count: metrics.streams.clone(),
            byte_count: metrics.stream_bytes.clone(),
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
        self.stream_count.inc();
        Some(StreamPermit {
            budget: Arc::clone(self),
            peer,
        })
    }

    /// The right to hold so many bytes for a reader, unless others do not let go of theirs. What is larger than everything
    /// is held alone.
    pub(super) async fn hold(&self, bytes: usize) -> Option<HeldBytes> {
        let wanted = u32::try_from(bytes.min(ALL_BYTES)).ok()?;
        let asked = Arc::clone(&self.bytes).acquire_many_owned(wanted);
        let permit = tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?;
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.byte_count.inc_by(bytes);
        Some(HeldBytes {
            _permit: permit,
            bytes,
            count: self.byte_count.clone(),
        })
    }
}

impl HeldBytes {
    /// The same answer, in pieces: the share is held until the client has taken nearly all of it.
    pub(crate) fn until_taken(self, answer: Response) -> Response {
        let (mut parts, body) = answer.into_parts();
        if let Some(length) = body.size_hint().exact() {
            parts.headers.insert(CONTENT_LENGTH, length.into());
        }
        let pieces = body.into_data_stream().flat_map(move |whole| {
            let _until_dropped = &self;
            let whole = whole.unwrap_or_default();
            stream::iter((0..whole.len()).step_by(PIECE).map(move |from| {
                let to = whole.len().min(from + PIECE);
                Ok::<_, axum::Error>(whole.slice(from..to))
            }))
        });
        Response::from_parts(parts, Body::from_stream(pieces))
    }
}

/// How many things of these sizes fit together, and how many bytes they have: at least one, whatever its size.
pub(crate) fn fitting(sizes: impl IntoIterator<Item = usize>, room: usize) -> (usize, usize) {
    let (mut count, mut total) = (0, 0);
    for size in sizes {
        if count > 0 && total + size > room {
            break;
        }
        total += size;
        count += 1;
    }
    (count, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_its_share_and_at_least_one() {
        let page = |sizes: &[usize]| fitting(sizes.iter().copied(), READER_BYTES);
        assert_eq!(page(&[]), (0, 0));
        assert_eq!(page(&[10, 20]), (2, 30));
        assert_eq!(page(&[READER_BYTES * 3, 1]), (1, READER_BYTES * 3));
        assert_eq!(page(&[READER_BYTES / 2; 5]), (2, READER_BYTES));
    }

    #[tokio::test(start_paused = true)]
    async fn streams_leave_room_and_give_it_back() {
        let metrics = Metrics::default();
        let budget = StreamBudget::new(StreamLimits { all: 3, of_peer: 2 }, &metrics);
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
        assert_eq!(metrics.streams.get(), 2);
        drop((second, third));
        assert_eq!(metrics.streams.get(), 0);
        assert_eq!(lock(&budget.open).all, 0);
        assert!(lock(&budget.open).of.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn all_readers_share_the_bytes() {
        let metrics = Metrics::default();
        let budget = StreamBudget::new(StreamLimits { all: 3, of_peer: 3 }, &metrics);
        let everything = budget.hold(ALL_BYTES + 1).await;
        assert!(everything.is_some());
        // What is larger than everything is counted as it is.
        let held = i64::try_from(ALL_BYTES + 1).ok();
        assert_eq!(Some(metrics.stream_bytes.get()), held);
        assert!(budget.hold(1).await.is_none(), "somebody has all of it");
        drop(everything);
        let one = budget.hold(1).await;
        assert_eq!((one.is_some(), metrics.stream_bytes.get()), (true, 1));
        drop(one);
        assert_eq!(metrics.stream_bytes.get(), 0);
    }
}
