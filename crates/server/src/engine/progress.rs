//! Whether acknowledged work goes on: what has waited for the longest, and what this process holds without working on it.

use std::sync::Mutex;
use std::time::Duration;

use proofhouse_store::StoreError;
use proofhouse_wire::sync::lock;
use tokio::time::Instant;

use super::{Engine, EngineError};

/// How work goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineProgress {
    /// How long the oldest event or input waits that was acknowledged and that no task has got, though one could have.
    pub oldest_event: Option<Duration>,
    /// How long the oldest command waits that nobody has obeyed.
    pub oldest_command: Option<Duration>,
    /// Leases that this process holds though nobody works under them.
    pub idle_leases: u64,
    /// How long there have been such leases.
    pub idle_leases_for: Option<Duration>,
}

impl EngineProgress {
    /// What has waited for longer than this, in words.
    #[must_use]
    pub fn stalled(&self, limit: Duration) -> Option<String> {
        let waits = [
            ("an acknowledged event", self.oldest_event),
            ("a command to a task", self.oldest_command),
            ("a lease that nobody works under", self.idle_leases_for),
        ];
        let stalled = waits.into_iter().find_map(|(what, time)| {
            let time = time.filter(|time| *time > limit)?;
            Some((what, time.as_secs()))
        });
        stalled.map(|(what, seconds)| format!("{what} has waited for {seconds} s"))
    }
}

/// Since when there have been leases without a worker.
#[derive(Debug, Default)]
pub(super) struct IdleLeases(Mutex<Option<Instant>>);

impl IdleLeases {
    /// Notes how many there are, and returns how long there have been some.
    fn note(&self, count: u64) -> Option<Duration> {
        let mut since = lock(&self.0);
        if count == 0 {
            *since = None;
            return None;
        }
        Some(since.get_or_insert_with(Instant::now).elapsed())
    }
}

impl Engine {
    /// How many tasks have something to do and no agent that can do it: in no manifest any more, or missing something it names.
    pub(crate) async fn tasks_without_agent(&self) -> Result<i64, StoreError> {
        let able = self.inner.manifests.current().able();
        self.inner.store.tasks_without_agent(able).await
    }

    /// How work goes on, in all processes together and in this one, for tasks whose agent can work. It is told to the metrics as
    /// well.
    ///
    /// # Errors
    ///
    /// Returns an error when the store does not answer.
    pub async fn progress(&self) -> Result<EngineProgress, EngineError> {
        let inner = &self.inner;
        let able = inner.manifests.current().able();
        let seen = inner.store.progress(&inner.owner, Some(able)).await?;
        let age = |ms: Option<i64>| ms.map(|ms| Duration::from_millis(ms.unsigned_abs()));
        let workers = u64::try_from(inner.leases.worker_count()).unwrap_or(u64::MAX);
        let idle_leases = seen.leases.saturating_sub(workers);
        let for_now = inner.idle_leases.note(idle_leases);
        let progress = EngineProgress {
            oldest_event: age(seen.oldest_event_ms),
            oldest_command: age(seen.oldest_command_ms),
            idle_leases,
            idle_leases_for: for_now.max(inner.leases.oldest_release()),
        };
        inner.counts().progress(&progress);
        Ok(progress)
    }

    /// Whether this process should get no more requests because it is about to stop.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.inner.draining.is_cancelled() || self.is_stopping()
    }

    /// Why this process should get no more requests though it is not about to stop: acknowledged work does not go on.
    ///
    /// # Errors
    ///
    /// Returns an error when the store does not answer.
    pub async fn not_ready(&self) -> Result<Option<String>, EngineError> {
        let progress = self.progress().await?;
        Ok(progress.stalled(self.inner.options.max_lag))
    }

    /// How long acknowledged work may wait before something is wrong.
    #[must_use]
    pub fn max_lag(&self) -> Duration {
        self.inner.options.max_lag
    }

    /// Says that this process is not ready any more, while it still does everything: those who send requests go elsewhere
    /// before it stops.
    pub fn drain(&self) {
        self.inner.draining.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_waits_for_too_long_is_named() {
        let limit = Duration::from_secs(60);
        let (short, long) = (Duration::from_secs(60), Duration::from_secs(61));
        let well = EngineProgress {
            oldest_event: Some(short),
            oldest_command: Some(short),
            idle_leases: 1,
            idle_leases_for: Some(short),
        };
        assert_eq!(well.stalled(limit), None);
        let cases = [
            (
                "event",
                EngineProgress {
                    oldest_event: Some(long),
                    ..well
                },
            ),
            (
                "command",
                EngineProgress {
                    oldest_command: Some(long),
                    ..well
                },
            ),
            (
                "lease",
                EngineProgress {
                    idle_leases_for: Some(long),
                    ..well
                },
            ),
        ];
        for (word, progress) in cases {
            let told = progress.stalled(limit);
            assert!(told.is_some_and(|told| told.contains(word) && told.contains("61 s")));
        }
    }
}
