//! Dispatch lists: which entry answers a request.

use proofhouse_expr::re2::MatchBudget;
use serde_json::Value;

use super::evaluate_predicate_within;
use crate::error::EvaluationError;
use crate::model::ResponseEntry;

/// The first entry whose `when` holds for `request`, else the first entry without a `when`. A `when` that cannot be
/// evaluated in time gives no entry at all; [`select_response_within`] says why.
///
/// ```
/// use proofhouse_oatf::{Fragment, ResponseEntry, select_response};
/// use serde_json::json;
/// let entries = [json!({"content": "default"}), json!({"when": {"name": "calc"}, "content": "4"})]
///     .map(|entry| ResponseEntry::from_value(&entry).unwrap());
/// let chosen = select_response(&entries, &json!({"name": "calc"})).unwrap();
/// assert_eq!(chosen.content, Some(json!("4")));
/// ```
#[must_use]
pub fn select_response<'e>(
    entries: &'e [ResponseEntry],
    request: &Value,
) -> Option<&'e ResponseEntry> {
    select_response_within(entries, request, &mut MatchBudget::default()).unwrap_or_default()
}

/// As [`select_response`], within a time that the caller gives.
///
/// # Errors
///
/// Returns `regex_timeout` when the time is over, and an error when a regular expression does not compile or a path is
/// too deep: nobody knows then which entry would have answered.
pub fn select_response_within<'e>(
    entries: &'e [ResponseEntry],
    request: &Value,
    budget: &mut MatchBudget,
) -> Result<Option<&'e ResponseEntry>, EvaluationError> {
    for entry in entries {
        if let Some(when) = &entry.when
            && evaluate_predicate_within(when, request, budget)?
        {
            return Ok(Some(entry));
        }
    }
    Ok(entries.iter().find(|entry| entry.when.is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fragment;
    use serde_json::json;

    #[test]
    fn first_match_then_fallback_then_nothing() {
        let entries = [
            json!({"content": "fallback"}),
            json!({"when": {"n": {"gt": 1}}, "content": "above one"}),
            json!({"when": {"n": {"gt": 2}}, "content": "above two"}),
        ]
        .map(|entry| ResponseEntry::from_value(&entry).unwrap());
        let content = |entries: &[ResponseEntry], request: Value| {
            select_response(entries, &request).and_then(|entry| entry.content.clone())
        };
        assert_eq!(content(&entries, json!({"n": 3})), Some(json!("above one")));
        assert_eq!(content(&entries, json!({"n": 0})), Some(json!("fallback")));
        assert_eq!(content(&entries[1..], json!({"n": 0})), None);
        assert_eq!(content(&[], json!({})), None);
    }

    #[test]
    fn a_condition_that_takes_too_long_is_no_other_branch() {
        let entries = [
            json!({"when": {"text": {"regex": "1[01]{900}2"}}, "content": "armed"}),
            json!({"content": "harmless"}),
        ]
        .map(|entry| ResponseEntry::from_value(&entry).unwrap());
        let mut bits = 1_u64;
        let bit = |_| {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            if bits & 1 == 0 { '0' } else { '1' }
        };
        let text: String = (0..700_000).map(bit).collect();
        let request = json!({"text": text});
        let budget = &mut MatchBudget::default();
        let error = select_response_within(&entries, &request, budget).unwrap_err();
        assert_eq!(error.kind, crate::EvaluationErrorKind::RegexTimeout);
        assert_eq!(select_response(&entries, &request), None);
    }
}
