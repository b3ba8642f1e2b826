//! Reads messages and refuses what two readers could read differently: a key that comes twice, of which one reader takes the first
//! and another the last, and a member of the protocol in other letters, which readers that ignore case take for it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The members of a message that decide what it is.
const MEMBERS: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];

/// The parameters of MCP that decide what is judged.
const PARAMS: &[&str] = &["name", "arguments", "uri", "cursor", "taskId", "requestId"];

/// The members of results of MCP that decide what is judged.
const RESULT: &[&str] = &[
    "tools",
    "prompts",
    "resourceTemplates",
    "instructions",
    "nextCursor",
    "content",
    "contents",
    "messages",
    "structuredContent",
    "isError",
    "task",
];

/// The members of messages, tasks and events of A2A that decide what is judged, in both generations.
const A2A: &[&str] = &[
    "message",
    "configuration",
    "pushNotificationConfig",
    "taskPushNotificationConfig",
    "parts",
    "text",
    "data",
    "file",
    "raw",
    "url",
    "status",
    "artifacts",
    "artifact",
    "history",
    "task",
    "statusUpdate",
    "artifactUpdate",
    "metadata",
];

/// How deep members of A2A are looked at; what is read is not nested deeper.
const MAX_DEPTH: usize = 128;

/// Members of A2A below which names are one's own.
const OWN_NAMES: &[&str] = &["metadata", "data"];

/// Reads JSON in which no key comes twice in one object.
pub(super) fn read(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = UniqueKeys.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// A member of a JSON-RPC message that is one of its own in other letters, if there is any.
pub(super) fn twin_of_rpc(message: &Value) -> Option<&str> {
    twin(message, MEMBERS)
}

/// The same for parameters and results of MCP.
pub(super) fn twin_of_mcp(message: &Value) -> Option<&str> {
    let below = |member: &str, names| twin(message.get(member)?, names);
    below("params", PARAMS).or_else(|| below("result", RESULT))
}

/// The same for parameters and results of A2A.
pub(super) fn twin_of_a2a(message: &Value) -> Option<&str> {
    fn below(value: &Value, depth: usize) -> Option<&str> {
        if depth == 0 {
            return None;
        }
        match value {
            Value::Array(items) => items.iter().find_map(|item| below(item, depth - 1)),
            Value::Object(members) => twin(value, A2A).or_else(|| {
                let mut members = members.iter();
                members.find_map(|(key, item)| {
                    let is_own = OWN_NAMES.contains(&key.as_str());
                    (!is_own).then(|| below(item, depth - 1))?
                })
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
    }
    let below = |member: &str| below(message.get(member)?, MAX_DEPTH);
    below("params").or_else(|| below("result"))
}

/// A copy of a text in which every half of a character, written as an escape of JSON, is a replacement character; nothing where
/// there is none.
pub(super) fn with_whole_characters(text: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let digits = str::from_utf8(digits).ok()?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    let (mut copy, mut copied, mut at) = (Vec::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', text.get(at..)?) {
        at += found;
        at += match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                copy.extend_from_slice(&text[copied..at]);
                copy.extend_from_slice("\u{fffd}".as_bytes());
                copied = at + 6;
                6
            }
            // What is escaped is no backslash that begins another escape.
            _ => 2,
        };
    }
    if copied == 0 {
        return None;
    }
    copy.extend_from_slice(&text[copied..]);
    Some(copy)
}

fn twin<'v>(value: &'v Value, names: &[&str]) -> Option<&'v str> {
    let mut keys = value.as_object()?.keys();
    let is_twin = |key: &&String| {
        names
            .iter()
            .any(|name| key.as_str() != *name && is_folded(key, name))
    };
    keys.find(is_twin).map(String::as_str)
}

/// Whether a key is a name in any letters, as readers that ignore case fold them.
fn is_folded(key: &str, name: &str) -> bool {
    let mut key = key.chars().map(|c| match c {
        'ſ' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    });
    let mut name = name.chars().map(|c| c.to_ascii_lowercase());
    loop {
        match (key.next(), name.next()) {
            (None, None) => return true,
            (one, other) if one == other => {}
            _ => return false,
        }
    }
}

/// Reads a value as [`Value`] is read, and refuses repeated keys.
struct UniqueKeys;

impl<'de> DeserializeSeed<'de> for UniqueKeys {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(UniqueKeys)? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let value = members.next_value_seed(UniqueKeys)?;
            if read.insert(key, value).is_some() {
                return Err(A::Error::custom("a key comes twice in one object"));
            }
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_that_comes_twice_is_refused_at_any_depth() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"[{"b":{"a":1,"c":2,"\u0061":3}}]"#,
            r#"{"":1,"":2}"#,
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        let text = r#"{"a":{"a":[1,-2,3.5,null,true,"x\n"]},"b":{"a":{}}}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read(text.as_bytes()).unwrap(), value);
        let deep = "[".repeat(100_000);
        assert!(read(deep.as_bytes()).is_err());
        assert!(read(b"{} x").is_err());
    }

    #[test]
    fn members_in_other_letters_are_twins() {
        for (message, name) in [
            (json!({"method": "x", "Method": "y"}), Some("Method")),
            (json!({"paramſ": {}}), Some("paramſ")),
            (
                json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {}}),
                None,
            ),
            (json!({"extra": 1, "resul": 2, "results": 3}), None),
        ] {
            assert_eq!(twin_of_rpc(&message), name, "{message}");
        }
        for (message, name) in [
            (json!({"params": {"name": "a", "Name": "b"}}), Some("Name")),
            (json!({"result": {"Tools": []}}), Some("Tools")),
            (json!({"params": {"arguments": {"Name": 1}}}), None),
        ] {
            assert_eq!(twin_of_mcp(&message), name, "{message}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_others_read(text in "[\\[\\]{}\",:0-9a-b.e\\\\ -]{0,40}") {
            let others: Option<Value> = serde_json::from_str(&text).ok();
            if let Ok(value) = read(text.as_bytes()) {
                prop_assert_eq!(Some(value), others);
            }
        }
    }
}
