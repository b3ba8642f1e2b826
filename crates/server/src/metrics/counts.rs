//! Counters with one label, whose values are known beforehand: counting is one atomic addition.

use std::marker::PhantomData;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// One of a few things that are counted apart.
pub(crate) trait CounterLabel: Copy {
    /// The words for all of them.
    const WORDS: &'static [&'static str];

    /// The place of its word.
    fn place(self) -> usize;
}

/// Declares what is counted apart, with the words that the label has.
macro_rules! kinds {
    ($($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),+ }

        impl $crate::metrics::counts::CounterLabel for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn place(self) -> usize {
                self as usize
            }
        }
    )+};
}
pub(super) use kinds;

/// The counters of one name.
#[derive(Debug)]
pub(crate) struct LabelledCounters<K> {
    counters: Vec<Counter>,
    kinds: PhantomData<K>,
}

impl<K: CounterLabel> LabelledCounters<K> {
    /// All of them are there from the beginning, so that a rate is right from the first time on.
    pub(super) fn register(
        registry: &mut Registry,
        name: &str,
        help: &str,
        label: &'static str,
    ) -> Self {
        let family = Family::<[(&'static str, &'static str); 1], Counter>::default();
        let words = K::WORDS.iter();
        let counters = words.map(|word| family.get_or_create_owned(&[(label, *word)]));
        let counters = counters.collect();
        registry.register(name, help, family);
        Self {
            counters,
            kinds: PhantomData,
        }
    }

    /// Counts one.
    pub(crate) fn one(&self, kind: K) {
        self.add(kind, 1);
    }

    /// Counts some.
    pub(crate) fn add(&self, kind: K, count: u64) {
        if let Some(counter) = self.counters.get(kind.place()) {
            counter.inc_by(count);
        }
    }
}
