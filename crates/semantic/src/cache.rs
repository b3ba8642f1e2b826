//! Answers that are remembered: bounded, the least recently used forgotten first, nothing asked twice at once.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use proofhouse_wire::sync::lock;

/// What stands for a key: 128 bits under a secret of this cache, so that no text can be made to
/// pass for another, and large texts are not kept.
type Fingerprint = (u64, u64);

/// Values by the fingerprint of what they were asked with.
#[derive(Debug)]
pub(crate) struct ScoreCache<V> {
    capacity: usize,
    hashers: (RandomState, RandomState),
    state: Mutex<CachedScores<V>>,
    answered: Condvar,
}

#[derive(Debug)]
struct CachedScores<V> {
    entries: HashMap<Fingerprint, CachedScore<V>>,
    /// Those with an answer, by when they were last used.
    by_use: BTreeMap<u64, Fingerprint>,
    clock: u64,
    hits: u64,
}

#[derive(Debug)]
enum CachedScore<V> {
    /// Some thread is asking.
    Asked,
    Answered {
        value: V,
        used: u64,
    },
}

impl<V: Clone> ScoreCache<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            hashers: (RandomState::new(), RandomState::new()),
            state: Mutex::new(CachedScores {
                entries: HashMap::new(),
                by_use: BTreeMap::new(),
                clock: 0,
                hits: 0,
            }),
            answered: Condvar::new(),
        }
    }

    /// The remembered value, or that of `ask`. While one thread asks, others with the same key wait
    /// for its answer. An error is not remembered: who waited then asks in turn.
    pub(crate) fn get_or_ask<E>(
        &self,
        key: &impl Hash,
        ask: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, E> {
        let print = (self.hashers.0.hash_one(key), self.hashers.1.hash_one(key));
        let mut state = self.lock();
        loop {
            match state.entries.get(&print) {
                Some(CachedScore::Answered { .. }) => {
                    if let Some(value) = state.touch(print) {
                        return Ok(value);
                    }
                }
                Some(CachedScore::Asked) => {
                    state = self
                        .answered
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                None => break,
            }
        }
        state.entries.insert(print, CachedScore::Asked);
        drop(state);
        let asking = Asking { cache: self, print };
        let value = ask()?;
        self.lock().answer(print, value.clone(), self.capacity);
        drop(asking);
        Ok(value)
    }

    /// How often an answer was already there.
    pub(crate) fn hits(&self) -> u64 {
        self.lock().hits
    }
}

impl<V> ScoreCache<V> {
    /// A panic elsewhere leaves the state whole: it is only changed by a few lines that do not panic.
    fn lock(&self) -> MutexGuard<'_, CachedScores<V>> {
        lock(&self.state)
    }
}

impl<V: Clone> CachedScores<V> {
    fn touch(&mut self, print: Fingerprint) -> Option<V> {
        self.clock += 1;
        let Some(CachedScore::Answered { value, used }) = self.entries.get_mut(&print) else {
            return None;
        };
        self.by_use.remove(used);
        *used = self.clock;
        self.by_use.insert(self.clock, print);
        self.hits += 1;
        Some(value.clone())
    }

    fn answer(&mut self, print: Fingerprint, value: V, capacity: usize) {
        self.clock += 1;
        let used = self.clock;
        self.entries
            .insert(print, CachedScore::Answered { value, used });
        self.by_use.insert(used, print);
        while self.by_use.len() > capacity {
            if let Some((_, oldest)) = self.by_use.pop_first() {
                self.entries.remove(&oldest);
            }
        }
    }
}

/// Wakes those who wait, however the asking ends.
struct Asking<'c, V> {
    cache: &'c ScoreCache<V>,
    print: Fingerprint,
}

impl<V> Drop for Asking<'_, V> {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        if matches!(state.entries.get(&self.print), Some(CachedScore::Asked)) {
            state.entries.remove(&self.print);
        }
        drop(state);
        self.cache.answered.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = ScoreCache::new(2);
        let asked = AtomicU32::new(0);
        let ask = |key: &str| {
            cache.get_or_ask(&key, || Ok::<_, ()>(asked.fetch_add(1, Ordering::Relaxed)))
        };
        assert_eq!([ask("a"), ask("b"), ask("a")], [Ok(0), Ok(1), Ok(0)]);
        // `b` was used longest ago and makes room for `c`.
        assert_eq!([ask("c"), ask("a"), ask("b")], [Ok(2), Ok(0), Ok(3)]);
        assert_eq!(cache.hits(), 2);
    }

    #[test]
    fn errors_and_panics_are_not_remembered() {
        let cache = ScoreCache::new(2);
        assert_eq!(cache.get_or_ask(&"a", || Err("down")), Err("down"));
        let panicked = thread::scope(|scope| {
            scope
                .spawn(|| cache.get_or_ask(&"a", || -> Result<i32, &str> { panic!("on purpose") }))
                .join()
        });
        assert!(panicked.is_err());
        assert_eq!(cache.get_or_ask(&"a", || Ok::<_, &str>(1)), Ok(1));
    }

    #[test]
    fn without_room_everything_is_asked() {
        let cache = ScoreCache::new(0);
        assert_eq!(cache.get_or_ask(&1, || Ok::<_, ()>(1)), Ok(1));
        assert_eq!(cache.get_or_ask(&1, || Ok::<_, ()>(2)), Ok(2));
    }

    #[test]
    fn threads_share_one_answer() {
        let cache = ScoreCache::new(4);
        let asked = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    cache.get_or_ask(&"a", || {
                        thread::sleep(Duration::from_millis(50));
                        Ok::<_, ()>(asked.fetch_add(1, Ordering::Relaxed))
                    })
                });
            }
        });
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}
