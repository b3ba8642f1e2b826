//! What a scalar means under the YAML 1.2 core schema.

/// The value of a scalar node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum YamlScalar<'a> {
    /// `null`, `~` or nothing at all.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer that fits 64 signed bits.
    Int(i64),
    /// An integer that only fits 64 unsigned bits.
    UInt(u64),
    /// A finite floating point number.
    Float(f64),
    /// A number JSON and 64 bits cannot hold: too large, infinite or not a number.
    OutOfRange(&'a str),
    /// Anything else, and everything quoted.
    Text(&'a str),
}

/// Resolves a plain (unquoted) scalar.
pub(crate) fn resolve_plain(text: &str) -> YamlScalar<'_> {
    match text.as_bytes() {
        [] | b"~" => YamlScalar::Null,
        [b'n' | b'N', ..] if matches!(text, "null" | "Null" | "NULL") => YamlScalar::Null,
        [b't' | b'T', ..] if matches!(text, "true" | "True" | "TRUE") => YamlScalar::Bool(true),
        [b'f' | b'F', ..] if matches!(text, "false" | "False" | "FALSE") => YamlScalar::Bool(false),
        [b'0'..=b'9' | b'+' | b'-' | b'.', ..] => resolve_number(text),
        _ => YamlScalar::Text(text),
    }
}

fn resolve_number(text: &str) -> YamlScalar<'_> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return YamlScalar::OutOfRange(text);
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) {
                u64::from_str_radix(digits, radix).map_or(YamlScalar::OutOfRange(text), integer)
            } else {
                YamlScalar::Text(text)
            };
        }
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return text
            .parse::<i64>()
            .map(YamlScalar::Int)
            .or_else(|_| text.parse::<u64>().map(YamlScalar::UInt))
            .unwrap_or(YamlScalar::OutOfRange(text));
    }
    if is_core_float(unsigned) {
        return match text.parse::<f64>() {
            Ok(number) if number.is_finite() => YamlScalar::Float(number),
            _ => YamlScalar::OutOfRange(text),
        };
    }
    YamlScalar::Text(text)
}

fn integer<'a>(value: u64) -> YamlScalar<'a> {
    i64::try_from(value).map_or(YamlScalar::UInt(value), YamlScalar::Int)
}

/// `( "." digits | digits [ "." digits* ] ) [ e [sign] digits ]`, without a sign.
fn is_core_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        Some((whole, fraction)) => {
            digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty())
        }
        None => !mantissa.is_empty() && digits(mantissa),
    };
    let exponent_ok = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    mantissa_ok && exponent_ok
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_core_schema() {
        use YamlScalar::{Bool, Float, Int, Null, OutOfRange, Text, UInt};
        for (text, expected) in [
            ("", Null),
            ("~", Null),
            ("null", Null),
            ("Null", Null),
            ("nULL", Text("nULL")),
            ("true", Bool(true)),
            ("FALSE", Bool(false)),
            ("yes", Text("yes")),
            ("on", Text("on")),
            ("0", Int(0)),
            ("+12", Int(12)),
            ("-12", Int(-12)),
            ("007", Int(7)),
            ("0o17", Int(15)),
            ("0xFf", Int(255)),
            ("0x", Text("0x")),
            ("0o8", Text("0o8")),
            ("0xFFFFFFFFFFFFFFFFF", OutOfRange("0xFFFFFFFFFFFFFFFFF")),
            ("9223372036854775807", Int(i64::MAX)),
            ("9223372036854775808", UInt(1 << 63)),
            ("18446744073709551616", OutOfRange("18446744073709551616")),
            ("-9223372036854775809", OutOfRange("-9223372036854775809")),
            ("1.5", Float(1.5)),
            (".5", Float(0.5)),
            ("5.", Float(5.0)),
            ("-1e3", Float(-1000.0)),
            ("1e999", OutOfRange("1e999")),
            (".inf", OutOfRange(".inf")),
            ("-.INF", OutOfRange("-.INF")),
            (".nan", OutOfRange(".nan")),
            ("-.nan", Text("-.nan")),
            (".", Text(".")),
            ("-", Text("-")),
            ("1.2.3", Text("1.2.3")),
            ("1e", Text("1e")),
            ("2026-01-15", Text("2026-01-15")),
            ("30s", Text("30s")),
            ("12:30", Text("12:30")),
            ("1_000", Text("1_000")),
        ] {
            assert_eq!(resolve_plain(text), expected, "{text:?}");
        }
    }
}
