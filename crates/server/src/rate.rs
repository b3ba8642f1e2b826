//! Rate limits: so many requests in a burst, so many a second after that, for each who asks.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Callers that are remembered. Beyond that, those with a full bucket are forgotten: they lose nothing.
const MAX_CALLERS: usize = 10_000;

/// How much one caller may ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Requests at once.
    pub burst: u32,
    /// Requests a second, in the long run.
    pub per_second: f64,
}

/// Counts what callers ask.
#[derive(Debug)]
pub struct RateLimit {
    rate: Rate,
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl RateLimit {
    /// A limit for each caller.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            buckets: Mutex::default(),
        }
    }

    /// Takes one request of a caller.
    ///
    /// # Errors
    ///
    /// Returns how long to wait when there is none left.
    pub fn take(&self, caller: &str, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let most = f64::from(self.rate.burst);
        if buckets.len() >= MAX_CALLERS && !buckets.contains_key(caller) {
            let rate = self.rate;
            buckets.retain(|_, bucket| bucket.filled(rate, now) < most);
            if buckets.len() >= MAX_CALLERS {
                return Err(Duration::from_secs(1));
            }
        }
        let full = Bucket {
            left: most,
            at: now,
        };
        let bucket = buckets.entry(caller.to_owned()).or_insert(full);
        bucket.left = bucket.filled(self.rate, now);
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        let missing = (1.0 - bucket.left) / self.rate.per_second;
        Err(Duration::try_from_secs_f64(missing).unwrap_or(Duration::from_secs(60)))
    }
}

impl Bucket {
    fn filled(self, rate: Rate, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + passed * rate.per_second).min(f64::from(rate.burst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        burst: 3,
        per_second: 2.0,
    };

    #[test]
    fn a_burst_then_so_many_a_second() {
        let (limit, start) = (RateLimit::new(RATE), Instant::now());
        for _ in 0..3 {
            limit.take("a", start).unwrap();
        }
        assert_eq!(limit.take("a", start), Err(Duration::from_millis(500)));
        limit.take("b", start).unwrap();
        limit.take("a", start + Duration::from_millis(500)).unwrap();
        let later = start + Duration::from_secs(60);
        for _ in 0..3 {
            limit.take("a", later).unwrap();
        }
        assert!(limit.take("a", later).is_err());
    }

    #[test]
    fn a_flood_of_callers_does_not_grow_without_end() {
        let (limit, start) = (RateLimit::new(RATE), Instant::now());
        for number in 0..MAX_CALLERS {
            limit.take(&number.to_string(), start).unwrap();
        }
        assert!(limit.take("one more", start).is_err());
        let later = start + Duration::from_secs(10);
        limit.take("one more", later).unwrap();
        assert_eq!(limit.buckets.lock().unwrap().len(), 1);
    }
}
