//! Allow lists: which values of a tool's parameters a task has used, so that events about others stay
//! out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The values of parameters that a task knows, per tool and name. A bound parameter is sealed: it has
/// its one value from the start and never another.
///
/// ```
/// use proofhouse_agent::task::AllowList;
/// use serde_json::json;
///
/// let mut list = AllowList::default();
/// list.seal("notes", "owner", json!("me"));
/// list.add("notes", "owner", &json!("someone else"));
/// list.add("notes", "path", &json!("a.txt"));
/// assert_eq!(list.values("notes", "owner"), [json!("me")]);
/// assert_eq!(list.values("notes", "path"), [json!("a.txt")]);
/// assert!(list.values("notes", "unknown").is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct AllowList {
    tools: BTreeMap<String, BTreeMap<String, Entry>>,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    values: Vec<Value>,
    /// The values as text, to find them by.
    known: BTreeSet<String>,
    sealed: bool,
}

/// Values of one parameter beyond which no more are taken: a task that runs for months must not grow
/// without end.
const MAX_VALUES: usize = 10_000;

impl AllowList {
    /// Fixes a parameter to one value.
    pub fn seal(&mut self, tool: &str, name: &str, value: Value) {
        let entry = self.entry(tool, name);
        *entry = Entry::default();
        entry.push(value);
        entry.sealed = true;
    }

    /// Adds a value of a call that is carried out, unless the parameter is sealed.
    pub fn add(&mut self, tool: &str, name: &str, value: &Value) {
        let entry = self.entry(tool, name);
        if !entry.sealed && entry.values.len() < MAX_VALUES {
            entry.push(value.clone());
        }
    }

    /// The values of a parameter, in the order they came.
    #[must_use]
    pub fn values(&self, tool: &str, name: &str) -> &[Value] {
        let entry = self.tools.get(tool).and_then(|tool| tool.get(name));
        entry.map_or(&[], |entry| &entry.values)
    }

    fn entry(&mut self, tool: &str, name: &str) -> &mut Entry {
        let tool = self.tools.entry(tool.to_owned()).or_default();
        tool.entry(name.to_owned()).or_default()
    }
}

impl Entry {
    fn push(&mut self, value: Value) {
        if self.known.insert(value.to_string()) {
            self.values.push(value);
        }
    }
}
