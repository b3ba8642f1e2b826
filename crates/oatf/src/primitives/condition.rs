//! Conditions on a resolved value: coercion, comparison and deep equality.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use crate::model::{Condition, MatchCondition};

/// Whether `value` satisfies `condition`.
///
/// `exists` is not looked at here: it is about whether a path resolved, which only
/// [`evaluate_predicate`](crate::evaluate_predicate) and
/// [`evaluate_pattern`](crate::evaluate_pattern) know. A regular expression that does not compile
/// matches nothing; [`validate`](crate::validate) reports it.
///
/// ```
/// use proofhouse_oatf::{Condition, MatchCondition, evaluate_condition};
/// use serde_json::json;
/// assert!(evaluate_condition(&Condition::Equals(json!(42)), &json!(42.0)));
/// let operators = MatchCondition { contains: Some("b".into()), ..MatchCondition::default() };
/// assert!(evaluate_condition(&Condition::Operators(operators.into()), &json!("abc")));
/// ```
#[must_use]
pub fn evaluate_condition(condition: &Condition, value: &Value) -> bool {
    match condition {
        Condition::Equals(expected) => deep_equal(expected, value),
        Condition::Operators(operators) => operators_hold(operators, value),
    }
}

fn operators_hold(operators: &MatchCondition, value: &Value) -> bool {
    let MatchCondition {
        contains,
        starts_with,
        ends_with,
        regex,
        any_of,
        gt,
        lt,
        gte,
        lte,
        exists: _,
    } = operators;
    if contains.is_some() || starts_with.is_some() || ends_with.is_some() || regex.is_some() {
        let text = coerce_to_text(value);
        let holds = contains
            .as_ref()
            .is_none_or(|part| text.contains(part.as_str()))
            && starts_with
                .as_ref()
                .is_none_or(|prefix| text.starts_with(prefix.as_str()))
            && ends_with
                .as_ref()
                .is_none_or(|suffix| text.ends_with(suffix.as_str()))
            && regex
                .as_ref()
                .is_none_or(|regex| regex.regex().is_ok_and(|regex| regex.is_match(&text)));
        if !holds {
            return false;
        }
    }
    if any_of
        .as_ref()
        .is_some_and(|options| !options.iter().any(|o| deep_equal(o, value)))
    {
        return false;
    }
    let compares = |operand: &Option<f64>, wanted: &[Ordering]| {
        operand.is_none_or(|operand| {
            let Value::Number(number) = value else {
                return false;
            };
            compare_to_float(number, operand).is_some_and(|ordering| wanted.contains(&ordering))
        })
    };
    compares(gt, &[Ordering::Greater])
        && compares(lt, &[Ordering::Less])
        && compares(gte, &[Ordering::Greater, Ordering::Equal])
        && compares(lte, &[Ordering::Less, Ordering::Equal])
}

/// The text that string operators look at: strings as they are, anything else as compact JSON with
/// its keys sorted.
///
/// ```
/// use proofhouse_oatf::coerce_to_text;
/// use serde_json::json;
/// assert_eq!(coerce_to_text(&json!({"b": [1, null], "a": "x"})), r#"{"a":"x","b":[1,null]}"#);
/// assert_eq!(coerce_to_text(&json!("x")), "x");
/// ```
#[must_use]
pub fn coerce_to_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => {
            let mut out = String::new();
            write_sorted(&mut out, other);
            Cow::Owned(out)
        }
    }
}

fn write_sorted(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => write_json_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write_sorted(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => write_sorted_map(out, map),
    }
}

fn write_sorted_map(out: &mut String, map: &Map<String, Value>) {
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    out.push('{');
    for (position, (key, value)) in entries.into_iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write_json_string(out, key);
        out.push(':');
        write_sorted(out, value);
    }
    out.push('}');
}

fn write_json_string(out: &mut String, text: &str) {
    out.push('"');
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[copied..at]);
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
        copied = at + 1;
    }
    out.push_str(&text[copied..]);
    out.push('"');
}

/// Deep equality: numbers by mathematical value, objects whatever their key order.
///
/// ```
/// use proofhouse_oatf::deep_equal;
/// use serde_json::json;
/// assert!(deep_equal(&json!({"a": 1, "b": [2.0]}), &json!({"b": [2], "a": 1.0})));
/// assert!(!deep_equal(&json!(null), &json!(false)));
/// ```
#[must_use]
pub fn deep_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => numbers_equal(left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| deep_equal(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, l)| right.get(key).is_some_and(|r| deep_equal(l, r)))
        }
        (left, right) => left == right,
    }
}

fn numbers_equal(left: &Number, right: &Number) -> bool {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left == right,
        (None, None) => left.as_f64() == right.as_f64(),
        // A fraction, or something beyond 64 bits, never equals a whole number within them.
        _ => false,
    }
}

fn compare_to_float(number: &Number, operand: f64) -> Option<Ordering> {
    match (whole(number), whole_float(operand)) {
        (Some(number), Some(operand)) => Some(number.cmp(&operand)),
        _ => number.as_f64()?.partial_cmp(&operand),
    }
}

/// The number as an integer, if it is one; exact where a float would round.
fn whole(number: &Number) -> Option<i128> {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
        .or_else(|| number.as_f64().and_then(whole_float))
}

fn whole_float(value: f64) -> Option<i128> {
    const LIMIT: f64 = 18_446_744_073_709_551_616.0; // 2^64
    #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^64")]
    (value.fract() == 0.0 && value.abs() <= LIMIT).then_some(value as i128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn operators(build: impl FnOnce(&mut MatchCondition)) -> Condition {
        let mut condition = MatchCondition::default();
        build(&mut condition);
        Condition::Operators(Box::new(condition))
    }

    #[test]
    fn each_operator() {
        let contains = operators(|c| c.contains = Some("b".into()));
        assert!(evaluate_condition(&contains, &json!("abc")));
        assert!(!evaluate_condition(&contains, &json!("aBc")));
        let starts = operators(|c| c.starts_with = Some("[".into()));
        assert!(evaluate_condition(&starts, &json!([1])));
        assert!(!evaluate_condition(&starts, &json!("a[")));
        let ends = operators(|c| c.ends_with = Some("c".into()));
        assert!(evaluate_condition(&ends, &json!("abc")));
        assert!(!evaluate_condition(&ends, &json!("cab")));
        let regex = operators(|c| c.regex = Some("^b+$".into()));
        assert!(evaluate_condition(&regex, &json!("bb")));
        assert!(!evaluate_condition(&regex, &json!("abb")));
        let broken = operators(|c| c.regex = Some("[".into()));
        assert!(!evaluate_condition(&broken, &json!("[")));
        let any_of = operators(|c| c.any_of = Some(vec![json!("x"), json!({"a": 1})]));
        assert!(evaluate_condition(&any_of, &json!({"a": 1.0})));
        assert!(!evaluate_condition(&any_of, &json!("y")));
    }

    #[test]
    fn comparisons_at_their_edges() {
        for (build, at, below, above) in [
            (
                (|c: &mut MatchCondition| c.gt = Some(10.0)) as fn(&mut MatchCondition),
                false,
                false,
                true,
            ),
            (|c| c.lt = Some(10.0), false, true, false),
            (|c| c.gte = Some(10.0), true, false, true),
            (|c| c.lte = Some(10.0), true, true, false),
        ] {
            let condition = operators(build);
            assert_eq!(evaluate_condition(&condition, &json!(10)), at);
            assert_eq!(evaluate_condition(&condition, &json!(9.5)), below);
            assert_eq!(evaluate_condition(&condition, &json!(10.5)), above);
            assert!(!evaluate_condition(&condition, &json!("10")));
            assert!(!evaluate_condition(&condition, &json!(null)));
        }
    }

    #[test]
    fn big_numbers_compare_exactly() {
        let above = operators(|c| c.gt = Some(9_007_199_254_740_992.0));
        assert!(evaluate_condition(
            &above,
            &json!(9_007_199_254_740_993_i64)
        ));
        assert!(!evaluate_condition(
            &above,
            &json!(9_007_199_254_740_992_i64)
        ));
        assert!(evaluate_condition(&above, &json!(1e300)));
        assert!(!evaluate_condition(&above, &json!(-1e300)));
        assert!(!deep_equal(
            &json!(9_007_199_254_740_993_i64),
            &json!(9_007_199_254_740_992.0)
        ));
        assert!(deep_equal(&json!(u64::MAX), &json!(u64::MAX)));
        assert!(!deep_equal(
            &json!(u64::MAX),
            &json!(18_446_744_073_709_551_616.0)
        ));
        assert!(deep_equal(&json!(1e300), &json!(1e300)));
        assert!(!deep_equal(&json!(1e300), &json!(1)));
        assert!(deep_equal(&json!(0.5), &json!(0.5)) && !deep_equal(&json!(0.5), &json!(0)));
        assert!(deep_equal(&json!(-0.0), &json!(0)));
    }

    #[test]
    fn all_operators_must_hold() {
        let both = operators(|c| {
            c.contains = Some("passwd".into());
            c.starts_with = Some("Read".into());
        });
        assert!(evaluate_condition(&both, &json!("Read /etc/passwd")));
        assert!(!evaluate_condition(&both, &json!("Write /etc/passwd")));
        let mixed = operators(|c| {
            c.contains = Some("4".into());
            c.any_of = Some(vec![json!(42)]);
            c.gt = Some(40.0);
        });
        assert!(evaluate_condition(&mixed, &json!(42)));
        assert!(!evaluate_condition(&mixed, &json!(41)));
        let range = operators(|c| {
            c.gte = Some(1.0);
            c.lte = Some(2.0);
        });
        assert!(evaluate_condition(&range, &json!(2)) && !evaluate_condition(&range, &json!(3)));
    }

    #[test]
    fn deep_equality() {
        for (left, right, equal) in [
            (json!([1, 2]), json!([1, 2]), true),
            (json!([1, 2]), json!([2, 1]), false),
            (json!([1]), json!([1, 1]), false),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
            (json!({"a": 1}), json!({"b": 1}), false),
            (json!(null), json!(null), true),
            (json!("1"), json!(1), false),
            (json!(true), json!(1), false),
        ] {
            assert_eq!(deep_equal(&left, &right), equal, "{left} {right}");
        }
    }

    #[test]
    fn every_escape_is_that_of_json() {
        let value = json!(["\"\\\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}é", "a\nb\tc", "plain"]);
        assert_eq!(coerce_to_text(&value), value.to_string());
    }

    proptest! {
        #[test]
        fn coerced_strings_are_json_strings(text in any::<String>()) {
            let value = json!([text]);
            prop_assert_eq!(coerce_to_text(&value).into_owned(), serde_json::to_string(&value).unwrap());
        }
    }
}
