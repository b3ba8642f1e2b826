//! Rate limits: so many requests in a burst, so many a second after that, for each who asks.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::Duration;

use governor::Quota;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use proofhouse_wire::sync::lock;

/// Callers that are remembered. Beyond that, those who may ask for a whole burst are forgotten: they lose nothing.
const MAX_CALLERS: usize = 10_000;
/// How long a caller waits who is one too many to be remembered.
const TOO_MANY_CALLERS: Duration = Duration::from_secs(1);
/// The longest time between two requests that a quota can say.
const MAX_PERIOD: Duration = Duration::from_secs(60);
/// The longest time until a whole burst is allowed again; the library counts in 64 bits of nanoseconds.
const MAX_REFILL: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// How much one caller may ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateQuota {
    /// Requests at once.
    pub burst: u32,
    /// Requests a second, in the long run.
    pub per_second: f64,
}

impl RateQuota {
    /// The time after which another request is allowed.
    fn period(self) -> Duration {
        let period = Duration::try_from_secs_f64(1.0 / self.per_second).unwrap_or(MAX_PERIOD);
        period.clamp(Duration::from_nanos(1), MAX_PERIOD)
    }

    /// Requests at once, as many as the library can count the time of.
    fn burst(self) -> NonZeroU32 {
        let most = MAX_REFILL.as_nanos() / self.period().as_nanos();
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        NonZeroU32::new(self.burst.min(most)).unwrap_or(NonZeroU32::MIN)
    }

    fn quota(self) -> Quota {
        let quota = Quota::with_period(self.period());
        let quota = quota.unwrap_or_else(|| Quota::per_second(self.burst()));
        quota.allow_burst(self.burst())
    }
}

type CallerLimiter<C> =
    governor::RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// Counts what callers ask.
pub struct RateLimiter<C: Clock + Clone = DefaultClock> {
    quota: RateQuota,
    clock: C,
    /// One limiter each, so that the number of callers who are remembered has a bound.
    callers: Mutex<HashMap<String, CallerLimiter<C>>>,
}

impl RateLimiter {
    /// A limit for each caller.
    #[must_use]
    pub fn new(quota: RateQuota) -> Self {
        Self::with_clock(quota, DefaultClock::default())
    }
}

impl<C: Clock + Clone> RateLimiter<C> {
    fn with_clock(quota: RateQuota, clock: C) -> Self {
        Self {
            quota,
            clock,
            callers: Mutex::default(),
        }
    }

    /// Takes one request of a caller.
    ///
    /// # Errors
    ///
    /// Returns how long to wait when there is none left.
    pub fn take(&self, caller: &str) -> Result<(), Duration> {
        let mut callers = lock(&self.callers);
        if callers.len() >= MAX_CALLERS && !callers.contains_key(caller) {
            let burst = self.quota.burst();
            callers.retain(|_, limiter| !matches!(limiter.check_n(burst), Ok(Ok(()))));
            if callers.len() >= MAX_CALLERS {
                return Err(TOO_MANY_CALLERS);
            }
        }
        let limiter = callers.entry(caller.to_owned()).or_insert_with(|| {
            governor::RateLimiter::direct_with_clock(self.quota.quota(), self.clock.clone())
        });
        let taken = limiter.check();
        taken.map_err(|until| until.wait_time_from(self.clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    const QUOTA: RateQuota = RateQuota {
        burst: 3,
        per_second: 2.0,
    };

    #[test]
    fn a_burst_then_so_many_a_second() {
        let clock = FakeRelativeClock::default();
        let limit = RateLimiter::with_clock(QUOTA, clock.clone());
        for _ in 0..3 {
            limit.take("a").unwrap();
        }
        assert_eq!(limit.take("a"), Err(Duration::from_millis(500)));
        limit.take("b").unwrap();
        clock.advance(Duration::from_millis(500));
        limit.take("a").unwrap();
        clock.advance(Duration::from_secs(60));
        for _ in 0..3 {
            limit.take("a").unwrap();
        }
        assert!(limit.take("a").is_err());
    }

    #[test]
    fn a_flood_of_callers_does_not_grow_without_end() {
        let clock = FakeRelativeClock::default();
        let limit = RateLimiter::with_clock(QUOTA, clock.clone());
        for number in 0..MAX_CALLERS {
            limit.take(&number.to_string()).unwrap();
        }
        assert!(limit.take("one more").is_err());
        limit.take("7").unwrap();
        clock.advance(Duration::from_secs(10));
        limit.take("one more").unwrap();
        assert_eq!(lock(&limit.callers).len(), 1);
    }

    #[test]
    fn any_quota_can_be_counted() {
        for (burst, per_second) in [(0, 0.0), (1, f64::NAN), (u32::MAX, 1e12), (u32::MAX, 0.001)] {
            let limit = RateLimiter::new(RateQuota { burst, per_second });
            limit.take("a").unwrap();
        }
    }
}
