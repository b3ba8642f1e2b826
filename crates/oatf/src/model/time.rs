//! Dates and durations that keep the notation their author chose.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::Offset;

use crate::primitives::parse_duration;

/// An ISO 8601 date, or date-time with a time zone, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateOrDateTime {
    text: String,
    instant: Timestamp,
}

impl DateOrDateTime {
    /// Parses a date (`2026-01-15`, midnight UTC) or a date-time with an offset.
    ///
    /// ```
    /// use proofhouse_oatf::DateOrDateTime;
    /// let day = DateOrDateTime::parse("2026-01-15").unwrap();
    /// assert_eq!(day.instant().to_string(), "2026-01-15T00:00:00Z");
    /// assert!(DateOrDateTime::parse("2026-01-15T10:30:00+02:00").is_some());
    /// assert!(DateOrDateTime::parse("2026-02-30").is_none());
    /// assert!(DateOrDateTime::parse("2026-01-15T10:30:00").is_none());
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        // The library reads more notations than the format has; this is the format's shape.
        let shaped = bytes.len() >= 10
            && bytes[..10].iter().enumerate().all(|(i, b)| match i {
                4 | 7 => *b == b'-',
                _ => b.is_ascii_digit(),
            });
        if !shaped {
            return None;
        }
        let (civil, offset) = if bytes.len() == 10 {
            (text.parse::<Date>().ok()?.at(0, 0, 0, 0), Offset::UTC)
        } else if matches!(bytes[10], b'T' | b't') && !text.contains('[') {
            let pieces = Pieces::parse(text).ok()?;
            let offset = match pieces.offset()? {
                PiecesOffset::Zulu => Offset::UTC,
                PiecesOffset::Numeric(numeric) => numeric.offset(),
                _ => return None,
            };
            (pieces.date().to_datetime(pieces.time()?), offset)
        } else {
            return None;
        };
        // The calendar ends a day after what the library can hold as an instant.
        let instant = offset.to_timestamp(civil).unwrap_or(if civil.year() > 0 {
            Timestamp::MAX
        } else {
            Timestamp::MIN
        });
        Some(Self {
            text: text.to_owned(),
            instant,
        })
    }

    /// The text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The instant it names; a bare date is midnight UTC. The last day of the year 9999 is cut to what an instant can hold.
    #[must_use]
    pub fn instant(&self) -> Timestamp {
        self.instant
    }
}

/// A text is neither a date nor a date-time with an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("neither a date nor a date-time")]
pub struct DateError;

impl std::str::FromStr for DateOrDateTime {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).ok_or(DateError)
    }
}

/// A duration as written; whether it is one is checked by V-036 and V-046.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationText {
    text: String,
    duration: Option<Duration>,
}

impl From<&str> for DurationText {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for DurationText {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl DurationText {
    /// Keeps the text and, if it is a duration, its value.
    ///
    /// ```
    /// use proofhouse_oatf::DurationText;
    /// use std::time::Duration;
    /// assert_eq!(DurationText::new("PT1M30S").duration(), Some(Duration::from_secs(90)));
    /// assert_eq!(DurationText::new("soon").duration(), None);
    /// ```
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let duration = parse_duration(&text).ok();
        Self { text, duration }
    }

    /// The text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value, when the text is a duration.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        self.duration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_date_times() {
        for (text, valid) in [
            ("2026-01-15", true),
            ("2026-01-15T10:30:00Z", true),
            ("2026-01-15T10:30:00.123+05:30", true),
            ("2026-01-15t10:30:00z", true),
            ("2026-13-01", false),
            ("2026-1-5", false),
            ("20260115", false),
            ("2026-01-15 10:30:00Z", false),
            ("2026-01-15T10:30:00", false),
            ("2026-01-15T25:00:00Z", false),
            ("2026-01-15T10:30:00Z[UTC]", false),
            ("2026-01-15x", false),
            ("", false),
            ("日本語日本語", false),
        ] {
            assert_eq!(DateOrDateTime::parse(text).is_some(), valid, "{text}");
        }
    }
}
