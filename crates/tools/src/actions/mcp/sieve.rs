//! The sieve: what is let through of the messages of a server, put into a form that the SDK can read.
//!
//! The SDK reads each message into fixed types and starts a task for each notification and request. A
//! server that gets one of a hundred tools wrong would lose all of them, and one that floods would fill
//! the memory. So both are dealt with before the SDK sees a message.

use std::sync::Mutex;
use std::time::Instant;

use proofhouse_protocol::mcp::McpNotification;
use rmcp::model::ServerJsonRpcMessage;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

/// How many requests of a server are answered at once; more are dropped until time has passed.
const REQUEST_BURST: f64 = 20.0;

/// How many requests of a server are answered per second in the long run. A server that asks whether
/// the client is there does so every few seconds.
const REQUESTS_PER_SECOND: f64 = 5.0;

/// Lets through what the client has a use for.
#[derive(Debug)]
pub(super) struct Sieve {
    /// Told when the server says that its list of tools has changed.
    changed: Notify,
    requests: Allowance,
}

impl Sieve {
    pub(super) fn new() -> Self {
        Self {
            changed: Notify::new(),
            requests: Allowance::new(REQUEST_BURST, REQUESTS_PER_SECOND),
        }
    }

    /// Waits for the list of tools to change. Changes in between count once.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Says that the list of tools may have changed.
    pub(super) fn poke(&self) {
        self.changed.notify_one();
    }

    /// Reads a message; nothing if it is none, or one that nobody waits for.
    pub(super) fn admit(&self, text: &[u8]) -> Option<ServerJsonRpcMessage> {
        serde_json::from_value(self.sift(text)?).ok()
    }

    /// The same as text, for where the SDK reads messages itself.
    pub(super) fn admit_text(&self, text: &[u8]) -> Option<String> {
        let message = self.sift(text)?;
        let text = message.to_string();
        let read = serde_json::from_value::<ServerJsonRpcMessage>(message);
        read.is_ok().then_some(text)
    }

    /// A message without what the SDK does not understand; nothing if it is none, or one that nobody waits for.
    fn sift(&self, text: &[u8]) -> Option<Value> {
        let Ok(Value::Object(mut message)) = serde_json::from_slice(text) else {
            return None;
        };
        match (message.get("method"), message.contains_key("id")) {
            (Some(_), true) if !self.requests.take() => return None,
            (Some(_), true) => {}
            (Some(method), false) => match method.as_str().and_then(McpNotification::parse) {
                Some(McpNotification::ToolsListChanged) => {
                    self.poke();
                    return None;
                }
                // The start and the end of a subscription; of everything else there is no use.
                Some(McpNotification::SubscriptionsAcknowledged | McpNotification::Cancelled)
                    if self.requests.take() => {}
                _ => return None,
            },
            (None, _) => {
                if let Some(Value::Object(result)) = message.get_mut("result") {
                    tidy(result);
                }
            }
        }
        Some(Value::Object(message))
    }
}

/// Whether a message is an answer, be it right or wrong.
pub(super) fn is_answer(message: &ServerJsonRpcMessage) -> bool {
    matches!(
        message,
        ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)
    )
}

/// Leaves of a result what is used of it, in the shape that it must have.
fn tidy(result: &mut Map<String, Value>) {
    if let Some(Value::Array(tools)) = result.get_mut("tools") {
        tools.retain_mut(tidy_tool);
        // How long it may be remembered does not matter: nothing is.
        keep(result, &["tools", "nextCursor", "resultType"]);
        keep_texts(result, &["nextCursor", "resultType"]);
        return;
    }
    let is_call = ["content", "structuredContent", "isError"]
        .iter()
        .any(|key| result.contains_key(*key));
    if is_call {
        match result.get_mut("content") {
            Some(Value::Array(parts)) => {
                for part in parts {
                    *part = tidy_part(part.take());
                }
            }
            Some(odd) => *odd = json!([tidy_part(odd.take())]),
            None => {}
        }
        if result.get("isError").is_some_and(|flag| !flag.is_boolean()) {
            result.shift_remove("isError");
        }
        keep(
            result,
            &["content", "structuredContent", "isError", "resultType"],
        );
        keep_texts(result, &["resultType"]);
        if result.is_empty() {
            result.insert("content".to_owned(), json!([]));
        }
        return;
    }
    // What a task came to is the result of a call.
    if result.contains_key("taskId")
        && let Some(Value::Object(result)) = result.get_mut("result")
    {
        tidy(result);
    }
}

/// Says whether it is a tool at all.
fn tidy_tool(tool: &mut Value) -> bool {
    let Some(tool) = tool.as_object_mut() else {
        return false;
    };
    if !tool.get("name").is_some_and(Value::is_string) {
        return false;
    }
    if !tool.get("inputSchema").is_some_and(Value::is_object) {
        tool.insert("inputSchema".to_owned(), json!({"type": "object"}));
    }
    if !tool.get("description").is_some_and(Value::is_string) {
        tool.shift_remove("description");
    }
    if !tool.get("outputSchema").is_some_and(Value::is_object) {
        tool.shift_remove("outputSchema");
    }
    keep(
        tool,
        &["name", "description", "inputSchema", "outputSchema"],
    );
    true
}

/// A part of a result as it should be; one that is something else becomes its JSON text.
fn tidy_part(mut part: Value) -> Value {
    let text = |part: &Value, key: &str| part.get(key).is_some_and(Value::is_string);
    let keys: &[&str] = match part.get("type").and_then(Value::as_str) {
        Some("text") if text(&part, "text") => &["type", "text"],
        Some("image" | "audio") if text(&part, "data") && text(&part, "mimeType") => {
            &["type", "data", "mimeType"]
        }
        Some("resource_link") if text(&part, "uri") && text(&part, "name") => {
            for key in ["description", "mimeType"] {
                if !text(&part, key)
                    && let Some(part) = part.as_object_mut()
                {
                    part.shift_remove(key);
                }
            }
            &["type", "uri", "name", "description", "mimeType"]
        }
        Some("resource") if is_resource(&part["resource"]) => {
            if let Some(resource) = part["resource"].as_object_mut() {
                if !resource.get("mimeType").is_some_and(Value::is_string) {
                    resource.shift_remove("mimeType");
                }
                keep(resource, &["uri", "mimeType", "text", "blob"]);
            }
            &["type", "resource"]
        }
        _ => {
            let text = match part {
                Value::String(text) => text,
                other => other.to_string(),
            };
            return json!({"type": "text", "text": text});
        }
    };
    if let Some(part) = part.as_object_mut() {
        keep(part, keys);
    }
    part
}

fn is_resource(resource: &Value) -> bool {
    let text = |key: &str| resource.get(key).is_some_and(Value::is_string);
    text("uri") && (text("text") != text("blob"))
}

fn keep(object: &mut Map<String, Value>, keys: &[&str]) {
    object.retain(|key, _| keys.contains(&key.as_str()));
}

/// Drops those of the fields that are no text.
fn keep_texts(object: &mut Map<String, Value>, keys: &[&str]) {
    object.retain(|key, value| !keys.contains(&key.as_str()) || value.is_string());
}

/// So many at once, and so many per second in the long run.
#[derive(Debug)]
pub(super) struct Allowance {
    burst: f64,
    per_second: f64,
    left: Mutex<(f64, Instant)>,
}

impl Allowance {
    pub(super) fn new(burst: f64, per_second: f64) -> Self {
        Self {
            burst,
            per_second,
            left: Mutex::new((burst, Instant::now())),
        }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&self) -> bool {
        let Ok(mut left) = self.left.lock() else {
            return false;
        };
        let now = Instant::now();
        let grown = now.duration_since(left.1).as_secs_f64() * self.per_second;
        left.0 = (left.0 + grown).min(self.burst);
        left.1 = now;
        if left.0 < 1.0 {
            return false;
        }
        left.0 -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rmcp::model::ServerResult;

    fn result(text: &Value) -> Option<ServerResult> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": text});
        match Sieve::new().admit(message.to_string().as_bytes())? {
            ServerJsonRpcMessage::Response(response) => Some(response.result),
            _ => None,
        }
    }

    #[test]
    fn one_odd_tool_does_not_cost_the_others() {
        let listed = result(&json!({"tools": [
            {"name": "good", "inputSchema": {"type": "object"}, "annotations": 7, "icons": "x"},
            {"name": "schema", "inputSchema": [1, 2], "outputSchema": true, "description": 4},
            {"name": 5}, "text", null,
        ], "nextCursor": 7, "protocolVersion": "x"}));
        let Some(ServerResult::ListToolsResult(listed)) = listed else {
            panic!("{listed:?}");
        };
        let names: Vec<&str> = listed.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["good", "schema"]);
        assert_eq!(listed.next_cursor, None);
    }

    #[test]
    fn odd_parts_become_text() {
        let called = result(&json!({"content": [
            {"type": "text", "text": "a", "annotations": "odd"},
            {"type": "text"}, {"type": "hologram", "data": 1}, 4,
            {"type": "resource", "resource": {"uri": "a:b"}},
        ], "isError": "yes", "messages": []}));
        let Some(ServerResult::CallToolResult(called)) = called else {
            panic!("{called:?}");
        };
        let content = serde_json::to_value(called.content).unwrap();
        let texts: Vec<&str> = content
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["text"].as_str().unwrap())
            .collect();
        assert_eq!(
            texts,
            [
                "a",
                r#"{"type":"text"}"#,
                r#"{"type":"hologram","data":1}"#,
                "4",
                r#"{"type":"resource","resource":{"uri":"a:b"}}"#
            ]
        );
        for odd in [
            json!({"isError": 1}),
            json!({"structuredContent": 4}),
            json!({"content": "x"}),
        ] {
            assert!(
                matches!(result(&odd), Some(ServerResult::CallToolResult(_))),
                "{odd}"
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Sieve::new().admit(&text);
        }

        /// Whatever a server says of its tools, those that are well-formed are found.
        #[test]
        fn odd_fields_never_hide_a_tool(key in "[a-z_A-Z]{1,12}", odd in odd_value()) {
            prop_assume!(key != "name" && key != "tools");
            let mut tool = json!({"name": "good", "inputSchema": {}});
            tool[&key] = odd.clone();
            let mut list = json!({"tools": [tool, odd]});
            list[&key] = odd;
            match result(&list) {
                Some(ServerResult::ListToolsResult(listed)) => prop_assert_eq!(&*listed.tools[0].name, "good"),
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }

    fn odd_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::vec(("[a-zA-Z]{1,8}", inner), 0..3)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn floods_are_dropped() {
        let sieve = Sieve::new();
        let ping = br#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
        let admitted = (0..1000).filter(|_| sieve.admit(ping).is_some()).count();
        assert!((20..100).contains(&admitted), "{admitted}");
        let log = br#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        assert!(sieve.admit(log).is_none());
        for garbage in [&b"{"[..], b"[]", b"null", b"\xff", b"{}", b"{\"id\":1}"] {
            assert!(sieve.admit(garbage).is_none(), "{garbage:?}");
        }
    }
}
