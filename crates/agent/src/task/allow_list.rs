//! The allow lists of a task: one for each tool that its agent names.

use std::collections::BTreeMap;

use proofhouse_tools::allow_list::{Addition, AllowList};
use serde_json::Value;

use super::AllowedValue;

/// The values of parameters that a task knows, per tool and name. A bound parameter is sealed: it has
/// its one value from the start and never another.
///
/// ```
/// use proofhouse_agent::task::TaskAllowList;
/// use serde_json::json;
///
/// let mut list = TaskAllowList::default();
/// list.seal("notes", "owner", json!("me"));
/// list.add("notes", "owner", &json!("someone else"));
/// list.add("notes", "path", &json!("a.txt"));
/// assert_eq!(list.values("notes", "owner"), [json!("me")]);
/// assert_eq!(list.values("notes", "path"), [json!("a.txt")]);
/// assert!(list.values("notes", "unknown").is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct TaskAllowList {
    tools: BTreeMap<String, AllowList>,
}

impl TaskAllowList {
    /// Fixes a parameter to one value.
    pub fn seal(&mut self, tool: &str, name: &str, value: Value) {
        self.tool(tool).seal(name, value);
    }

    /// Adds a value of a call that is carried out, unless the parameter is sealed. Tells whether it is new.
    pub fn add(&mut self, tool: &str, name: &str, value: &Value) -> bool {
        self.tool(tool).add(name, value) == Addition::Added
    }

    /// Everything in it, to be kept and to be read with [`TaskAllowList::from_iter`] again.
    pub fn entries(&self) -> impl Iterator<Item = AllowedValue> {
        self.tools.iter().flat_map(|(tool, list)| {
            list.entries().flat_map(move |(name, entry)| {
                entry.values().iter().map(move |value| AllowedValue {
                    tool: tool.clone(),
                    name: name.to_owned(),
                    value: value.clone(),
                    sealed: entry.is_sealed(),
                })
            })
        })
    }

    /// The values of a parameter, in the order they came.
    #[must_use]
    pub fn values(&self, tool: &str, name: &str) -> &[Value] {
        self.tools.get(tool).map_or(&[], |list| list.values(name))
    }

    fn tool(&mut self, tool: &str) -> &mut AllowList {
        self.tools.entry(tool.to_owned()).or_default()
    }
}

impl FromIterator<AllowedValue> for TaskAllowList {
    fn from_iter<T: IntoIterator<Item = AllowedValue>>(entries: T) -> Self {
        let mut list = Self::default();
        for entry in entries {
            if entry.sealed {
                list.seal(&entry.tool, &entry.name, entry.value);
            } else {
                list.add(&entry.tool, &entry.name, &entry.value);
            }
        }
        list
    }
}
