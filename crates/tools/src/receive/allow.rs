//! The allow list of one task and one tool: which values of each parameter its events may carry.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many values one parameter may have. A model that calls an action in a loop must not make the list,
/// which is stored with every call, grow without end.
pub const MAX_VALUES: usize = 10_000;
/// How many bytes a value may have as JSON. What identifies something is short; a file's content is not
/// worth keeping.
pub const MAX_VALUE_BYTES: usize = 4_096;

/// The values by parameter name: one namespace over the parameters of the tool, its actions and events.
///
/// ```
/// use proofhouse_tools::receive::AllowList;
/// use serde_json::json;
///
/// let mut list = AllowList::default();
/// list.seal("owner", json!("acme"));
/// let call = json!({"owner": "other", "author": "alice"});
/// list.add(call.as_object().unwrap());
/// assert_eq!(list.values("owner"), [json!("acme")]);
/// assert_eq!(list.values("author"), [json!("alice")]);
/// assert!(list.values("repo").is_empty());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AllowList {
    entries: BTreeMap<String, AllowEntry>,
}

/// The values of one parameter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AllowEntry {
    /// The values, in the order they came.
    pub values: Vec<Value>,
    /// Whether an agent's binding fixed them, so that calls add nothing.
    #[serde(default)]
    pub sealed: bool,
}

/// What a call added to an [`AllowList`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Added {
    /// The values that are new, by name; what a store has to write.
    pub values: Vec<(String, Value)>,
    /// The names whose value was not kept: too large, or one too many.
    pub left_out: Vec<String>,
}

impl AllowList {
    /// Fixes a parameter to the value an agent binds it to, when the task starts.
    pub fn seal(&mut self, name: &str, value: Value) {
        let entry = AllowEntry {
            values: vec![value],
            sealed: true,
        };
        self.entries.insert(name.to_owned(), entry);
    }

    /// Adds the resolved values of a dispatched call. Sealed parameters stay as they are; null is no value.
    pub fn add(&mut self, parameters: &Map<String, Value>) -> Added {
        let mut added = Added::default();
        for (name, value) in parameters {
            let entry = self.entries.entry(name.clone()).or_default();
            if entry.sealed || value.is_null() || entry.values.contains(value) {
                continue;
            }
            if entry.values.len() >= MAX_VALUES || is_large(value) {
                added.left_out.push(name.clone());
                continue;
            }
            entry.values.push(value.clone());
            added.values.push((name.clone(), value.clone()));
        }
        self.entries.retain(|_, entry| !entry.values.is_empty());
        added
    }

    /// The values of a parameter; none where no call had one.
    #[must_use]
    pub fn values(&self, name: &str) -> &[Value] {
        self.entries.get(name).map_or(&[], |entry| &entry.values)
    }

    /// Whether a parameter is fixed by a binding.
    #[must_use]
    pub fn is_sealed(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.sealed)
    }

    /// The parameters and their values.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &AllowEntry)> {
        let entries = self.entries.iter();
        entries.map(|(name, entry)| (name.as_str(), entry))
    }
}

fn is_large(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() > MAX_VALUE_BYTES,
        Value::Array(_) | Value::Object(_) => value.to_string().len() > MAX_VALUE_BYTES,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn values_grow_from_calls_and_each_is_kept_once() {
        let mut list = AllowList::default();
        let added = list.add(&call(&json!({"author": "alice", "n": 1, "none": null})));
        assert_eq!(added.values.len(), 2);
        list.add(&call(&json!({"author": "bob"})));
        let added = list.add(&call(&json!({"author": "alice"})));
        assert_eq!(added, Added::default());
        assert_eq!(list.values("author"), [json!("alice"), json!("bob")]);
        assert!(list.values("none").is_empty());
    }

    #[test]
    fn a_sealed_parameter_never_grows() {
        let mut list = AllowList::default();
        list.seal("owner", json!("acme"));
        assert_eq!(list.add(&call(&json!({"owner": "evil"}))), Added::default());
        assert_eq!(list.values("owner"), [json!("acme")]);
        assert!(list.is_sealed("owner"));
    }

    #[test]
    fn what_is_too_much_is_left_out_and_told() {
        let mut list = AllowList::default();
        let long = "x".repeat(MAX_VALUE_BYTES + 1);
        let added = list.add(&call(&json!({"text": long, "list": [long], "id": 1})));
        assert_eq!(added.left_out, ["text", "list"]);
        assert_eq!(list.entries().count(), 1);
        for number in 0..=MAX_VALUES {
            list.add(&call(&json!({"id": number})));
        }
        assert_eq!(list.values("id").len(), MAX_VALUES);
        assert_eq!(list.add(&call(&json!({"id": "new"}))).left_out, ["id"]);
    }

    #[test]
    fn it_is_stored_as_plain_json() {
        let mut list = AllowList::default();
        list.seal("owner", json!("acme"));
        let stored = serde_json::to_value(&list).unwrap();
        assert_eq!(
            stored,
            json!({"owner": {"values": ["acme"], "sealed": true}})
        );
        assert_eq!(serde_json::from_value::<AllowList>(stored).unwrap(), list);
    }
}
