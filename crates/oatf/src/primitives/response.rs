//! Dispatch lists: which entry answers a request.

use serde_json::Value;

use super::evaluate_predicate;
use crate::model::ResponseEntry;

/// The first entry whose `when` holds for `request`, else the first entry without a `when`.
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
    entries
        .iter()
        .find(|entry| {
            entry
                .when
                .as_ref()
                .is_some_and(|when| evaluate_predicate(when, request))
        })
        .or_else(|| entries.iter().find(|entry| entry.when.is_none()))
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
}
