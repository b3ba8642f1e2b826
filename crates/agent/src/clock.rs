//! A clock that does not tell the time of the day: it makes recorded tasks tell the same times again.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// Starts at a time and goes on by a millisecond each time it is read.
///
/// ```
/// use proofhouse_agent::SteppedClock;
///
/// let clock = SteppedClock::new("2026-01-02T03:04:05.678Z").unwrap();
/// assert_eq!(clock.now(), "2026-01-02T03:04:05.678Z");
/// assert_eq!(clock.now(), "2026-01-02T03:04:05.679Z");
/// assert!(SteppedClock::new("yesterday").is_none());
/// ```
#[derive(Debug)]
pub struct SteppedClock {
    next: AtomicI64,
}

impl SteppedClock {
    /// A clock that starts at a time in RFC 3339; `None` if it is not one.
    #[must_use]
    pub fn new(start: &str) -> Option<Self> {
        let start: Timestamp = start.parse().ok()?;
        Some(Self {
            next: AtomicI64::new(start.as_millisecond()),
        })
    }

    /// The time as RFC 3339 in UTC, always of the same width.
    #[must_use]
    pub fn now(&self) -> String {
        let now = self.next.fetch_add(1, Ordering::SeqCst);
        // A start at the very end of the calendar stays there.
        let now = Timestamp::from_millisecond(now).unwrap_or(Timestamp::MAX);
        format!("{now:.3}")
    }
}
