//! How long transactions take, and how many fail: counted for whoever asks, with a few atomic additions each.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Result, StoreError};
use crate::sql::transaction::TransactionMode;

/// Upper bounds of the times that are told apart, in seconds. What takes longer than the last is counted too.
pub const BOUNDS: [f64; 11] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 15.0,
];

/// What was counted since the store was opened.
#[derive(Debug, Default)]
pub struct Timings {
    /// Transactions that only read.
    pub reads: Timing,
    /// Transactions that write.
    pub writes: Timing,
}

impl Timings {
    pub(crate) async fn measured<T>(
        &self,
        mode: TransactionMode,
        transaction: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let began = Instant::now();
        let outcome = transaction.await;
        let timing = match mode {
            TransactionMode::Read | TransactionMode::SingleRead => &self.reads,
            TransactionMode::Write | TransactionMode::Single => &self.writes,
        };
        timing.note(began.elapsed());
        // What a caller is refused for is no failure of the store.
        if let Err(
            StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::NewerSchema { .. },
        ) = &outcome
        {
            timing.failures.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }
}

/// One kind of transactions.
#[derive(Debug, Default)]
pub struct Timing {
    /// As many as took no longer than the bound of the same place, and longer than the one before; the last has no bound.
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
    failures: AtomicU64,
}

impl Timing {
    fn note(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let place = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// How many took no longer than each bound and longer than the one before, and at last those beyond all bounds.
    #[must_use]
    pub fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        self.counts
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// What all of them took together.
    #[must_use]
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }

    /// How many failed because the database could not be used.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_sorted_by_their_bounds() {
        let timing = Timing::default();
        for millis in [0, 1, 2, 2, 100, 60_000] {
            timing.note(Duration::from_millis(millis));
        }
        assert_eq!(timing.counts(), [1, 1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(timing.total(), Duration::from_millis(60_105));
    }

    #[tokio::test]
    async fn only_what_the_database_cannot_do_is_a_failure() {
        let timings = Timings::default();
        for error in [
            StoreError::Unavailable("full".to_owned()),
            StoreError::Conflict("taken".to_owned()),
            StoreError::Fenced("t1".to_owned()),
        ] {
            let failing = async { Err::<(), _>(error) };
            assert!(
                timings
                    .measured(TransactionMode::Write, failing)
                    .await
                    .is_err()
            );
        }
        assert_eq!(timings.writes.failures(), 1);
        assert_eq!(timings.writes.counts().iter().sum::<u64>(), 3);
        assert_eq!(timings.reads.counts().iter().sum::<u64>(), 0);
    }
}
