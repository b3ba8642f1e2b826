//! A gate with room for so much at a time. Whoever asked for little is let in before those who asked for much.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use crate::sync::lock;

/// Lanes that are remembered; more than this, and those that owe nothing are forgotten.
const MAX_LANES: usize = 1_024;

/// Whose requests wait in one line: each lane gets its share, however many requests it has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestLane(String);

impl RequestLane {
    /// The lane of those who are called this: an address, a session.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

/// Lets in as much as there is room for, fairly.
///
/// Every lane has a clock that moves on with what the lane asked for. The turn of a request is when its lane's clock
/// stands after it, and the earliest turn is next. A lane that comes anew starts at the present, so nobody saves up turns.
#[derive(Debug)]
pub(super) struct FairGate {
    room: usize,
    state: Mutex<GateState>,
}

#[derive(Debug, Default)]
struct GateState {
    used: usize,
    peak: usize,
    /// By turn, and by order of arrival where the turn is the same.
    waiting: BTreeMap<(u64, u64), GateWaiter>,
    arrivals: u64,
    /// The start of the turn that was let in last.
    present: u64,
    clocks: HashMap<RequestLane, u64>,
}

#[derive(Debug)]
struct GateWaiter {
    room: usize,
    enter: oneshot::Sender<GatePermit>,
    work: u64,
}

/// Room that is taken, until this is dropped.
#[derive(Debug)]
pub(super) struct GatePermit {
    gate: Arc<FairGate>,
    room: usize,
}

/// A place in the line, given up when this is dropped.
struct GateTicket<'g> {
    gate: &'g FairGate,
    lane: &'g RequestLane,
    turn: (u64, u64),
}

impl FairGate {
    pub(super) fn new(room: usize) -> Arc<Self> {
        Arc::new(Self {
            room: room.max(1),
            state: Mutex::default(),
        })
    }

    /// Waits for so much room. `work` is what the turn costs the lane. Who wants more room than there is gets all of it.
    pub(super) async fn enter(
        self: &Arc<Self>,
        lane: &RequestLane,
        room: usize,
        work: u64,
    ) -> GatePermit {
        let (enter, entered) = oneshot::channel();
        let ticket = {
            let mut state = lock(&self.state);
            let clock = state.clocks.get(lane).copied().unwrap_or_default();
            state.arrivals += 1;
            let turn = clock.max(state.present).saturating_add(work);
            let turn = (turn, state.arrivals);
            state.clocks.insert(lane.clone(), turn.0);
            let waiter = GateWaiter {
                room: room.min(self.room),
                enter,
                work,
            };
            state.waiting.insert(turn, waiter);
            GateTicket {
                gate: self,
                lane,
                turn,
            }
        };
        self.admit();
        let permit = entered.await;
        drop(ticket);
        // The gate keeps the sender until it lets somebody in.
        permit.unwrap_or_else(|_| GatePermit {
            gate: Arc::clone(self),
            room: 0,
        })
    }

    /// Whether somebody waits.
    pub(super) fn is_contended(&self) -> bool {
        !lock(&self.state).waiting.is_empty()
    }

    /// How much is taken, and the most that ever was.
    pub(super) fn used(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.used, state.peak)
    }

    /// Lets in whoever is next, for as long as there is room.
    fn admit(self: &Arc<Self>) {
        loop {
            let (enter, permit) = {
                let mut state = lock(&self.state);
                let Some(next) = state.waiting.first_entry() else {
                    return;
                };
                let (turn, room) = (next.key().0, next.get().room);
                if state.used + room > self.room {
                    return;
                }
                let Some((_, waiter)) = state.waiting.pop_first() else {
                    return;
                };
                state.used += room;
                state.peak = state.peak.max(state.used);
                state.present = state.present.max(turn.saturating_sub(waiter.work));
                let present = state.present;
                if state.clocks.len() > MAX_LANES {
                    state.clocks.retain(|_, clock| *clock > present);
                }
                let permit = GatePermit {
                    gate: Arc::clone(self),
                    room,
                };
                (waiter.enter, permit)
            };
            // Who is gone by now gives the room back at once.
            let _ = enter.send(permit);
        }
    }
}

impl GatePermit {
    /// Gives back what is not needed after all.
    pub(super) fn shrink_to(&mut self, room: usize) {
        let excess = self.room.saturating_sub(room);
        self.room -= excess;
        self.gate.give_back(excess);
    }
}

impl FairGate {
    fn give_back(self: &Arc<Self>, room: usize) {
        lock(&self.state).used -= room;
        self.admit();
    }
}

impl Drop for GatePermit {
    fn drop(&mut self) {
        let gate = Arc::clone(&self.gate);
        gate.give_back(self.room);
    }
}

impl Drop for GateTicket<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.gate.state);
        let Some(waiter) = state.waiting.remove(&self.turn) else {
            return;
        };
        // It was never let in, so its lane owes nothing for it.
        if let Some(clock) = state.clocks.get_mut(self.lane) {
            *clock = clock.saturating_sub(waiter.work);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(name: &str) -> RequestLane {
        RequestLane::new(name)
    }

    /// Has them wait in this order, and tells in which order they are let in.
    async fn order(asked: &[(&str, usize)]) -> Vec<usize> {
        let gate = FairGate::new(1);
        let first = gate.enter(&lane("first"), 1, 0).await;
        let entered = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for (number, (name, work)) in asked.iter().enumerate() {
            let (line, entered) = (Arc::clone(&gate), Arc::clone(&entered));
            let (lane, work) = (lane(name), *work as u64);
            tasks.spawn(async move {
                let _permit = line.enter(&lane, 1, work).await;
                entered.lock().unwrap().push(number);
            });
            while lock(&gate.state).waiting.len() <= number {
                tokio::task::yield_now().await;
            }
        }
        drop(first);
        tasks.join_all().await;
        assert_eq!(gate.used().0, 0);
        Arc::into_inner(entered).unwrap().into_inner().unwrap()
    }

    #[tokio::test]
    async fn who_asks_for_little_does_not_wait_for_those_who_ask_for_much() {
        let asked = [
            ("bad", 8_000),
            ("bad", 8_000),
            ("worse", 8_000),
            ("good", 10),
            ("good", 10),
        ];
        assert_eq!(order(&asked).await, [3, 4, 0, 2, 1]);
    }

    #[tokio::test]
    async fn there_is_never_more_inside_than_there_is_room_for() {
        let gate = FairGate::new(10);
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..50_usize {
            let gate = Arc::clone(&gate);
            tasks.spawn(async move {
                let (room, lane) = (number % 13, lane("a"));
                let entering = gate.enter(&lane, room, room as u64);
                if number % 5 == 0 {
                    // Gives up at once, if it has to wait.
                    let _ = tokio::time::timeout(std::time::Duration::ZERO, entering).await;
                    return;
                }
                let mut permit = entering.await;
                tokio::task::yield_now().await;
                permit.shrink_to(1);
                tokio::task::yield_now().await;
            });
        }
        tasks.join_all().await;
        let (used, peak) = gate.used();
        assert!(used == 0 && peak <= 10 && peak > 0, "{used} {peak}");
        assert!(!gate.is_contended());
    }
}
