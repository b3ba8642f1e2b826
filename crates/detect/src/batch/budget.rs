//! How much may be under way at once: the reader waits here when the workers fall behind.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that were read and are not yet put together. One piece is always let through, so that a
/// line larger than the whole budget is judged too, by itself.
pub(super) struct ByteBudget {
    limit: usize,
    state: Mutex<BytesInFlight>,
    changed: Condvar,
}

#[derive(Default)]
struct BytesInFlight {
    used: usize,
    closed: bool,
}

impl ByteBudget {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Waits until there is room, and takes it; `false` when nobody wants more.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let mut state = self.lock();
        while !state.closed && state.used > 0 && state.used + bytes > self.limit {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.used += bytes;
        !state.closed
    }

    pub(super) fn give_back(&self, bytes: usize) {
        let mut state = self.lock();
        state.used = state.used.saturating_sub(bytes);
        self.changed.notify_all();
    }

    /// Nothing more is wanted.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, BytesInFlight> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_always_let_through_and_others_wait_for_room() {
        let budget = ByteBudget::new(10);
        assert!(budget.take(99), "alone, whatever its size");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.take(5));
            budget.give_back(99);
            assert!(waiting.join().unwrap());
            assert!(budget.take(5));
            let refused = scope.spawn(|| budget.take(1));
            budget.close();
            assert!(!refused.join().unwrap());
        });
    }
}
