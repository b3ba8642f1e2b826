//! Allow lists: which values of a tool's parameters a task has used, so that events about others stay
//! out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Allowed;

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
/// Bytes of a value as JSON that is worth keeping: what names something is short, the content of a file is
/// not.
const MAX_VALUE_BYTES: usize = 4_096;

impl AllowList {
    /// Fixes a parameter to one value.
    pub fn seal(&mut self, tool: &str, name: &str, value: Value) {
        let entry = self.entry(tool, name);
        *entry = Entry::default();
        entry.push(value);
        entry.sealed = true;
    }

    /// Adds a value of a call that is carried out, unless the parameter is sealed. Tells whether it is new.
    pub fn add(&mut self, tool: &str, name: &str, value: &Value) -> bool {
        if value.is_null() || value.to_string().len() > MAX_VALUE_BYTES {
            return false;
        }
        let entry = self.entry(tool, name);
        !entry.sealed && entry.values.len() < MAX_VALUES && entry.push(value.clone())
    }

    /// Everything in it, to be kept and to be read with [`AllowList::from_iter`] again.
    pub fn entries(&self) -> impl Iterator<Item = Allowed> {
        self.tools.iter().flat_map(|(tool, names)| {
            names.iter().flat_map(move |(name, entry)| {
                entry.values.iter().map(move |value| Allowed {
                    tool: tool.clone(),
                    name: name.clone(),
                    value: value.clone(),
                    sealed: entry.sealed,
                })
            })
        })
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

impl FromIterator<Allowed> for AllowList {
    fn from_iter<T: IntoIterator<Item = Allowed>>(entries: T) -> Self {
        let mut list = Self::default();
        for entry in entries {
            match entry.sealed {
                true => list.seal(&entry.tool, &entry.name, entry.value),
                false => {
                    list.add(&entry.tool, &entry.name, &entry.value);
                }
            }
        }
        list
    }
}

impl Entry {
    fn push(&mut self, value: Value) -> bool {
        let is_new = self.known.insert(value.to_string());
        if is_new {
            self.values.push(value);
        }
        is_new
    }
}
