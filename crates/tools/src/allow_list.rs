//! The action allow list: which values of each parameter a task has used, so that events about others stay out.
//!
//! There is one rule for what it takes in, wherever a list is kept: a sealed parameter never grows, null is no
//! value, and a list has a limit in number and size.

use std::collections::{BTreeMap, HashSet};

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
/// use proofhouse_tools::allow_list::AllowList;
/// use serde_json::json;
///
/// let mut list = AllowList::default();
/// list.seal("owner", json!("acme"));
/// let call = json!({"owner": "other", "author": "alice"});
/// list.add_call(call.as_object().unwrap());
/// assert_eq!(list.values("owner"), [json!("acme")]);
/// assert_eq!(list.values("author"), [json!("alice")]);
/// assert!(list.values("repo").is_empty());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AllowList {
    entries: BTreeMap<String, AllowEntry>,
}

/// The values of one parameter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AllowEntry {
    values: Vec<Value>,
    /// The values as text, to find them by.
    known: HashSet<String>,
    sealed: bool,
}

/// What became of a value that was offered to an [`AllowList`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addition {
    /// It is new, and a store has to write it.
    Added,
    /// Nothing changed: it is known, it is null, or its parameter is sealed.
    Unchanged,
    /// It is too large, or one too many.
    LeftOut,
}

/// What a call added to an [`AllowList`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Added {
    /// The values that are new, by name; what a store has to write.
    pub values: Vec<(String, Value)>,
    /// The names whose value was not kept: too large, or one too many.
    pub left_out: Vec<String>,
}

impl AllowEntry {
    /// The values, in the order they came.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Whether an agent's binding fixed them, so that calls add nothing.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }
}

impl AllowList {
    /// Fixes a parameter to the value an agent binds it to, when the task starts.
    pub fn seal(&mut self, name: &str, value: Value) {
        let entry = AllowEntry {
            known: HashSet::from([value.to_string()]),
            values: vec![value],
            sealed: true,
        };
        self.entries.insert(name.to_owned(), entry);
    }

    /// Adds one value of a dispatched call. Sealed parameters stay as they are; null is no value.
    pub fn add(&mut self, name: &str, value: &Value) -> Addition {
        let entry = self.entries.get_mut(name);
        if value.is_null() || entry.as_ref().is_some_and(|entry| entry.sealed) {
            return Addition::Unchanged;
        }
        let text = value.to_string();
        match entry {
            Some(entry) if entry.known.contains(&text) => return Addition::Unchanged,
            Some(entry) if entry.values.len() >= MAX_VALUES => return Addition::LeftOut,
            Some(_) | None if text.len() > MAX_VALUE_BYTES => return Addition::LeftOut,
            Some(_) | None => {}
        }
        let entry = self.entries.entry(name.to_owned()).or_default();
        entry.known.insert(text);
        entry.values.push(value.clone());
        Addition::Added
    }

    /// Adds the resolved values of a dispatched call.
    pub fn add_call(&mut self, parameters: &Map<String, Value>) -> Added {
        let mut added = Added::default();
        for (name, value) in parameters {
            match self.add(name, value) {
                Addition::Added => added.values.push((name.clone(), value.clone())),
                Addition::LeftOut => added.left_out.push(name.clone()),
                Addition::Unchanged => {}
            }
        }
        added
    }

    /// The values of a parameter; none where no call had one.
    #[must_use]
    pub fn values(&self, name: &str) -> &[Value] {
        self.entries.get(name).map_or(&[], AllowEntry::values)
    }

    /// Whether a parameter is fixed by a binding.
    #[must_use]
    pub fn is_sealed(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(AllowEntry::is_sealed)
    }

    /// The parameters and their values.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &AllowEntry)> {
        let entries = self.entries.iter();
        entries.map(|(name, entry)| (name.as_str(), entry))
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
        let added = list.add_call(&call(&json!({"author": "alice", "n": 1, "none": null})));
        assert_eq!(added.values.len(), 2);
        list.add_call(&call(&json!({"author": "bob"})));
        let added = list.add_call(&call(&json!({"author": "alice"})));
        assert_eq!(added, Added::default());
        assert_eq!(list.values("author"), [json!("alice"), json!("bob")]);
        assert!(list.values("none").is_empty());
    }

    #[test]
    fn a_sealed_parameter_never_grows() {
        let mut list = AllowList::default();
        list.seal("owner", json!("acme"));
        assert_eq!(
            list.add_call(&call(&json!({"owner": "evil"}))),
            Added::default()
        );
        assert_eq!(list.values("owner"), [json!("acme")]);
        assert!(list.is_sealed("owner"));
    }

    #[test]
    fn what_is_too_much_is_left_out_and_told() {
        let mut list = AllowList::default();
        let long = "x".repeat(MAX_VALUE_BYTES + 1);
        let added = list.add_call(&call(&json!({"text": long, "list": [long], "id": 1})));
        assert_eq!(added.left_out, ["text", "list"]);
        assert_eq!(list.entries().count(), 1);
        for number in 0..=MAX_VALUES {
            list.add_call(&call(&json!({"id": number})));
        }
        assert_eq!(list.values("id").len(), MAX_VALUES);
        assert_eq!(list.add_call(&call(&json!({"id": "new"}))).left_out, ["id"]);
    }
}
