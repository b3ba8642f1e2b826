//! The modern envelope: what every request carries in `_meta`, and the headers that mirror it.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

/// The version of the modern era that we speak.
pub(super) const MODERN: &str = "2026-07-28";
/// The version of the legacy era that we ask for.
pub(super) const LEGACY: &str = "2025-11-25";

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// Tools whose headers are remembered; the list comes from the server.
const MAX_TOOLS: usize = 1_000;
/// Headers of one tool.
const MAX_TOOL_HEADERS: usize = 64;
/// How deep properties with headers may be.
const MAX_DEPTH: usize = 16;

/// Puts the envelope into parameters; what the document wrote into `_meta` stays. Parameters that
/// are no object are left as the document has them.
pub(super) fn wrap(
    params: Option<&Value>,
    version: &str,
    capabilities: &Value,
    info: &Value,
) -> Value {
    let mut params = match params {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(other) => return other.clone(),
    };
    let meta = params
        .entry("_meta")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(meta) = meta {
        for (key, value) in [
            (PROTOCOL_VERSION, Value::from(version)),
            (CLIENT_CAPABILITIES, capabilities.clone()),
            (CLIENT_INFO, info.clone()),
        ] {
            meta.entry(key).or_insert(value);
        }
    }
    Value::Object(params)
}

/// The headers of a modern message.
pub(super) fn headers(
    method: &str,
    params: &Value,
    version: &str,
    tools: &ToolHeaders,
) -> Vec<(String, String)> {
    // The header must say what the envelope says, and the document may have written that.
    let told = params
        .get("_meta")
        .and_then(|meta| meta.get(PROTOCOL_VERSION));
    let version = told.and_then(Value::as_str).unwrap_or(version);
    let mut headers = vec![
        ("mcp-protocol-version".to_owned(), version.to_owned()),
        ("mcp-method".to_owned(), encode(method)),
    ];
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        method if method.starts_with("tasks/") => "taskId",
        _ => return headers,
    };
    if let Some(name) = params.get(key).and_then(Value::as_str) {
        headers.push(("mcp-name".to_owned(), encode(name)));
        if method == "tools/call" {
            tools.add(name, params.get("arguments"), &mut headers);
        }
    }
    headers
}

/// A value as a header carries it: as it is where that is safe, in base64 otherwise.
fn encode(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if is_plain && value.trim() == value && !looks_encoded {
        return value.to_owned();
    }
    format!("=?base64?{}?=", base64(value.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |position: usize| u32::from(group.get(position).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            if position <= group.len() {
                let index = bits >> (18 - 6 * position) & 63;
                text.push(char::from(ALPHABET[index as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// Which arguments of which tools are mirrored in headers.
#[derive(Debug, Default)]
pub(super) struct ToolHeaders(HashMap<String, Vec<(Vec<String>, String)>>);

impl ToolHeaders {
    /// Learns from the result of `tools/list`. A tool whose headers break the rules has none.
    pub(super) fn learn(&mut self, result: &Value) {
        let tools = result.get("tools").and_then(Value::as_array);
        for tool in tools.into_iter().flatten() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else {
                continue;
            };
            let mut found = Vec::new();
            let schema = tool.get("inputSchema").unwrap_or(&Value::Null);
            let is_valid = collect(schema, &mut Vec::new(), &mut found) && are_unique(&found);
            if is_valid && !found.is_empty() && self.0.len() < MAX_TOOLS {
                self.0.insert(name.to_owned(), found);
            } else {
                self.0.remove(name);
            }
        }
    }

    fn add(&self, tool: &str, arguments: Option<&Value>, headers: &mut Vec<(String, String)>) {
        let (Some(mirrored), Some(arguments)) = (self.0.get(tool), arguments) else {
            return;
        };
        for (path, name) in mirrored {
            let value = path.iter().try_fold(arguments, |value, key| value.get(key));
            let text = match value {
                Some(Value::String(text)) => encode(text),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
                _ => continue,
            };
            headers.push((format!("mcp-param-{name}"), text));
        }
    }
}

/// Finds the properties with headers; `false` when one of them may not have one.
fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    if path.len() >= MAX_DEPTH {
        return true;
    }
    for (key, property) in properties.into_iter().flatten() {
        path.push(key.clone());
        if let Some(header) = property.get("x-mcp-header") {
            let kind = property.get("type").and_then(Value::as_str);
            let is_primitive = matches!(kind, Some("string" | "integer" | "boolean"));
            match header.as_str() {
                Some(name) if is_primitive && is_token(name) && found.len() < MAX_TOOL_HEADERS => {
                    found.push((path.clone(), name.to_owned()));
                }
                _ => return false,
            }
        }
        if !collect(property, path, found) {
            return false;
        }
        path.pop();
    }
    true
}

fn is_token(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= 100 && name.bytes().all(is_allowed)
}

fn are_unique(found: &[(Vec<String>, String)]) -> bool {
    let mut seen = HashSet::new();
    let mut names = found.iter().map(|(_, name)| name.to_ascii_lowercase());
    names.all(|name| seen.insert(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_plain_where_that_is_safe() {
        for (value, header) in [
            ("us west 1", "us west 1"),
            ("", ""),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("世", "=?base64?5LiW?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ] {
            assert_eq!(encode(value), header);
        }
    }

    #[test]
    fn the_envelope_leaves_what_the_document_wrote() {
        let (capabilities, info) = (json!({"roots": {}}), json!({"name": "c"}));
        let wrapped = wrap(None, MODERN, &capabilities, &info);
        assert_eq!(wrapped["_meta"][PROTOCOL_VERSION], MODERN);
        let own = json!({"name": "x", "_meta": {PROTOCOL_VERSION: "1999", "progressToken": 1}});
        let wrapped = wrap(Some(&own), MODERN, &capabilities, &info);
        assert_eq!(wrapped["_meta"][PROTOCOL_VERSION], "1999");
        assert_eq!(wrapped["_meta"][CLIENT_INFO], info);
        assert_eq!(wrapped["_meta"]["progressToken"], 1);
        let headers = headers("tools/call", &wrapped, MODERN, &ToolHeaders::default());
        let expected = [
            ("mcp-protocol-version", "1999"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "x"),
        ];
        assert_eq!(headers, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(
            wrap(Some(&json!([1])), MODERN, &capabilities, &info),
            json!([1])
        );
    }

    #[test]
    fn arguments_are_mirrored_as_the_schema_says() {
        let property = |kind: &str, header: &str| json!({"type": kind, "x-mcp-header": header});
        let tool = |name: &str, properties: Value| json!({"name": name, "inputSchema": {"type": "object", "properties": properties}});
        let mut tools = ToolHeaders::default();
        tools.learn(&json!({"tools": [
            tool("good", json!({
                "region": property("string", "Region"),
                "count": property("integer", "Count"),
                "on": property("boolean", "On"),
                "deep": {"type": "object", "properties": {"in": property("string", "In")}},
                "plain": {"type": "string"},
            })),
            tool("twice", json!({"a": property("string", "X"), "b": property("string", "x")})),
            tool("number", json!({"a": property("number", "X")})),
            tool("space", json!({"a": property("string", "a b")})),
            7,
        ]}));
        let mut headers = Vec::new();
        let arguments =
            json!({"region": "é", "count": 3, "on": null, "deep": {"in": "x"}, "plain": "y"});
        tools.add("good", Some(&arguments), &mut headers);
        let expected = [
            ("mcp-param-Region", "=?base64?w6k=?="),
            ("mcp-param-Count", "3"),
            ("mcp-param-In", "x"),
        ];
        assert_eq!(headers, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        for tool in ["twice", "number", "space", "unknown"] {
            headers.clear();
            tools.add(tool, Some(&json!({"a": 1, "b": 2})), &mut headers);
            assert!(headers.is_empty(), "{tool}");
        }
    }
}
