//! Content: from what a tool of an MCP server answered to what an action yields.

use proofhouse_protocol::text;
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

/// The result of an action: the structured content, else the parts of the content. Nothing is `null`,
/// one text is a text, several parts are a list. A blob of more than `most` bytes is only described.
pub(super) fn result(called: CallToolResult, most: usize) -> Value {
    if let Some(structured) = called.structured_content {
        return structured;
    }
    let content = serde_json::to_value(called.content).unwrap_or_default();
    let mut parts: Vec<Value> = match content {
        Value::Array(parts) => parts.into_iter().map(|part| mapped(part, most)).collect(),
        _ => Vec::new(),
    };
    match parts.as_mut_slice() {
        [] => Value::Null,
        [one] if one["type"] == "text" => one["text"].take(),
        [one] => one.take(),
        _ => Value::Array(parts),
    }
}

/// The texts of an answer, one below the other.
pub(super) fn texts(called: &CallToolResult) -> String {
    let content = serde_json::to_value(&called.content).unwrap_or_default();
    let texts: Vec<&str> = text::of_parts(&content).collect();
    texts.join("\n")
}

fn mapped(mut part: Value, most: usize) -> Value {
    let kind = part["type"].as_str().unwrap_or_default().to_owned();
    match kind.as_str() {
        "text" => json!({"type": "text", "text": part["text"].take()}),
        "image" | "audio" => {
            let mut mapped = json!({"type": kind, "mime_type": part["mimeType"].take()});
            put_blob(&mut mapped, part["data"].take(), most);
            mapped
        }
        "resource" => {
            let mut resource = part["resource"].take();
            let mut mapped = json!({"type": kind, "uri": resource["uri"].take()});
            if resource["mimeType"].is_string() {
                mapped["mime_type"] = resource["mimeType"].take();
            }
            if resource["text"].is_string() {
                mapped["text"] = resource["text"].take();
            } else {
                put_blob(&mut mapped, resource["blob"].take(), most);
            }
            mapped
        }
        "resource_link" => {
            let mut mapped = json!({"type": kind});
            for (theirs, ours) in [
                ("uri", "uri"),
                ("name", "name"),
                ("description", "description"),
                ("mimeType", "mime_type"),
            ] {
                if part[theirs].is_string() {
                    mapped[ours] = part[theirs].take();
                }
            }
            mapped
        }
        _ => part,
    }
}

/// Adds the bytes, or how many they are if they are too many to be shown.
fn put_blob(mapped: &mut Value, base64: Value, most: usize) {
    let size = base64.as_str().map_or(0, str::len);
    if size <= most {
        mapped["base64"] = base64;
    } else {
        mapped["bytes"] = (size / 4 * 3).into();
        mapped["omitted"] = true.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: Value, expected: &Value) {
        let called: CallToolResult = serde_json::from_value(answer).unwrap();
        assert_eq!(&result(called, 16), expected);
    }

    #[test]
    fn parts_are_mapped() {
        let text = json!({"type": "text", "text": "{\"a\": 1}"});
        check(json!({"content": []}), &json!(null));
        check(json!({"content": [text]}), &json!("{\"a\": 1}"));
        check(
            json!({"content": [text], "structuredContent": {"a": 1}}),
            &json!({"a": 1}),
        );
        check(
            json!({"content": [
                text,
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "audio", "data": "A".repeat(20), "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "a:b", "name": "n", "mimeType": "text/plain"},
                {"type": "resource", "resource": {"uri": "a:c", "text": "t"}},
                {"type": "resource", "resource": {"uri": "a:d", "blob": "AAAA", "mimeType": "m/n"}},
            ]}),
            &json!([
                text,
                {"type": "image", "mime_type": "image/png", "base64": "AAAA"},
                {"type": "audio", "mime_type": "audio/wav", "bytes": 15, "omitted": true},
                {"type": "resource_link", "uri": "a:b", "name": "n", "mime_type": "text/plain"},
                {"type": "resource", "uri": "a:c", "text": "t"},
                {"type": "resource", "uri": "a:d", "mime_type": "m/n", "base64": "AAAA"},
            ]),
        );
    }
}
