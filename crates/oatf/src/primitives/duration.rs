//! Durations in shorthand (`30s`) and ISO 8601 (`PT30S`) notation.

use std::time::Duration;

use proofhouse_source::format::Durations;

use crate::error::{ParseError, ParseErrorKind};

/// Parses a duration of whole days, hours, minutes and seconds.
///
/// ```
/// use proofhouse_oatf::parse_duration;
/// use std::time::Duration;
/// assert_eq!(parse_duration("5m").unwrap(), Duration::from_secs(300));
/// assert_eq!(parse_duration("P1DT12H").unwrap(), Duration::from_secs(129_600));
/// assert!(parse_duration("1.5h").is_err());
/// ```
///
/// # Errors
///
/// Returns a [`ParseError`] for anything else, and for durations beyond 64 bits of seconds.
#[expect(
    clippy::result_large_err,
    reason = "the error type is the one every entry point has"
)]
pub fn parse_duration(input: &str) -> Result<Duration, ParseError> {
    let parsed = Durations::WHOLE_SECONDS.parse(input);
    parsed.map_err(|_| ParseError {
        kind: ParseErrorKind::TypeMismatch,
        code: "V-036",
        message: format!("`{}` is not a duration", clip(input)),
        path: None,
        span: None,
        help: Some("write `30s`, `5m`, `1h`, `2d`, or ISO 8601 such as `PT1M30S`".to_owned()),
    })
}

fn clip(text: &str) -> &str {
    text.char_indices()
        .nth(40)
        .map_or(text, |(cut, _)| &text[..cut])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_short() {
        let message = |input: &str| parse_duration(input).unwrap_err().message;
        assert_eq!(message("soon"), "`soon` is not a duration");
        let shown = "é".repeat(40);
        assert_eq!(message(&shown), format!("`{shown}` is not a duration"));
        assert_eq!(
            message(&"é".repeat(41)),
            format!("`{shown}` is not a duration")
        );
        assert!(
            parse_duration(&"x".repeat(1_000_000))
                .unwrap_err()
                .message
                .len()
                < 100
        );
    }
}
