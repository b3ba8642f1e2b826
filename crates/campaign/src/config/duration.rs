//! Durations on the command line and in `proofhouse.yaml`.

use std::time::Duration;

use proofhouse_source::format::{DurationError, Durations};

/// A text that is no duration that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDuration {
    /// It is not written as one.
    #[error("write a duration such as 100ms, 30s, 5m or PT1H")]
    Malformed,
    /// It is zero, where time has to pass.
    #[error("the duration must be greater than zero, such as 30s or 5m")]
    Zero,
}

impl From<DurationError> for InvalidDuration {
    fn from(error: DurationError) -> Self {
        match error {
            DurationError::Malformed => Self::Malformed,
            DurationError::Zero => Self::Zero,
        }
    }
}

/// Reads `100ms`, `30s`, `5m`, or ISO 8601. Zero is a duration: nothing is waited for.
///
/// # Errors
///
/// Returns an error when it is none of them.
pub fn duration(text: &str) -> Result<Duration, InvalidDuration> {
    Ok(Durations::MILLISECONDS.parse(text)?)
}

/// The same for limits and lifetimes, where zero would leave no time for anything.
///
/// # Errors
///
/// Returns an error when it is none of them, or zero.
pub fn positive_duration(text: &str) -> Result<Duration, InvalidDuration> {
    Ok(Durations::POSITIVE.parse(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_may_be_short() {
        assert_eq!(duration("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        for wrong in ["ms", "+1ms", "1.5ms", "-1s", "", "99999999999999999999ms"] {
            assert_eq!(duration(wrong), Err(InvalidDuration::Malformed), "{wrong}");
        }
    }

    #[test]
    fn only_some_may_be_zero() {
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert_eq!(positive_duration("0s"), Err(InvalidDuration::Zero));
        assert_eq!(positive_duration("1ms"), Ok(Duration::from_millis(1)));
        assert_eq!(positive_duration("1"), Err(InvalidDuration::Malformed));
    }
}
