//! Cron expressions of five fields, and their next tick in a time zone.
//!
//! Where clocks are put forward, a tick at a fixed hour in the gap comes at the end of the gap; where they
//! are put back, it comes at the first of the two times. An expression whose hour starts with `*` goes by
//! the time that really passes: nothing in a gap, and both times where clocks are put back.

use jiff::civil::{Date, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

/// How many days are looked at. The 29th of February comes again after eight years at most.
const MAX_DAYS: usize = 8 * 366 + 2;
/// How far clocks are put back, with room: an hour nearly everywhere.
const MOST_HOURS_BACK: i8 = 3;
/// An expression that people write has some dozen characters.
const MAX_BYTES: usize = 256;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The fields: their names, lowest and highest numbers, and the words for numbers from `first` on.
const FIELDS: [CronField; 5] = [
    CronField::numbers("minute", 0, 59),
    CronField::numbers("hour", 0, 23),
    CronField::numbers("day of month", 1, 31),
    CronField {
        name: "month",
        low: 1,
        high: 12,
        words: &MONTHS,
    },
    // 7 is Sunday, as 0 is.
    CronField {
        name: "day of week",
        low: 0,
        high: 7,
        words: &WEEKDAYS,
    },
];

struct CronField {
    name: &'static str,
    low: u8,
    high: u8,
    words: &'static [&'static str],
}

impl CronField {
    const fn numbers(name: &'static str, low: u8, high: u8) -> Self {
        Self {
            name,
            low,
            high,
            words: &[],
        }
    }
}

/// A cron expression: minute, hour, day of month, month, day of week.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cron {
    /// A bit for each number that fits.
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether the day fields restrict: if both do, a day fits that fits one of them.
    any_day: bool,
    any_weekday: bool,
    /// Whether the hour starts with `*`.
    by_real_time: bool,
}

/// Why a text is no cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// There are more or fewer fields.
    #[error(
        "a cron expression has 5 fields (minute, hour, day of month, month, day of week), not {0}"
    )]
    Fields(usize),
    /// A field cannot be read.
    #[error("the {field} `{text}` {reason}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What stands there, cut to a bounded length.
        text: String,
        /// What is wrong.
        reason: CronFieldError,
    },
    /// No day fits, such as the 31st of February.
    #[error("no day fits the expression, so it would never fire")]
    Never,
}

/// Why a field of a cron expression cannot be read, as the rest of a sentence that begins with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronFieldError {
    /// No field needs as much.
    #[error("is too long")]
    TooLong,
    /// A step is only of many numbers.
    #[error("has a step without a range or `*`")]
    StepWithoutRange,
    /// Something else than a number or a name of the field.
    #[error("has `{text}`, which is not a number from {low} to {high}")]
    Number {
        /// What stands there, cut to a bounded length.
        text: String,
        /// The least that fits.
        low: u8,
        /// The most that fits.
        high: u8,
    },
    /// Something else than a step of the field.
    #[error("has the step `{text}`, which is not from 1 to {high}")]
    Step {
        /// What stands there, cut to a bounded length.
        text: String,
        /// The longest step that fits.
        high: u8,
    },
    /// A range that ends before it begins.
    #[error("goes from {low} down to {high}")]
    Descending {
        /// Where it begins.
        low: u8,
        /// Where it ends.
        high: u8,
    },
}

impl Cron {
    /// Reads an expression: numbers, `*`, ranges `1-5`, steps `*/15` and `8-18/2`, lists `1,15`, and the
    /// English names of months and weekdays, of three letters.
    ///
    /// # Errors
    ///
    /// Returns the first field that cannot be read.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let fields: Vec<&str> = text.split_whitespace().take(8).collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(CronError::Fields(fields.len()));
        };
        let [minutes, hours, days, months, weekdays] =
            [(minute, 0), (hour, 1), (day, 2), (month, 3), (weekday, 4)]
                .map(|(text, at): (&str, usize)| read(text, &FIELDS[at]));
        let weekdays = weekdays?;
        let cron = Self {
            minutes: minutes?,
            hours: hours?,
            days: days?,
            months: months?,
            // Sunday has two numbers.
            weekdays: weekdays & 0x7f | weekdays >> 7 & 1,
            any_day: day.starts_with('*'),
            any_weekday: weekday.starts_with('*'),
            by_real_time: hour.starts_with('*'),
        };
        let start = Timestamp::UNIX_EPOCH;
        match cron.next_after(start, &TimeZone::UTC) {
            Some(_) => Ok(cron),
            None => Err(CronError::Never),
        }
    }

    /// The first tick after an instant, in a zone.
    #[must_use]
    pub fn next_after(&self, instant: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let clock = zone.to_datetime(instant);
        // A clock that goes back past midnight shows yesterday again.
        let mut date = if clock.hour() < MOST_HOURS_BACK {
            clock.date().checked_sub(1.day()).ok()?
        } else {
            clock.date()
        };
        let mut earlier: Option<Timestamp> = None;
        for _ in 0..MAX_DAYS {
            let from = if date == clock.date() {
                clock.hour().saturating_sub(MOST_HOURS_BACK)
            } else {
                0
            };
            let first = self.first_on(date, from, instant, zone);
            // For the same reason, a tick of a day may come after one of the next.
            match (earlier, first) {
                (Some(earlier), Some(first)) => return Some(earlier.min(first)),
                (Some(earlier), None) => return Some(earlier),
                (None, first) => earlier = first,
            }
            date = date.tomorrow().ok()?;
        }
        earlier
    }

    fn fits_day(&self, date: Date) -> bool {
        let bit = |mask: u64, number: i8| mask >> number & 1 == 1;
        let day = bit(self.days, date.day());
        let weekday = bit(self.weekdays, date.weekday().to_sunday_zero_offset());
        bit(self.months, date.month())
            && match (self.any_day, self.any_weekday) {
                (false, false) => day || weekday,
                _ => day && weekday,
            }
    }

    /// The first tick after an instant among those of one day, from an hour on.
    fn first_on(
        &self,
        date: Date,
        from: i8,
        instant: Timestamp,
        zone: &TimeZone,
    ) -> Option<Timestamp> {
        if !self.fits_day(date) {
            return None;
        }
        let mut first: Option<Timestamp> = None;
        for hour in ones(self.hours).filter(|hour| *hour >= from) {
            for minute in ones(self.minutes) {
                let time = Time::new(hour, minute, 0, 0).ok()?;
                let ticks = self.ticks(date, time, zone);
                for tick in ticks.into_iter().flatten() {
                    if tick > instant && first.is_none_or(|first| tick < first) {
                        first = Some(tick);
                    }
                }
                // The times of a day follow each other, and so do those that a clock shows again.
                if ticks[0].is_some_and(|tick| tick > instant) {
                    return first;
                }
            }
        }
        first
    }

    /// The instants of a time on the clock: two where clocks were put back, one past the gap where they were
    /// put forward.
    fn ticks(&self, date: Date, time: Time, zone: &TimeZone) -> [Option<Timestamp>; 2] {
        let clock = date.to_datetime(time);
        let ambiguous = zone.to_ambiguous_timestamp(clock);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => [offset.to_timestamp(clock).ok(), None],
            AmbiguousOffset::Gap { .. } if self.by_real_time => [None, None],
            AmbiguousOffset::Gap { before, .. } => {
                // With the offset from before the gap, the time is in or past the jump, whose instant is
                // the transition before.
                let within = before.to_timestamp(clock).ok();
                let past = within.and_then(|within| within.checked_add(1.nanosecond()).ok());
                let jump = past.and_then(|past| zone.preceding(past).next());
                [jump.map(|jump| jump.timestamp()).or(within), None]
            }
            AmbiguousOffset::Fold { before, after } => {
                let second = after.to_timestamp(clock).ok().filter(|_| self.by_real_time);
                [before.to_timestamp(clock).ok(), second]
            }
        }
    }
}

/// The numbers whose bits are set.
fn ones(mask: u64) -> impl Iterator<Item = i8> {
    (0..60).filter(move |number| mask >> number & 1 == 1)
}

fn read(text: &str, field: &CronField) -> Result<u64, CronError> {
    let wrong = |reason: CronFieldError| CronError::Field {
        field: field.name,
        text: text.chars().take(40).collect(),
        reason,
    };
    if text.len() > MAX_BYTES {
        return Err(wrong(CronFieldError::TooLong));
    }
    let mut mask = 0_u64;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let (low, high) = match range.split_once('-') {
            _ if range == "*" => (
                field.low,
                field.high - u8::from(field.name == "day of week"),
            ),
            Some((low, high)) => (
                number(low, field).map_err(wrong)?,
                number(high, field).map_err(wrong)?,
            ),
            None if step.is_some() => {
                return Err(wrong(CronFieldError::StepWithoutRange));
            }
            None => {
                let only = number(range, field).map_err(wrong)?;
                (only, only)
            }
        };
        let step = match step.map(|step| (step, step.parse::<u8>())) {
            None => 1,
            Some((_, Ok(step))) if (1..=field.high).contains(&step) => step,
            Some((step, _)) => {
                return Err(wrong(CronFieldError::Step {
                    text: step.chars().take(10).collect(),
                    high: field.high,
                }));
            }
        };
        if low > high {
            return Err(wrong(CronFieldError::Descending { low, high }));
        }
        let mut at = low;
        while at <= high {
            mask |= 1 << at;
            at += step;
        }
    }
    Ok(mask)
}

fn number(text: &str, field: &CronField) -> Result<u8, CronFieldError> {
    let word = text.to_ascii_lowercase();
    if let Some(at) = field.words.iter().position(|known| *known == word) {
        return Ok(field.low + u8::try_from(at).unwrap_or_default());
    }
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u8>() {
        Ok(number) if digits && (field.low..=field.high).contains(&number) => Ok(number),
        _ => Err(CronFieldError::Number {
            text: text.chars().take(10).collect(),
            low: field.low,
            high: field.high,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZoneDatabase;
    use proptest::prelude::*;

    fn ticks(cron: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let cron = Cron::parse(cron).unwrap();
        let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
        let mut at: Timestamp = from.parse().unwrap();
        let mut found = Vec::new();
        for _ in 0..count {
            at = cron.next_after(at, &zone).unwrap();
            found.push(at.to_string());
        }
        found
    }

    #[test]
    fn expressions_have_five_fields_of_known_numbers() {
        for text in [
            "* * * * *",
            "*/15 8-18/2 1,15 jan-mar MON-FRI",
            "0 0 29 2 *",
            "0 0 31 2 1",
            "  5 4 * *  7 ",
        ] {
            assert!(Cron::parse(text).is_ok(), "{text}");
        }
        for (text, expected) in [
            ("", "not 0"),
            ("* * * *", "not 4"),
            ("0 * * * * *", "not 6"),
            ("@daily", "not 1"),
            ("60 * * * *", "the minute `60`"),
            ("* 24 * * *", "the hour `24`"),
            ("* * 0 * *", "from 1 to 31"),
            ("* * * 13 *", "the month"),
            ("* * * * 8", "the day of week"),
            ("5-1 * * * *", "down to 1"),
            ("*/0 * * * *", "the step `0`"),
            ("5/10 * * * *", "without a range"),
            ("1,,2 * * * *", "the minute"),
            ("+1 * * * *", "the minute"),
            ("* * L * *", "the day of month"),
            ("0 0 31 2 *", "never fire"),
            ("0 0 30 2 *", "never fire"),
        ] {
            let error = Cron::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn ticks_follow_the_fields() {
        for (cron, from, expected) in [
            (
                "*/20 * * * *",
                "2026-01-01T00:00:00Z",
                "2026-01-01T00:20:00Z",
            ),
            (
                "0 9 * * 1-5",
                "2026-01-02T09:00:00Z",
                "2026-01-05T09:00:00Z",
            ),
            ("0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            // Both day fields restrict, so either will do.
            ("0 0 13 * 5", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            ("0 0 13 * 5", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"),
            (
                "59 23 31 12 *",
                "2026-12-31T23:59:00Z",
                "2027-12-31T23:59:00Z",
            ),
        ] {
            assert_eq!(ticks(cron, "UTC", from, 1), [expected], "{cron}");
        }
    }

    #[test]
    fn where_clocks_go_forward_a_fixed_time_comes_at_the_end_of_the_gap() {
        // In Berlin, 2026-03-29 02:00 becomes 03:00, which is 01:00 UTC.
        assert_eq!(
            ticks("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
            ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
        );
        // What goes by real time has nothing in the gap, and nothing twice.
        assert_eq!(
            ticks("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3),
            [
                "2026-03-29T00:30:00Z",
                "2026-03-29T01:30:00Z",
                "2026-03-29T02:30:00Z"
            ]
        );
        // Two fixed times of one gap are one tick.
        assert_eq!(
            ticks("0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
            ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]
        );
        // Samoa left a whole day out: there was no 30th of December in 2011.
        assert_eq!(
            ticks("0 9 30 12 *", "Pacific/Apia", "2011-12-29T00:00:00Z", 1),
            ["2011-12-30T10:00:00Z"]
        );
    }

    #[test]
    fn where_clocks_go_back_a_fixed_time_comes_once() {
        // In New York, 2026-11-01 02:00 becomes 01:00, which is 06:00 UTC.
        assert_eq!(
            ticks("30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", 2),
            ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]
        );
        assert_eq!(
            ticks("30 * * * *", "America/New_York", "2026-11-01T05:00:00Z", 3),
            [
                "2026-11-01T05:30:00Z",
                "2026-11-01T06:30:00Z",
                "2026-11-01T07:30:00Z"
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_an_expression_or_an_error(text in r"[0-9*/,\- a-z]{0,40}") {
            let _ = Cron::parse(&text);
        }

        #[test]
        fn ticks_go_forward(seconds in 0_i64..4_000_000_000, minute in 0..60, hour in 0..24) {
            let zone = TimeZoneDatabase::bundled().get("Europe/Berlin").unwrap();
            let cron = Cron::parse(&format!("{minute} {hour} * * *")).unwrap();
            let from = Timestamp::from_second(seconds).unwrap();
            let next = cron.next_after(from, &zone).unwrap();
            prop_assert!(next > from);
            prop_assert!(next.duration_since(from).as_hours() <= 25);
            // Nothing lies between.
            let before = next.checked_sub(1.nanosecond()).unwrap();
            prop_assert_eq!(cron.next_after(before, &zone), Some(next));
        }
    }
}
