//! Predicates: conditions on the fields of a value, all of which must hold.

use serde_json::Value;

use super::{evaluate_condition, resolve_simple_path};
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
    predicate
        .entries
        .iter()
        .all(|(path, entry)| holds(entry, resolve_simple_path(path, value)))
}

fn holds(entry: &MatchEntry, resolved: Option<&Value>) -> bool {
    match (entry, resolved) {
        (Condition::Operators(operators), None) => {
            operators.exists == Some(false) && !operators.inspects_value()
        }
        (Condition::Equals(_), None) => false,
        (Condition::Operators(operators), Some(_)) if operators.exists == Some(false) => false,
        (entry, Some(value)) => evaluate_condition(entry, value),
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
