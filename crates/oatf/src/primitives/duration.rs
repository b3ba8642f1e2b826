//! Durations in shorthand (`30s`) and ISO 8601 (`PT30S`) notation.

use std::time::Duration;

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
    let seconds = match input.strip_prefix('P') {
        Some(rest) => parse_iso(rest),
        None => parse_shorthand(input),
    };
    seconds.map(Duration::from_secs).ok_or_else(|| ParseError {
        kind: ParseErrorKind::TypeMismatch,
        code: "V-036",
        message: format!("`{}` is not a duration", clip(input)),
        path: None,
        span: None,
        help: Some("write `30s`, `5m`, `1h`, `2d`, or ISO 8601 such as `PT1M30S`".to_owned()),
    })
}

fn parse_shorthand(input: &str) -> Option<u64> {
    let unit = input.chars().last()?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    parse_digits(&input[..input.len() - 1])?.checked_mul(factor)
}

/// Everything after the `P`: days, then a `T` and hours, minutes, seconds in that order.
fn parse_iso(rest: &str) -> Option<u64> {
    let (days, time) = match rest.split_once('T') {
        Some((days, time)) => (days, Some(time)),
        None => (rest, None),
    };
    let mut total = match days {
        "" => 0,
        days => parse_digits(days.strip_suffix('D')?)?.checked_mul(86_400)?,
    };
    let Some(mut time) = time else {
        return (!days.is_empty()).then_some(total);
    };
    if time.is_empty() {
        return None;
    }
    for (unit, factor) in [('H', 3_600), ('M', 60), ('S', 1)] {
        if let Some((amount, tail)) = time.split_once(unit) {
            total = total.checked_add(parse_digits(amount)?.checked_mul(factor)?)?;
            time = tail;
        }
    }
    time.is_empty().then_some(total)
}

fn parse_digits(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn clip(text: &str) -> &str {
    text.char_indices()
        .nth(40)
        .map_or(text, |(cut, _)| &text[..cut])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_notations() {
        for (input, expected) in [
            ("30s", Some(30)),
            ("5m", Some(300)),
            ("1h", Some(3_600)),
            ("2d", Some(172_800)),
            ("0s", Some(0)),
            ("PT30S", Some(30)),
            ("PT5M", Some(300)),
            ("PT1H", Some(3_600)),
            ("P2D", Some(172_800)),
            ("PT5M30S", Some(330)),
            ("PT1H30M", Some(5_400)),
            ("PT1H30M15S", Some(5_415)),
            ("PT1H15S", Some(3_615)),
            ("P1DT12H", Some(129_600)),
            ("P1DT12H30M15S", Some(131_415)),
            ("PT0S", Some(0)),
            ("", None),
            ("s", None),
            ("5", None),
            ("abc", None),
            ("1.5h", None),
            ("-5s", None),
            ("+5s", None),
            (" 5s", None),
            ("5 s", None),
            ("5S", None),
            ("1h30m", None),
            ("P", None),
            ("PT", None),
            ("P1DT", None),
            ("P1H", None),
            ("PT1D", None),
            ("PT-30S", None),
            ("PT30M1H", None),
            ("PT1S1M", None),
            ("PT1M1M", None),
            ("P1D1D", None),
            ("P1W", None),
            ("PT1.5S", None),
            ("pt1s", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
            ("P1DT18446744073709551615S", None),
            ("５s", None),
            ("5é", None),
        ] {
            assert_eq!(
                parse_duration(input).ok().map(|d| d.as_secs()),
                expected,
                "{input:?}"
            );
        }
    }

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

    proptest! {
        #[test]
        fn both_notations_agree(d in 0u64..1000, h in 0u64..1000, m in 0u64..1000, s in 0u64..1000) {
            let iso = parse_duration(&format!("P{d}DT{h}H{m}M{s}S")).unwrap();
            prop_assert_eq!(iso.as_secs(), d * 86_400 + h * 3_600 + m * 60 + s);
            prop_assert_eq!(parse_duration(&format!("{m}m")).unwrap().as_secs(), m * 60);
        }

        #[test]
        fn never_panics(text in "\\PC*|[PTDHMS0-9smhd.]{0,12}") {
            let _ = parse_duration(&text);
        }
    }
}
