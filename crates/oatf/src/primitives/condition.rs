//! Conditions on a resolved value: coercion, comparison and deep equality.

use std::borrow::Cow;
use std::cmp::Ordering;

use proofhouse_expr::re2::{MatchBudget, Re2Pattern, RegexTimeout};
use serde_json::{Number, Value};

use super::json::write_json;
use crate::error::{EvaluationError, EvaluationErrorKind};
use crate::model::{Condition, MatchCondition, RegexPattern};

/// Whether `value` satisfies `condition`.
///
/// `exists` is not looked at here: it is about whether a path resolved, which only
/// [`evaluate_predicate`](crate::evaluate_predicate) and
/// [`evaluate_pattern`](crate::evaluate_pattern) know. A regular expression that does not compile, or that takes longer
/// than 100 ms, matches nothing; [`validate`](crate::validate) reports the one, and
/// [`evaluate_condition_within`] tells of both.
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
    evaluate_condition_within(condition, value, &mut MatchBudget::default()).unwrap_or(false)
}

/// As [`evaluate_condition`], within a time that the caller gives, which several conditions may share.
///
/// ```
/// use proofhouse_oatf::{Condition, MatchBudget, evaluate_condition_within};
/// use serde_json::json;
/// let budget = &mut MatchBudget::default();
/// assert_eq!(evaluate_condition_within(&Condition::Equals(json!(42)), &json!(42.0), budget), Ok(true));
/// ```
///
/// # Errors
///
/// Returns `regex_timeout` when the time is over, and an error when the regular expression does not compile.
pub fn evaluate_condition_within(
    condition: &Condition,
    value: &Value,
    budget: &mut MatchBudget,
) -> Result<bool, EvaluationError> {
    match condition {
        Condition::Equals(expected) => Ok(deep_equal(expected, value)),
        Condition::Operators(operators) => operators_hold(operators, value, budget),
    }
}

/// The error of what cannot be evaluated as it is written.
pub(crate) fn unusable(message: impl Into<String>) -> EvaluationError {
    EvaluationError::new(EvaluationErrorKind::UnsupportedMethod, message)
}

/// The compiled form of a regular expression.
pub(crate) fn usable(regex: &RegexPattern) -> Result<&Re2Pattern, EvaluationError> {
    let unusable = |error| unusable(format!("the regular expression cannot be used: {error}"));
    regex.regex().map_err(unusable)
}

pub(super) fn timed_out(error: RegexTimeout) -> EvaluationError {
    EvaluationError::new(EvaluationErrorKind::RegexTimeout, error.to_string())
}

fn operators_hold(
    operators: &MatchCondition,
    value: &Value,
    budget: &mut MatchBudget,
) -> Result<bool, EvaluationError> {
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
    if operators.is_empty() {
        // No operator says when it would hold.
        return Ok(false);
    }
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
                .is_none_or(|suffix| text.ends_with(suffix.as_str()));
        if !holds {
            return Ok(false);
        }
        if let Some(regex) = regex {
            let found = usable(regex)?.is_match(&text, budget);
            if !found.map_err(timed_out)? {
                return Ok(false);
            }
        }
    }
    if any_of
        .as_ref()
        .is_some_and(|options| !options.iter().any(|o| deep_equal(o, value)))
    {
        return Ok(false);
    }
    let compares = |operand: &Option<f64>, wanted: &[Ordering]| {
        operand.is_none_or(|operand| {
            let Value::Number(number) = value else {
                return false;
            };
            compare_to_float(number, operand).is_some_and(|ordering| wanted.contains(&ordering))
        })
    };
    Ok(compares(gt, &[Ordering::Greater])
        && compares(lt, &[Ordering::Less])
        && compares(gte, &[Ordering::Greater, Ordering::Equal])
        && compares(lte, &[Ordering::Less, Ordering::Equal]))
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
            write_json(&mut out, other, true);
            Cow::Owned(out)
        }
    }
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
    // A stack of our own: values may be nested deeper than that of the thread is.
    let mut open = vec![(left, right)];
    while let Some(pair) = open.pop() {
        let equal = match pair {
            (Value::Number(left), Value::Number(right)) => numbers_equal(left, right),
            (Value::Array(left), Value::Array(right)) => {
                open.extend(left.iter().zip(right));
                left.len() == right.len()
            }
            (Value::Object(left), Value::Object(right)) => {
                left.len() == right.len()
                    && left.iter().all(|(key, left)| match right.get(key) {
                        Some(right) => {
                            open.push((left, right));
                            true
                        }
                        None => false,
                    })
            }
            (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::String(left), Value::String(right)) => left == right,
            _ => false,
        };
        if !equal {
            return false;
        }
    }
    true
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
}
