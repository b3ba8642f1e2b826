//! Durations on the command line and in `proofhouse.yaml`.

use std::time::Duration;

use proofhouse_source::format::Durations;

/// A text that is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a duration such as 100ms, 30s, 5m or PT1H")]
pub struct NotDuration;

/// Reads `100ms`, `30s`, `5m`, or ISO 8601.
///
/// # Errors
///
/// Returns an error when it is none of them.
pub fn duration(text: &str) -> Result<Duration, NotDuration> {
    Durations::MILLISECONDS.parse(text).map_err(|_| NotDuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_may_be_short() {
        assert_eq!(duration("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        for wrong in ["ms", "+1ms", "1.5ms", "-1s", "", "99999999999999999999ms"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
