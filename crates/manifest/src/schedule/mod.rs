//! Schedules: when a task starts by the clock, and what becomes of ticks that passed while nobody looked.
//!
//! A tick that was missed is made up for once: the latest one, if it is younger than an hour and than the
//! time to the tick after it. Older ones are skipped, so that a server that was off for a week does not
//! start a week of tasks.

mod cron;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

pub use cron::{Cron, CronError, CronFieldError};

/// A missed tick older than this is skipped, however long its period: a report of the morning is not
/// wanted at night.
pub const MAX_LATENESS: SignedDuration = SignedDuration::from_hours(1);
/// How many missed ticks are counted; what was skipped is told, but counting must end.
const MAX_COUNTED: u32 = 1_000;

/// When a schedule fires: a cron expression in a time zone.
///
/// ```
/// use proofhouse_manifest::schedule::Cadence;
///
/// let cadence = Cadence::new("0 9 * * 1-5", Some("Australia/Sydney")).unwrap();
/// let friday = "2026-01-02T00:00:00Z".parse().unwrap();
/// assert_eq!(cadence.next_after(friday), Some("2026-01-04T22:00:00Z".parse().unwrap()));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Cadence {
    cron: Cron,
    zone: TimeZone,
}

/// Why there is no [`Cadence`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CadenceError {
    /// The expression cannot be used.
    #[error(transparent)]
    Cron(#[from] CronError),
    /// There is no such time zone.
    #[error("`{0}` is not the name of a time zone")]
    Zone(String),
}

/// What is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The tick that a task is started for.
    pub fire: Option<Timestamp>,
    /// How many ticks are passed over.
    pub skipped: u32,
    /// The next tick.
    pub next: Option<Timestamp>,
}

impl Cadence {
    /// Reads a cron expression of five fields and the IANA name of a time zone; UTC without one.
    ///
    /// # Errors
    ///
    /// Returns what cannot be used.
    pub fn new(cron: &str, zone: Option<&str>) -> Result<Self, CadenceError> {
        let cron = Cron::parse(cron)?;
        let zone = match zone {
            None => TimeZone::UTC,
            Some(name) => time_zone(name).ok_or_else(|| {
                let shown = name.chars().take(60).collect();
                CadenceError::Zone(shown)
            })?,
        };
        Ok(Self { cron, zone })
    }

    /// The first tick after an instant.
    #[must_use]
    pub fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        self.cron.next_after(instant, &self.zone)
    }

    /// What is due at `now`, when ticks up to and with `since` have been seen to: the last tick that was
    /// handled, or when the schedule was first seen.
    #[must_use]
    pub fn due(&self, since: Timestamp, now: Timestamp) -> Due {
        let mut due = Due {
            fire: None,
            skipped: 0,
            next: self.next_after(since),
        };
        // What is older than the latest tick that may still fire is counted, up to a point, and no more.
        let horizon = now.checked_sub(MAX_LATENESS).unwrap_or(Timestamp::MIN);
        let mut passed = 0_u32;
        while let Some(tick) = due.next.filter(|tick| *tick <= now) {
            passed = passed.saturating_add(1);
            due.fire = Some(tick);
            let after = if passed >= MAX_COUNTED && tick < horizon {
                horizon
            } else {
                tick
            };
            due.next = self.next_after(after);
        }
        if let Some(latest) = due.fire {
            let lateness = now.duration_since(latest);
            let period = due.next.map(|next| next.duration_since(latest));
            let fresh = lateness <= MAX_LATENESS && period.is_none_or(|period| lateness < period);
            if !fresh {
                due.fire = None;
            }
        }
        due.skipped = passed - u32::from(due.fire.is_some());
        due
    }
}

/// The zone of a name, by the database that is compiled in: what a name means must not depend on the machine.
fn time_zone(name: &str) -> Option<TimeZone> {
    match name {
        "UTC" => Some(TimeZone::UTC),
        _ => TimeZoneDatabase::bundled().get(name).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn zones_are_iana_names() {
        for name in ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"] {
            assert!(Cadence::new("0 0 * * *", Some(name)).is_ok(), "{name}");
        }
        for name in ["", "Berlin", "+01:00", "../etc/passwd", "Europe/Atlantis"] {
            let error = Cadence::new("0 0 * * *", Some(name)).unwrap_err();
            assert_eq!(error, CadenceError::Zone(name.to_owned()));
        }
    }

    #[test]
    fn a_tick_in_time_fires_once() {
        let hourly = Cadence::new("0 * * * *", None).unwrap();
        let due = hourly.due(at("2026-01-01T10:00:00Z"), at("2026-01-01T10:59:59Z"));
        assert_eq!((due.fire, due.skipped), (None, 0));
        assert_eq!(due.next, Some(at("2026-01-01T11:00:00Z")));
        let due = hourly.due(at("2026-01-01T10:00:00Z"), at("2026-01-01T11:00:00Z"));
        assert_eq!(due.fire, Some(at("2026-01-01T11:00:00Z")));
        assert_eq!(due.next, Some(at("2026-01-01T12:00:00Z")));
        let due = hourly.due(at("2026-01-01T11:00:00Z"), at("2026-01-01T11:00:01Z"));
        assert_eq!((due.fire, due.skipped), (None, 0));
    }

    #[test]
    fn of_missed_ticks_the_latest_fires_if_it_is_fresh() {
        let daily = Cadence::new("0 9 * * *", None).unwrap();
        let since = at("2026-01-01T09:00:00Z");
        // Half an hour late, after a week.
        let due = daily.due(since, at("2026-01-08T09:30:00Z"));
        assert_eq!(due.fire, Some(at("2026-01-08T09:00:00Z")));
        assert_eq!(due.skipped, 6);
        // Two hours late.
        let due = daily.due(since, at("2026-01-08T11:00:00Z"));
        assert_eq!((due.fire, due.skipped), (None, 7));
        assert_eq!(due.next, Some(at("2026-01-09T09:00:00Z")));
    }

    #[test]
    fn years_of_minutes_are_passed_over_quickly() {
        let each_minute = Cadence::new("* * * * *", None).unwrap();
        let now = at("2026-01-01T00:00:30Z");
        let due = each_minute.due(at("2016-01-01T00:00:00Z"), now);
        assert_eq!(due.fire, Some(at("2026-01-01T00:00:00Z")));
        assert!(due.skipped >= MAX_COUNTED);
    }
}
