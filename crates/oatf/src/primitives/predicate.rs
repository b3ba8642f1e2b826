//! Predicates: conditions on the fields of a value, all of which must hold.

use proofhouse_expr::re2::MatchBudget;
use serde_json::Value;

use super::{evaluate_condition_within, resolve_simple_path, within_depth};
use crate::error::EvaluationError;
use crate::model::{Condition, MatchEntry, MatchPredicate};

/// Whether every entry of `predicate` holds for `value`; an empty predicate does.
///
/// ```
/// use proofhouse_oatf::{Fragment, MatchPredicate, evaluate_predicate};
/// use serde_json::json;
/// let predicate = MatchPredicate::from_value(&json!({
///     "name": "calc", "arguments.token": {"exists": false},
/// })).unwrap();
/// assert!(evaluate_predicate(&predicate, &json!({"name": "calc", "arguments": {}})));
/// ```
#[must_use]
pub fn evaluate_predicate(predicate: &MatchPredicate, value: &Value) -> bool {
    evaluate_predicate_within(predicate, value, &mut MatchBudget::default()).unwrap_or(false)
}

/// As [`evaluate_predicate`], within a time that the caller gives.
///
/// ```
/// use proofhouse_oatf::{MatchBudget, MatchCondition, MatchPredicate, evaluate_predicate_within};
/// use serde_json::json;
/// use std::time::Duration;
/// let predicate: MatchPredicate = [("name".to_owned(), MatchCondition::regex("a+b").into())].into_iter().collect();
/// let value = json!({"name": "aab"});
/// assert_eq!(evaluate_predicate_within(&predicate, &value, &mut MatchBudget::default()), Ok(true));
/// assert!(evaluate_predicate_within(&predicate, &value, &mut MatchBudget::new(Duration::ZERO)).is_err());
/// ```
///
/// # Errors
///
/// Returns `regex_timeout` when the time is over, and an error when a regular expression does not compile or a path is
/// too deep.
pub fn evaluate_predicate_within(
    predicate: &MatchPredicate,
    value: &Value,
    budget: &mut MatchBudget,
) -> Result<bool, EvaluationError> {
    for (path, entry) in predicate {
        within_depth(path)?;
        if !holds(entry, resolve_simple_path(path, value), budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holds(
    entry: &MatchEntry,
    resolved: Option<&Value>,
    budget: &mut MatchBudget,
) -> Result<bool, EvaluationError> {
    match (entry, resolved) {
        (Condition::Operators(operators), None) => {
            Ok(operators.exists == Some(false) && !operators.inspects_value())
        }
        (Condition::Equals(_), None) => Ok(false),
        (Condition::Operators(operators), Some(_)) if operators.only_exists() => {
            Ok(operators.exists == Some(true))
        }
        (Condition::Operators(operators), Some(_)) if operators.exists == Some(false) => Ok(false),
        (entry, Some(value)) => evaluate_condition_within(entry, value, budget),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fragment;
    use serde_json::json;

    #[test]
    fn entries_are_anded_and_exists_is_about_presence() {
        for (predicate, value, expected) in [
            (json!({}), json!(1), true),
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 2}), true),
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), false),
            (json!({"a": null}), json!({}), false),
            (json!({"a": null}), json!({"a": null}), true),
            (json!({"": {"contains": "x"}}), json!("axb"), true),
            (json!({"a": {"exists": true}}), json!({"a": null}), true),
            (json!({"a": {"exists": true}}), json!({}), false),
            (json!({"a": {"exists": false}}), json!({}), true),
            (json!({"a": {"exists": false}}), json!({"a": null}), false),
            (
                json!({"a": {"exists": false, "contains": "x"}}),
                json!({}),
                false,
            ),
            (
                json!({"a": {"exists": false, "contains": "x"}}),
                json!({"a": "x"}),
                false,
            ),
            (
                json!({"a": {"exists": true, "contains": "x"}}),
                json!({"a": "x"}),
                true,
            ),
            (
                json!({"a": {"exists": true, "contains": "x"}}),
                json!({"a": "y"}),
                false,
            ),
        ] {
            let parsed = MatchPredicate::from_value(&predicate).unwrap();
            assert_eq!(
                evaluate_predicate(&parsed, &value),
                expected,
                "{predicate} {value}"
            );
        }
    }
}
