//! The one grammar of durations: `30s`, `5m`, `1h`, `2d`, ISO 8601 such as `PT1M30S`, and `250ms` where
//! milliseconds make sense.

use std::time::Duration;

use serde_json::{Value, json};

/// Days, hours, minutes and seconds in ISO 8601, as an alternative of a pattern.
macro_rules! iso {
    () => {
        "P[0-9]+D(T([0-9]+H([0-9]+M)?([0-9]+S)?|[0-9]+M([0-9]+S)?|[0-9]+S))?|\
         PT([0-9]+H([0-9]+M)?([0-9]+S)?|[0-9]+M([0-9]+S)?|[0-9]+S)"
    };
}

const SECONDS: &str = concat!("^([0-9]+[smhd]|", iso!(), ")$");
const MILLISECONDS: &str = concat!("^([0-9]+(ms|[smhd])|", iso!(), ")$");
/// A text without any of these digits is no time at all.
const ZERO: &str = "^[^1-9]*$";

/// Which durations a field may hold. One notation is one number with one unit, or ISO 8601: there is no
/// `1h30m`, in any format.
///
/// ```
/// use proofhouse_source::format::{DurationError, Durations};
/// use std::time::Duration;
///
/// assert_eq!(Durations::WHOLE_SECONDS.parse("P1DT12H"), Ok(Duration::from_secs(129_600)));
/// assert_eq!(Durations::MILLISECONDS.parse("250ms"), Ok(Duration::from_millis(250)));
/// assert_eq!(Durations::WHOLE_SECONDS.parse("250ms"), Err(DurationError::Malformed));
/// assert_eq!(Durations::MILLISECONDS.parse("1h30m"), Err(DurationError::Malformed));
/// assert_eq!(Durations::POSITIVE.parse("0s"), Err(DurationError::Zero));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durations {
    /// Whether `250ms` is one.
    milliseconds: bool,
    /// Whether `0s` is one.
    zero: bool,
}

/// Why a text is not a duration that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationError {
    /// It is not written as one, or is beyond 64 bits of seconds.
    Malformed,
    /// It is zero, where time has to pass.
    Zero,
}

impl Durations {
    /// What the Open Agent Threat Format accepts: whole seconds, minutes, hours and days.
    pub const WHOLE_SECONDS: Self = Self {
        milliseconds: false,
        zero: true,
    };
    /// The same and milliseconds, for everything that is not a threat document.
    pub const MILLISECONDS: Self = Self {
        milliseconds: true,
        zero: true,
    };
    /// The same, but more than no time.
    pub const POSITIVE: Self = Self {
        milliseconds: true,
        zero: false,
    };

    /// Reads a duration.
    ///
    /// # Errors
    ///
    /// Says whether the text is malformed, or zero where that is not allowed.
    pub fn parse(self, text: &str) -> Result<Duration, DurationError> {
        let duration = match text.strip_suffix("ms") {
            Some(count) if self.milliseconds => digits(count).map(Duration::from_millis),
            Some(_) => None,
            None => whole_seconds(text).map(Duration::from_secs),
        };
        match duration {
            None => Err(DurationError::Malformed),
            Some(duration) if duration.is_zero() && !self.zero => Err(DurationError::Zero),
            Some(duration) => Ok(duration),
        }
    }

    /// The JSON Schema of the same durations.
    pub(super) fn schema(self) -> Value {
        let (pattern, examples) = if self.milliseconds {
            (MILLISECONDS, json!(["250ms", "30s", "5m", "PT1M30S"]))
        } else {
            (SECONDS, json!(["30s", "5m", "PT1M30S"]))
        };
        let mut schema = json!({"type": "string", "pattern": pattern, "examples": examples});
        if !self.zero {
            schema["not"] = json!({"pattern": ZERO});
        }
        schema
    }
}

fn whole_seconds(text: &str) -> Option<u64> {
    match text.strip_prefix('P') {
        Some(rest) => iso_8601(rest),
        None => shorthand(text),
    }
}

fn shorthand(text: &str) -> Option<u64> {
    let unit = text.chars().last()?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    digits(&text[..text.len() - 1])?.checked_mul(factor)
}

/// Everything after the `P`: days, then a `T` and hours, minutes, seconds in that order.
fn iso_8601(rest: &str) -> Option<u64> {
    let (days, time) = match rest.split_once('T') {
        Some((days, time)) => (days, Some(time)),
        None => (rest, None),
    };
    let mut total = match days {
        "" => 0,
        days => digits(days.strip_suffix('D')?)?.checked_mul(86_400)?,
    };
    let Some(mut time) = time else {
        return (!days.is_empty()).then_some(total);
    };
    if time.is_empty() {
        return None;
    }
    for (unit, factor) in [('H', 3_600), ('M', 60), ('S', 1)] {
        if let Some((amount, tail)) = time.split_once(unit) {
            total = total.checked_add(digits(amount)?.checked_mul(factor)?)?;
            time = tail;
        }
    }
    time.is_empty().then_some(total)
}

fn digits(text: &str) -> Option<u64> {
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_notations() {
        for (text, expected) in [
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
            ("ms", None),
            ("5", None),
            ("abc", None),
            ("1.5h", None),
            ("-5s", None),
            ("+5s", None),
            (" 5s", None),
            ("5 s", None),
            ("5S", None),
            ("1h30m", None),
            ("1m500ms", None),
            ("+1ms", None),
            ("1.5ms", None),
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
            ("PT5ms", None),
            ("pt1s", None),
            ("99999999999999999999s", None),
            ("99999999999999999999ms", None),
            ("18446744073709551615d", None),
            ("P1DT18446744073709551615S", None),
            ("５s", None),
            ("5é", None),
        ] {
            for durations in [Durations::WHOLE_SECONDS, Durations::MILLISECONDS] {
                let seconds = durations.parse(text).ok().map(|found| found.as_secs());
                assert_eq!(seconds, expected, "{text:?}");
            }
            let positive = expected.filter(|seconds| *seconds > 0);
            let found = Durations::POSITIVE.parse(text).ok();
            assert_eq!(found.map(|found| found.as_secs()), positive, "{text:?}");
        }
    }

    #[test]
    fn milliseconds_are_not_for_documents() {
        let parsed = Durations::MILLISECONDS.parse("1500ms");
        assert_eq!(parsed, Ok(Duration::from_millis(1500)));
        assert_eq!(Durations::POSITIVE.parse("0ms"), Err(DurationError::Zero));
        let refused = Durations::WHOLE_SECONDS.parse("1500ms");
        assert_eq!(refused, Err(DurationError::Malformed));
    }

    proptest! {
        #[test]
        fn both_notations_agree(d in 0u64..1000, h in 0u64..1000, m in 0u64..1000, s in 0u64..1000) {
            let parse = |text: &str| Durations::WHOLE_SECONDS.parse(text).unwrap().as_secs();
            prop_assert_eq!(parse(&format!("P{d}DT{h}H{m}M{s}S")), d * 86_400 + h * 3_600 + m * 60 + s);
            prop_assert_eq!(parse(&format!("{m}m")), m * 60);
        }

        #[test]
        fn never_panics(text in "\\PC*|[PTDHMS0-9smhd.]{0,12}") {
            let _ = Durations::MILLISECONDS.parse(&text);
        }
    }
}
