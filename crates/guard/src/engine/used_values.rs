//! The values that calls of a session had in each argument: the action allow list, as rules of a policy see it.

use proofhouse_expr::allow_list::{Addition, AllowList};
use serde_json::Value;

/// How many arguments are known by name.
const MAX_NAMES: usize = 1000;

/// How long the name of an argument may be.
const MAX_NAME: usize = 256;

/// How many bytes of names and values are kept. What is behind it is not in the list, as if no call had it.
const MAX_BYTES: usize = 1 << 20;

/// The values by the names of arguments.
#[derive(Debug, Default)]
pub(super) struct UsedValues {
    list: AllowList,
    names: usize,
    bytes: usize,
}

impl UsedValues {
    /// A call with these arguments passed.
    pub(super) fn add(&mut self, arguments: &Value) {
        for (name, value) in arguments.as_object().into_iter().flatten() {
            let is_new = self.list.values(name).is_empty();
            let size = value.to_string().len() + if is_new { name.len() } else { 0 };
            let is_too_much = self.bytes + size > MAX_BYTES
                || name.len() > MAX_NAME
                || is_new && self.names >= MAX_NAMES;
            if !is_too_much && self.list.add(name, value) == Addition::Added {
                self.bytes += size;
                self.names += usize::from(is_new);
            }
        }
    }

    /// How many bytes are kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// As expressions see it.
    pub(super) fn value(&self) -> Value {
        let entries = self.list.entries();
        entries
            .map(|(name, entry)| (name.to_owned(), Value::from(entry.values().to_vec())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_stops_growing() {
        let mut used = UsedValues::default();
        used.add(&json!({"to": "ada", "cc": null}));
        used.add(&json!(["no", "names"]));
        assert_eq!(used.value(), json!({"to": ["ada"]}));
        for number in 0..20_000 {
            let name = format!("name-{number}");
            used.add(&json!({"to": format!("{number:0>200}"), name: 1}));
        }
        assert!(used.bytes() <= MAX_BYTES && used.names <= MAX_NAMES);
        let last = format!("{:0>200}", 19_999);
        assert!(!used.list.values("to").contains(&json!(last)));
    }
}
