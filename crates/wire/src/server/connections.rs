//! The connections of a server: what each is doing, and which one makes way when there are too many.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::WireLimits;
use crate::sync::lock;

/// How long a connection is left alone in any case: one that has just come, or has just been answered, must not be closed
/// before its request is read or its answer is sent.
const GRACE: Duration = Duration::from_millis(250);

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionStage {
    /// Nothing was heard of it yet.
    Silent,
    /// A request began, and its headers are not there yet.
    Head,
    /// Its last request is answered, and no other has begun.
    Idle,
    /// The body of a request is coming.
    Body,
    /// A request waits for its answer, or the answer is being sent.
    Busy,
}

impl ConnectionStage {
    /// How long a connection may do this before it is closed; what is read or written has limits of its own.
    pub(super) fn patience(self, limits: &WireLimits) -> Option<Duration> {
        match self {
            Self::Silent | Self::Head => Some(limits.header_timeout),
            Self::Idle => Some(limits.idle_timeout),
            Self::Body | Self::Busy => None,
        }
    }

    /// Whether something is lost when the connection ends now.
    pub(super) fn is_under_way(self) -> bool {
        match self {
            Self::Silent | Self::Idle => false,
            Self::Head | Self::Body | Self::Busy => true,
        }
    }
}

/// A connection, as its server sees it.
#[derive(Debug)]
pub(super) struct ConnectionWatch {
    stage: watch::Sender<(ConnectionStage, Instant)>,
    /// Whether something is to be written and the other side does not take it: an answer may be made and not be out.
    blocked: AtomicBool,
    /// Tells it to make way.
    leave: CancellationToken,
    table: Arc<ConnectionSeats>,
}

impl ConnectionWatch {
    pub(super) fn enter(&self, stage: ConnectionStage) {
        self.stage.send_replace((stage, Instant::now()));
        if stage != ConnectionStage::Busy {
            self.table.changed.notify_one();
        }
    }

    /// A write waits for the other side, or went on.
    pub(super) fn set_blocked(&self, blocked: bool) {
        let was_blocked = self.blocked.swap(blocked, Ordering::Relaxed);
        // An answer that is being read is no rest between two requests.
        if (was_blocked || blocked) && self.stage() == ConnectionStage::Idle {
            self.enter(ConnectionStage::Idle);
        }
    }

    /// Bytes came: a request begins, if none is under way.
    pub(super) fn heard(&self) {
        let is_first = !self.stage().is_under_way();
        if is_first {
            self.enter(ConnectionStage::Head);
        }
    }

    pub(super) fn stage(&self) -> ConnectionStage {
        self.stage.borrow().0
    }

    /// Waits until the connection is to make way for another.
    pub(super) async fn evicted(&self) {
        self.leave.cancelled().await;
    }

    /// Waits until the connection has done the same for longer than it may.
    pub(super) async fn overdue(&self, limits: &WireLimits) {
        let mut stages = self.stage.subscribe();
        loop {
            let (stage, since) = *stages.borrow_and_update();
            let end = stage.patience(limits).map(|patience| since + patience);
            // A write that waits has a limit of its own.
            let is_read = stage == ConnectionStage::Idle && self.blocked.load(Ordering::Relaxed);
            let over = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over, if !is_read => return,
                // We hold the sender, so it is there.
                _ = stages.changed() => {}
            }
        }
    }
}

/// The connections of one server, and the most there may be.
#[derive(Debug)]
pub(super) struct ConnectionSeats {
    most: usize,
    /// How long a body may stand still before its connection makes way.
    stall: Duration,
    taken: Mutex<Vec<Arc<ConnectionWatch>>>,
    /// One is gone, or may be asked to go.
    changed: Notify,
}

/// The right of a connection to be there, until this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSeat(pub(super) Arc<ConnectionWatch>);

impl ConnectionSeats {
    pub(super) fn new(limits: &WireLimits) -> Arc<Self> {
        Arc::new(Self {
            most: limits.max_connections.max(1),
            stall: limits.stall_timeout,
            taken: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Finds a seat for a new connection. When all are taken, the one that is least missed makes way; while everybody
    /// is busy, the new one waits.
    pub(super) async fn admit(self: &Arc<Self>) -> ConnectionSeat {
        loop {
            let changed = self.changed.notified();
            if let Some(seat) = self.try_admit() {
                return seat;
            }
            tokio::select! {
                () = changed => {}
                // One whose time is up tells nobody.
                () = tokio::time::sleep(GRACE.min(self.stall)) => {}
            }
        }
    }

    fn try_admit(self: &Arc<Self>) -> Option<ConnectionSeat> {
        let mut taken = lock(&self.taken);
        if taken.len() >= self.most {
            let position = self.least_missed(&taken)?;
            taken.swap_remove(position).leave.cancel();
        }
        let watch = Arc::new(ConnectionWatch {
            stage: watch::Sender::new((ConnectionStage::Silent, Instant::now())),
            blocked: AtomicBool::new(false),
            leave: CancellationToken::new(),
            table: Arc::clone(self),
        });
        taken.push(Arc::clone(&watch));
        Some(ConnectionSeat(watch))
    }

    /// Those that never sent a request go first, then those that are idle, then those whose body stands still or that do
    /// not read their answer; of those that are alike, the one that has been so for longest.
    fn least_missed(&self, taken: &[Arc<ConnectionWatch>]) -> Option<usize> {
        let candidates = taken.iter().enumerate().filter_map(|(position, watch)| {
            let (stage, since) = *watch.stage.borrow();
            let (rank, grace) = match stage {
                ConnectionStage::Silent | ConnectionStage::Head => (0, GRACE),
                ConnectionStage::Idle if watch.blocked.load(Ordering::Relaxed) => (2, self.stall),
                ConnectionStage::Idle => (1, GRACE),
                ConnectionStage::Body => (2, self.stall),
                ConnectionStage::Busy => return None,
            };
            (since.elapsed() >= grace).then_some((rank, since, position))
        });
        candidates.min().map(|(.., position)| position)
    }
}

impl Drop for ConnectionSeat {
    fn drop(&mut self) {
        let table = &self.0.table;
        lock(&table.taken).retain(|watch| !Arc::ptr_eq(watch, &self.0));
        table.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    /// The answer of a connection is made, and its client is still reading it: closing now would cut it.
    #[tokio::test]
    async fn who_reads_an_answer_does_not_make_way() {
        let limits = WireLimits {
            max_connections: 1,
            stall_timeout: Duration::from_secs(30),
            idle_timeout: Duration::ZERO,
            ..WireLimits::default()
        };
        let seats = ConnectionSeats::new(&limits);
        let seat = seats.try_admit().unwrap();
        seat.0.set_blocked(true);
        let a_while_ago = Instant::now() - GRACE;
        let idle = (ConnectionStage::Idle, a_while_ago);
        seat.0.stage.send_replace(idle);
        assert!(seats.try_admit().is_none());
        let mut overdue = Box::pin(seat.0.overdue(&limits));
        let waits = std::future::poll_fn(|context| Poll::Ready(overdue.as_mut().poll(context)));
        assert!(waits.await.is_pending());
        // It has taken the rest.
        seat.0.set_blocked(false);
        overdue.await;
        seat.0.stage.send_replace(idle);
        assert!(seats.try_admit().is_some());
        assert!(seat.0.leave.is_cancelled());
    }

    #[tokio::test]
    async fn whoever_is_least_missed_makes_way() {
        let limits = WireLimits {
            max_connections: 4,
            stall_timeout: Duration::from_secs(3),
            ..WireLimits::default()
        };
        let seats = ConnectionSeats::new(&limits);
        let long_ago = Instant::now() - limits.stall_timeout;
        let mut there = Vec::new();
        for stage in [
            ConnectionStage::Busy,
            ConnectionStage::Idle,
            ConnectionStage::Body,
            ConnectionStage::Head,
        ] {
            let seat = seats.try_admit().unwrap();
            seat.0.enter(stage);
            there.push((seat, stage));
        }
        // All of them have only just begun.
        assert!(seats.try_admit().is_none());
        for (seat, stage) in &there {
            seat.0.stage.send_replace((*stage, long_ago));
        }
        let mut new = Vec::new();
        for expected in [
            [false, false, false, true],
            [false, true, false, true],
            [false, true, true, true],
        ] {
            new.push(seats.try_admit().unwrap());
            new.last().unwrap().0.enter(ConnectionStage::Busy);
            let gone = there.iter().map(|(seat, _)| seat.0.leave.is_cancelled());
            assert_eq!(gone.collect::<Vec<_>>(), expected);
        }
        assert!(seats.try_admit().is_none());
        drop(there);
        assert!(seats.try_admit().is_some());
    }
}
