//! Room for connections: how many there may be, of all and of one peer, and which of them makes way for a new one.
//!
//! Taking a seat and leaving it are behind a lock; a request only notes on the seat of its own connection that it is under way.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::peer;

/// How many connections a door has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of all peers together.
    pub all: usize,
    /// Of one peer: an IPv4 address, or a network of IPv6 addresses.
    pub of_peer: usize,
}

impl Limits {
    /// The most connections of a door.
    pub const MOST: usize = 1_024;
}

impl Default for Limits {
    /// One peer may have half of it: alone it keeps nobody out, and it may be a proxy before all others.
    fn default() -> Self {
        Self {
            all: Self::MOST,
            of_peer: Self::MOST / 2,
        }
    }
}

/// The connections of a door.
#[derive(Debug)]
pub(crate) struct Room {
    limits: Limits,
    opened: Instant,
    seats: Mutex<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    count: usize,
    of: HashMap<IpAddr, Vec<Arc<Seat>>>,
}

/// What is known of one connection.
#[derive(Debug)]
pub(crate) struct Seat {
    opened: Instant,
    requests: AtomicUsize,
    was_used: AtomicBool,
    /// When the last request ended, in milliseconds after the door was opened.
    idle_since: AtomicU64,
    /// Tells the connection to make way.
    leave: CancellationToken,
}

impl Seat {
    /// Whether a request is under way, from its head to the end of its answer.
    pub(crate) fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Acquire) > 0
    }

    /// Whether there ever was a request.
    pub(crate) fn was_used(&self) -> bool {
        self.was_used.load(Ordering::Acquire)
    }

    /// Waits until the connection is to make way.
    pub(crate) async fn is_wanted(&self) {
        self.leave.cancelled().await;
    }

    fn idle_since(&self) -> Option<u64> {
        (!self.is_busy()).then(|| self.idle_since.load(Ordering::Acquire))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A request under way; the connection does not make way for others meanwhile.
#[derive(Debug)]
pub(crate) struct Asking(Arc<Seat>);

impl Asking {
    pub(crate) fn at(seat: &Arc<Seat>) -> Self {
        seat.requests.fetch_add(1, Ordering::AcqRel);
        seat.was_used.store(true, Ordering::Release);
        Self(Arc::clone(seat))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.now(), Ordering::Release);
        self.0.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A seat that is taken, until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    room: Arc<Room>,
    peer: IpAddr,
    pub(crate) seat: Arc<Seat>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.seats().remove(self.peer, &self.seat);
    }
}

/// What a new connection came to.
#[derive(Debug)]
pub(crate) enum Entry {
    /// There was room.
    Free(Place),
    /// There is room because an idle connection makes way.
    MadeWay(Place),
    /// There is no room, and everybody there is busy.
    Full,
}

impl Room {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            opened: Instant::now(),
            seats: Mutex::default(),
        })
    }

    /// Takes a seat for a new connection. `leave` is cancelled when it is to make way.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr, leave: CancellationToken) -> Entry {
        let peer = peer::of(address);
        let mut seats = self.seats();
        let is_over_share = seats.of.get(&peer).map_or(0, Vec::len) >= self.limits.of_peer;
        let is_full = seats.count >= self.limits.all;
        let makes_way = match (is_over_share, is_full) {
            (true, _) => seats.make_way_of(peer),
            (false, true) => seats.make_way(),
            (false, false) => false,
        };
        if (is_over_share || is_full) && !makes_way {
            return Entry::Full;
        }
        let seat = Arc::new(Seat {
            opened: self.opened,
            requests: AtomicUsize::new(0),
            was_used: AtomicBool::new(false),
            idle_since: AtomicU64::new(0),
            leave,
        });
        seat.idle_since.store(seat.now(), Ordering::Release);
        seats.count += 1;
        seats.of.entry(peer).or_default().push(Arc::clone(&seat));
        drop(seats);
        let place = Place {
            room: Arc::clone(self),
            peer,
            seat,
        };
        match makes_way {
            true => Entry::MadeWay(place),
            false => Entry::Free(place),
        }
    }

    /// Has so many idle connections make way, though there is room for more: the machine has none. Returns how many do.
    pub(crate) fn clear(&self, count: usize) -> usize {
        let mut seats = self.seats();
        (0..count).take_while(|_| seats.make_way()).count()
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seats {
    fn remove(&mut self, peer: IpAddr, seat: &Arc<Seat>) {
        let Some(those) = self.of.get_mut(&peer) else {
            return;
        };
        let Some(at) = those.iter().position(|one| Arc::ptr_eq(one, seat)) else {
            return;
        };
        those.swap_remove(at);
        self.count -= 1;
        if those.is_empty() {
            self.of.remove(&peer);
        }
    }

    /// The connection of whoever has the most that was idle for the longest makes way.
    fn make_way(&mut self) -> bool {
        let idle = self.of.iter().filter_map(|(peer, those)| {
            let longest = those.iter().filter_map(|seat| seat.idle_since()).min()?;
            Some((those.len(), std::cmp::Reverse(longest), *peer))
        });
        match idle.max() {
            Some((.., peer)) => self.make_way_of(peer),
            None => false,
        }
    }

    /// The connection of this peer that was idle for the longest makes way.
    fn make_way_of(&mut self, peer: IpAddr) -> bool {
        let those = self.of.get(&peer).into_iter().flatten();
        let idle = those.filter_map(|seat| Some((seat.idle_since()?, seat)));
        let Some((_, seat)) = idle.min_by_key(|(since, _)| *since) else {
            return false;
        };
        let seat = Arc::clone(seat);
        self.remove(peer, &seat);
        seat.leave.cancel();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(all: usize, of_peer: usize) -> Arc<Room> {
        Room::new(Limits { all, of_peer })
    }

    fn enter(room: &Arc<Room>, address: &str) -> Entry {
        room.enter(address.parse().unwrap(), CancellationToken::new())
    }

    fn place(entry: Entry) -> Place {
        match entry {
            Entry::Free(place) | Entry::MadeWay(place) => place,
            Entry::Full => panic!("there is no room"),
        }
    }

    fn makes_way(place: &Place) -> bool {
        place.seat.leave.is_cancelled()
    }

    #[test]
    fn one_peer_fills_its_share_and_no_more() {
        let room = room(10, 3);
        let first = place(enter(&room, "192.0.2.1"));
        let busy: Vec<Place> = (0..2).map(|_| place(enter(&room, "192.0.2.1"))).collect();
        let asking: Vec<Asking> = busy.iter().map(|place| Asking::at(&place.seat)).collect();
        // Its own idle connection makes way, never one in use.
        let other = place(enter(&room, "192.0.2.2"));
        assert!(matches!(enter(&room, "192.0.2.1"), Entry::MadeWay(_)));
        assert!(makes_way(&first) && !busy.iter().any(makes_way) && !makes_way(&other));
        // That one left at once, so there is room again; then everybody is busy.
        let third = place(enter(&room, "192.0.2.1"));
        let last = Asking::at(&third.seat);
        assert!(matches!(enter(&room, "192.0.2.1"), Entry::Full));
        assert!(matches!(enter(&room, "192.0.2.2"), Entry::Free(_)));
        drop((last, asking));
        assert!(matches!(enter(&room, "192.0.2.1"), Entry::MadeWay(_)));
    }

    #[test]
    fn whoever_has_the_most_makes_way() {
        let room = room(4, 3);
        let light = place(enter(&room, "192.0.2.2"));
        let heavy: Vec<Place> = (0..3).map(|_| place(enter(&room, "192.0.2.1"))).collect();
        // The light one was idle for longer.
        heavy[0].seat.idle_since.store(30, Ordering::Release);
        heavy[1].seat.idle_since.store(20, Ordering::Release);
        heavy[2].seat.idle_since.store(25, Ordering::Release);
        light.seat.idle_since.store(0, Ordering::Release);
        let new = place(enter(&room, "192.0.2.3"));
        let making_way: Vec<bool> = heavy.iter().map(makes_way).collect();
        assert_eq!(making_way, [false, true, false]);
        assert!(!makes_way(&light) && !makes_way(&new));
        assert_eq!(room.clear(10), 4);
        assert_eq!(room.seats().count, 0);
    }

    #[test]
    fn seats_are_given_back() {
        let room = room(2, 2);
        for _ in 0..10 {
            let one = place(enter(&room, "192.0.2.1"));
            let other = place(enter(&room, "192.0.2.1"));
            drop((one, other));
        }
        // One that made way and then ends is not counted twice.
        let evicted = place(enter(&room, "192.0.2.1"));
        let kept = place(enter(&room, "192.0.2.1"));
        kept.seat.idle_since.store(u64::MAX, Ordering::Release);
        let new = place(enter(&room, "192.0.2.1"));
        drop(evicted);
        assert_eq!(room.seats().count, 2);
        drop((kept, new));
        assert_eq!(room.seats().count, 0);
        assert!(room.seats().of.is_empty());
    }
}
