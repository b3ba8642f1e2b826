//! Numbers that look random and are the same for the same seed.

use std::sync::Mutex;

/// A generator that everything in a simulation draws from, in the order it happens.
#[derive(Debug)]
pub(super) struct SimDice(Mutex<u64>);

impl SimDice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed ^ 0x5DEE_CE66_D1CE_4E5B))
    }

    /// SplitMix64.
    pub(super) fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this.
    pub(super) fn below(&self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A number from this on, up to and without that.
    pub(super) fn between(&self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from))
    }

    /// Whether something happens that does so many times in a thousand.
    pub(super) fn per_mille(&self, times: u64) -> bool {
        self.below(1_000) < times
    }

    pub(super) fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(items.len()).ok()?;
        items.get(usize::try_from(self.below(count)).ok()?)
    }
}
