//! Mirroring: over HTTP, headers of the stateless revisions repeat what the body says, so that those on the way need
//! not read it. Clients write them, servers check them.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::header::{self, Lookup};
use super::{McpMethod, meta};
use crate::base64;

/// Tools whose headers are remembered; the list comes from the server.
const MAX_TOOLS: usize = 1_000;
/// Headers of one tool.
const MAX_TOOL_HEADERS: usize = 64;
/// How deep properties with headers may be.
const MAX_DEPTH: usize = 16;

/// What stands around a value in base64.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// A value as a header carries it: as it is where that is safe, in base64 otherwise.
///
/// ```
/// use proofhouse_protocol::mcp::encode_header;
///
/// assert_eq!(encode_header("us west 1"), "us west 1");
/// assert_eq!(encode_header("a\nb"), "=?base64?YQpi?=");
/// ```
#[must_use]
pub fn encode_header(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let looks_encoded = value.starts_with(ENCODED.0) && value.ends_with(ENCODED.1);
    if is_plain && value.trim() == value && !looks_encoded {
        return value.to_owned();
    }
    format!(
        "{}{}{}",
        ENCODED.0,
        base64::encode(value.as_bytes()),
        ENCODED.1
    )
}

/// The bytes that a header says; `None` for base64 that is none.
///
/// ```
/// use proofhouse_protocol::mcp::decode_header;
///
/// assert_eq!(decode_header("=?base64?YQpi?=").as_deref(), Some(&b"a\nb"[..]));
/// assert_eq!(decode_header(" plain ").as_deref(), Some(&b"plain"[..]));
/// assert_eq!(decode_header("=?base64?!?="), None);
/// ```
#[must_use]
pub fn decode_header(value: &str) -> Option<Vec<u8>> {
    let value = value.trim();
    match encoded_part(value) {
        Some(encoded) => base64::decode(encoded),
        None => Some(value.as_bytes().to_vec()),
    }
}

/// The base64 in a value, if it is in base64.
fn encoded_part(value: &str) -> Option<&str> {
    value.strip_prefix(ENCODED.0)?.strip_suffix(ENCODED.1)
}

/// The headers that a client sends with a message of the stateless revisions.
///
/// ```
/// use proofhouse_protocol::mcp::{ToolHeaders, headers_of};
/// use serde_json::json;
///
/// let headers = headers_of("tools/call", &json!({"name": "weather"}), "2026-07-28", &ToolHeaders::default());
/// assert_eq!(headers[0], ("mcp-protocol-version".to_owned(), "2026-07-28".to_owned()));
/// assert_eq!(headers[1], ("mcp-method".to_owned(), "tools/call".to_owned()));
/// assert_eq!(headers[2], ("mcp-name".to_owned(), "weather".to_owned()));
/// ```
#[must_use]
pub fn headers_of(
    method: &str,
    params: &Value,
    version: &str,
    tools: &ToolHeaders,
) -> Vec<(String, String)> {
    // The header must say what the envelope says, and the caller may have written that.
    let told = meta::get(params, meta::PROTOCOL_VERSION);
    let version = told.and_then(Value::as_str).unwrap_or(version);
    let mut headers = vec![
        (header::PROTOCOL_VERSION.to_owned(), version.to_owned()),
        (header::METHOD.to_owned(), encode_header(method)),
    ];
    let key = McpMethod::mirrored_param(method);
    if let Some(name) = key.and_then(|key| params.get(key)?.as_str()) {
        headers.push((header::NAME.to_owned(), encode_header(name)));
        if method == McpMethod::ToolsCall.as_str() {
            tools.add(name, params.get("arguments"), &mut headers);
        }
    }
    headers
}

/// A header does not say what the body says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("header `{header}`: {reason}")]
pub struct HeaderMismatch {
    /// The header.
    pub header: String,
    /// What is wrong with it.
    pub reason: HeaderMismatchReason,
}

/// What is wrong with a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum HeaderMismatchReason {
    /// It is not there.
    #[error("it is missing")]
    Missing,
    /// It is there, and the argument that it repeats is not.
    #[error("its argument is not there")]
    Unexpected,
    /// It says something else.
    #[error("it does not say what the body says")]
    Differs,
}

impl HeaderMismatch {
    fn new(header: &str, reason: HeaderMismatchReason) -> Self {
        let header = header.to_owned();
        Self { header, reason }
    }
}

/// Checks that a header says what is expected.
pub(super) fn check_header(
    headers: &Lookup<'_>,
    name: &str,
    expected: &str,
) -> Result<(), HeaderMismatch> {
    let wrong = |reason| HeaderMismatch::new(name, reason);
    let value = headers(name).ok_or_else(|| wrong(HeaderMismatchReason::Missing))?;
    // What is around a plain value does not count, on either side.
    let is_plain = encoded_part(value.trim()).is_none();
    let expected = if is_plain { expected.trim() } else { expected };
    if decode_header(&value).is_some_and(|said| said == expected.as_bytes()) {
        Ok(())
    } else {
        Err(wrong(HeaderMismatchReason::Differs))
    }
}

/// Checks the headers that repeat the method and what it is about.
///
/// # Errors
///
/// Returns the first header that does not say what the body says.
pub fn check_headers(
    headers: &Lookup<'_>,
    method: &str,
    params: &Value,
) -> Result<(), HeaderMismatch> {
    check_header(headers, header::METHOD, method)?;
    let key = McpMethod::parse(method).and_then(McpMethod::item_param);
    match key.and_then(|key| params.get(key)?.as_str()) {
        Some(name) => check_header(headers, header::NAME, name),
        None => Ok(()),
    }
}

/// Checks that headers which repeat what a message says do say it, for those who do not know the tools of the server: a header of an
/// argument must be the same as one of the arguments. Headers that are not there repeat nothing.
///
/// ```
/// use proofhouse_protocol::mcp::check_repeated_headers;
/// use serde_json::json;
///
/// let call = json!({"method": "tools/call", "params": {"name": "weather", "arguments": {"days": 3}}});
/// let check = |header, value: &str| check_repeated_headers([(header, value.as_bytes())], &call).is_ok();
/// assert!(check("mcp-name", "weather") && check("mcp-param-days", "3"));
/// assert!(!check("mcp-method", "ping") && !check("mcp-param-days", "4"));
/// ```
///
/// # Errors
///
/// Returns the first header that says something else. `headers` have their names in lower case.
pub fn check_repeated_headers<'h>(
    headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
    message: &Value,
) -> Result<(), HeaderMismatch> {
    let method = message.get("method").and_then(Value::as_str);
    let params = message.get("params").unwrap_or(&Value::Null);
    for (name, value) in headers {
        let said = str::from_utf8(value).ok().and_then(decode_header);
        let says = |text: &str| {
            let is_plain =
                str::from_utf8(value).is_ok_and(|value| encoded_part(value.trim()).is_none());
            let text = if is_plain { text.trim() } else { text };
            said.as_deref() == Some(text.as_bytes())
        };
        let is_same = match name {
            header::METHOD => method.is_some_and(says),
            header::NAME => {
                let key = method.and_then(McpMethod::mirrored_param);
                let item = key.and_then(|key| params.get(key)?.as_str());
                item.is_some_and(says)
            }
            _ if name.starts_with(header::PARAM_PREFIX) => {
                let arguments = params.get("arguments").unwrap_or(&Value::Null);
                any_leaf(arguments, MAX_DEPTH, &says)
            }
            _ => true,
        };
        if !is_same {
            return Err(HeaderMismatch::new(name, HeaderMismatchReason::Differs));
        }
    }
    Ok(())
}

/// Whether one of the texts, numbers and truths below a value is what is looked for.
fn any_leaf(value: &Value, depth: usize, is_it: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_it(text),
        Value::Bool(_) | Value::Number(_) => is_it(&value.to_string()),
        Value::Object(members) if depth > 0 => members
            .values()
            .any(|item| any_leaf(item, depth - 1, is_it)),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// The arguments that a tool's schema wants in headers, as a server checks them: the argument, and the name that the
/// schema gives the header.
///
/// ```
/// use proofhouse_protocol::mcp::header_arguments;
/// use serde_json::json;
///
/// let schema = json!({"properties": {"city": {"x-mcp-header": "City"}, "days": {"type": "integer"}}});
/// assert_eq!(header_arguments(&schema).collect::<Vec<_>>(), [("city", "City")]);
/// ```
pub fn header_arguments(schema: &Value) -> impl Iterator<Item = (&str, &str)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| {
            let header = property.get(header::SCHEMA_KEYWORD)?.as_str()?;
            Some((name.as_str(), header))
        })
}

/// Checks that the arguments that a tool wants in headers are there, and the same. `mirrored` are those of
/// [`header_arguments`].
///
/// # Errors
///
/// Returns the first header that does not say what the arguments say.
pub fn check_argument_headers<'a>(
    headers: &Lookup<'_>,
    mirrored: impl IntoIterator<Item = (&'a str, &'a str)>,
    arguments: &Value,
) -> Result<(), HeaderMismatch> {
    for (argument, name) in mirrored {
        let name = header::of_argument(name);
        match arguments.get(argument) {
            None | Some(Value::Null) => {
                if headers(&name).is_some() {
                    let reason = HeaderMismatchReason::Unexpected;
                    return Err(HeaderMismatch::new(&name, reason));
                }
            }
            Some(Value::String(value)) => check_header(headers, &name, value)?,
            Some(value) => check_header(headers, &name, &value.to_string())?,
        }
    }
    Ok(())
}

/// Which arguments of which tools a client repeats in headers.
#[derive(Debug, Default)]
pub struct ToolHeaders(HashMap<String, Vec<(Vec<String>, String)>>);

impl ToolHeaders {
    /// Learns from the result of `tools/list`. A tool whose headers break the rules has none.
    pub fn learn(&mut self, result: &Value) {
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
                Some(Value::String(text)) => encode_header(text),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
                _ => continue,
            };
            headers.push((format!("{}{name}", header::PARAM_PREFIX), text));
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
        if let Some(header) = property.get(header::SCHEMA_KEYWORD) {
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
    use std::borrow::Cow;

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
            assert_eq!(encode_header(value), header);
            assert_eq!(decode_header(header).as_deref(), Some(value.as_bytes()));
        }
    }

    #[test]
    fn headers_say_what_the_envelope_says() {
        let params = json!({"name": "x", "_meta": {meta::PROTOCOL_VERSION: "1999"}});
        let headers = headers_of("tools/call", &params, "2026", &ToolHeaders::default());
        let expected = [
            ("mcp-protocol-version", "1999"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "x"),
        ];
        assert_eq!(headers, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn arguments_that_travel_in_headers_must_be_the_same_there() {
        let schema = json!({"properties": {"city": {"x-mcp-header": "City"}, "days": {"x-mcp-header": "D"}}});
        let both = json!({"city": "Zürich", "days": 3});
        let city = ("mcp-param-city", "=?base64?WsO8cmljaA==?=");
        use HeaderMismatchReason::{Differs, Missing, Unexpected};
        for (given, arguments, expected) in [
            (vec![city, ("mcp-param-d", "3")], &both, None),
            (vec![("mcp-param-d", "3")], &both, Some(Missing)),
            (
                vec![("mcp-param-d", "4")],
                &json!({"days": 3}),
                Some(Differs),
            ),
            (vec![("mcp-param-d", "4")], &json!({}), Some(Unexpected)),
            (vec![], &json!({"days": null}), None),
        ] {
            let lookup = |name: &str| {
                let found = given.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| Cow::Borrowed(*value))
            };
            let checked = check_argument_headers(&lookup, header_arguments(&schema), arguments);
            assert_eq!(
                checked.err().map(|wrong| wrong.reason),
                expected,
                "{given:?}"
            );
        }
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
