//! Requests that count together with those of others: whoever sends one asks before, and tells of the pauses that the other side
//! asks for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use tokio::time::Instant;

use crate::sync::{lock, read, write};

/// What a gate does, which takes time.
pub type GateFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Stands before the requests to one provider, for all who send some.
pub trait RequestGate: fmt::Debug + Send + Sync {
    /// Waits until a request may be sent, and counts it.
    fn enter(&self) -> GateFuture<'_>;

    /// The other side asks for a pause: everybody waits from now on for this long.
    fn pause(&self, wait: Duration) -> GateFuture<'_>;

    /// A reply came, with so many tokens of the question and of the reply.
    fn used(&self, input: u64, output: u64) -> GateFuture<'_>;
}

/// A gate that is put in place after those who go through it were made. Until then, everybody passes.
#[derive(Debug, Clone, Default)]
pub struct LateGate(Arc<RwLock<Option<Arc<dyn RequestGate>>>>);

impl LateGate {
    /// Puts the gate in place.
    pub fn set(&self, gate: Arc<dyn RequestGate>) {
        *write(&self.0) = Some(gate);
    }

    fn gate(&self) -> Option<Arc<dyn RequestGate>> {
        read(&self.0).clone()
    }
}

impl RequestGate for LateGate {
    fn enter(&self) -> GateFuture<'_> {
        Box::pin(async {
            if let Some(gate) = self.gate() {
                gate.enter().await;
            }
        })
    }

    fn pause(&self, wait: Duration) -> GateFuture<'_> {
        Box::pin(async move {
            if let Some(gate) = self.gate() {
                gate.pause(wait).await;
            }
        })
    }

    fn used(&self, input: u64, output: u64) -> GateFuture<'_> {
        Box::pin(async move {
            if let Some(gate) = self.gate() {
                gate.used(input, output).await;
            }
        })
    }
}

tokio::task_local! {
    /// The clock of the run that this task sends requests for.
    static OF_THIS_RUN: Arc<GateClock>;
}

/// How long the requests of one run waited at gates. What limits the time of the run does not count that time: others decide how long
/// it is.
#[derive(Debug, Default)]
pub struct GateClock(Mutex<GateTime>);

#[derive(Debug, Default)]
struct GateTime {
    /// What was waited until `since`.
    waited: Duration,
    /// How many requests wait.
    waiting: usize,
    /// Since when at least one does.
    since: Option<Instant>,
}

/// A request that waits at a gate, until this is dropped.
struct WaitingRequest(Arc<GateClock>);

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        let mut time = lock(&self.0.0);
        time.waiting = time.waiting.saturating_sub(1);
        if time.waiting == 0
            && let Some(since) = time.since.take()
        {
            time.waited += since.elapsed();
        }
    }
}

impl GateClock {
    /// A time limit is looked at no more often than this while a request waits.
    const STEP: Duration = Duration::from_millis(50);

    /// Does something in the name of the run: requests of it that wait at a gate stop this clock.
    pub async fn measure<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> T {
        OF_THIS_RUN.scope(Arc::clone(self), work).await
    }

    fn begin(self: &Arc<Self>) -> WaitingRequest {
        let mut time = lock(&self.0);
        time.waiting += 1;
        time.since.get_or_insert_with(Instant::now);
        WaitingRequest(Arc::clone(self))
    }

    /// How long at least one request waited until now.
    #[must_use]
    pub fn waited(&self) -> Duration {
        let time = lock(&self.0);
        time.waited + time.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Sleeps for so long, and for as long as requests wait meanwhile.
    pub async fn sleep(&self, limit: Duration) {
        let (begun, before) = (Instant::now(), self.waited());
        loop {
            let waited = self.waited().saturating_sub(before);
            let rest = limit.saturating_sub(begun.elapsed().saturating_sub(waited));
            if rest.is_zero() {
                return;
            }
            let is_waiting = lock(&self.0).waiting > 0;
            let rest = if is_waiting {
                rest.max(Self::STEP)
            } else {
                rest
            };
            tokio::time::sleep(rest).await;
        }
    }

    /// What the work comes to, or nothing if it takes longer than this, beside what requests wait.
    pub async fn timeout<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.sleep(limit) => None,
        }
    }
}

/// Waits until a request may be sent. The clock of the run that it belongs to stands still meanwhile.
pub async fn enter(gate: &dyn RequestGate) {
    let _waiting = OF_THIS_RUN.try_with(GateClock::begin).ok();
    gate.enter().await;
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    /// A gate that somebody opens.
    #[derive(Debug)]
    struct HeldGate(Semaphore);

    impl RequestGate for HeldGate {
        fn enter(&self) -> GateFuture<'_> {
            Box::pin(async {
                let _ = self.0.acquire().await;
            })
        }

        fn pause(&self, _: Duration) -> GateFuture<'_> {
            Box::pin(async {})
        }

        fn used(&self, _: u64, _: u64) -> GateFuture<'_> {
            Box::pin(async {})
        }
    }

    /// Time is simulated here: it passes at once when everybody waits.
    #[tokio::test(start_paused = true)]
    async fn a_time_limit_stands_still_while_a_request_waits_at_its_gate() {
        const LIMIT: Duration = Duration::from_secs(10);
        let clock = Arc::new(GateClock::default());
        let gate = HeldGate(Semaphore::new(0));
        let begun = Instant::now();
        let work = clock.measure(async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            enter(&gate).await;
            tokio::time::sleep(Duration::from_secs(4)).await;
        });
        let opens = async {
            tokio::time::sleep(Duration::from_secs(64)).await;
            gate.0.add_permits(1);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            done = clock.timeout(LIMIT, work) => assert!(done.is_some(), "it took 8 s of its own"),
            () = opens => {}
        }
        assert_eq!(clock.waited(), Duration::from_secs(60));
        assert_eq!(begun.elapsed(), Duration::from_secs(68));
        // What takes too long by itself ends in time, and who waits without a clock changes none.
        let slow = clock.measure(tokio::time::sleep(Duration::from_secs(11)));
        assert!(clock.timeout(LIMIT, slow).await.is_none());
        assert_eq!(begun.elapsed(), Duration::from_secs(78));
        gate.0.add_permits(1);
        enter(&gate).await;
        assert_eq!(clock.waited(), Duration::from_secs(60));
    }
}
