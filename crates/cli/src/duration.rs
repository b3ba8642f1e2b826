//! Durations on the command line.

use std::time::Duration;

use proofhouse_source::format::Durations;

/// Reads `100ms`, `30s`, `5m`, or ISO 8601.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = Durations::MILLISECONDS.parse(text);
    parsed.map_err(|_| "write a duration such as 100ms, 30s, 5m or PT1H".to_owned())
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
