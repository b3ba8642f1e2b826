//! Results that are content of MCP: pictures, sounds, resources and lists of parts go on as such.
//!
//! The `mcp` runtime yields the parts of what another server answered; a server that is put in front of it hands
//! them on. What only looks like a part, by one key too many or too few, stays JSON.

use serde_json::{Map, Value, json};

/// Bytes that a model can look at or listen to, as responses of servers come to them.
pub fn media(object: &Map<String, Value>) -> Option<Value> {
    let (2, Some(Value::String(kind)), Some(Value::String(data))) = (
        object.len(),
        object.get("content_type"),
        object.get("base64"),
    ) else {
        return None;
    };
    let block = ["image", "audio"].into_iter().find(|block| {
        kind.strip_prefix(block)
            .is_some_and(|rest| rest.starts_with('/'))
    })?;
    Some(json!({"type": block, "data": data, "mimeType": kind}))
}

/// The blocks that several parts are; none unless every one of them is a part.
pub fn blocks(parts: &[Value]) -> Option<Vec<Value>> {
    // One part alone, or none, is never a list, so such a list is somebody's data.
    if parts.len() < 2 {
        return None;
    }
    let blocks = parts.iter().map(|part| match part.as_object() {
        Some(part) if part.get("type").is_some_and(|kind| kind == "text") => text(part),
        Some(part) => block(part),
        None => None,
    });
    blocks.collect()
}

/// The block that a part is, if it is one; one text alone would be a text, so it is none.
pub fn block(part: &Map<String, Value>) -> Option<Value> {
    let said = |key: &str| part.get(key).and_then(Value::as_str);
    let kind = said("type")?;
    match kind {
        "image" | "audio" | "resource" if is_described(part) => Some(described(part)),
        "image" | "audio" if has_only(part, &["type", "mime_type", "base64"]) => {
            Some(json!({"type": kind, "mimeType": said("mime_type")?, "data": said("base64")?}))
        }
        "resource" if has_only(part, &["type", "uri", "mime_type", "text", "base64"]) => {
            let mut resource = json!({"uri": said("uri")?});
            match (said("text"), said("base64")) {
                (Some(text), None) => resource["text"] = text.into(),
                (None, Some(blob)) => resource["blob"] = blob.into(),
                _ => return None,
            }
            if let Some(media) = said("mime_type") {
                resource["mimeType"] = media.into();
            }
            Some(json!({"type": kind, "resource": resource}))
        }
        "resource_link" if has_only(part, &["type", "uri", "name", "description", "mime_type"]) => {
            let mut link = json!({"type": kind, "uri": said("uri")?, "name": said("name")?});
            for (ours, theirs) in [("description", "description"), ("mime_type", "mimeType")] {
                if let Some(text) = said(ours) {
                    link[theirs] = text.into();
                }
            }
            Some(link)
        }
        _ => None,
    }
}

fn text(part: &Map<String, Value>) -> Option<Value> {
    let text = part.get("text").and_then(Value::as_str)?;
    has_only(part, &["type", "text"]).then(|| json!({"type": "text", "text": text}))
}

/// Whether it stands for bytes that were too many to be shown.
fn is_described(part: &Map<String, Value>) -> bool {
    has_only(part, &["type", "uri", "mime_type", "bytes", "omitted"])
        && part.get("omitted").is_some_and(|flag| flag == true)
        && part.get("bytes").is_some_and(Value::is_u64)
}

/// Nothing can carry bytes that are not there, so a text says what they were.
fn described(part: &Map<String, Value>) -> Value {
    json!({"type": "text", "text": Value::Object(part.clone()).to_string()})
}

/// Whether all its keys are of these, and all that are texts in parts are texts.
fn has_only(part: &Map<String, Value>, keys: &[&str]) -> bool {
    let is_text = |key: &str, value: &Value| match key {
        "bytes" | "omitted" => true,
        _ => value.is_string(),
    };
    part.iter()
        .all(|(key, value)| keys.contains(&key.as_str()) && is_text(key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_of(part: &Value) -> Option<Value> {
        block(part.as_object().unwrap())
    }

    #[test]
    fn parts_are_handed_on() {
        for (part, expected) in [
            (
                json!({"type": "image", "mime_type": "image/png", "base64": "AAAA"}),
                json!({"type": "image", "mimeType": "image/png", "data": "AAAA"}),
            ),
            (
                json!({"type": "resource", "uri": "a:d", "mime_type": "m/n", "base64": "AAAA"}),
                json!({"type": "resource", "resource": {"uri": "a:d", "mimeType": "m/n", "blob": "AAAA"}}),
            ),
            (
                json!({"type": "resource", "uri": "a:c", "text": "t"}),
                json!({"type": "resource", "resource": {"uri": "a:c", "text": "t"}}),
            ),
            (
                json!({"type": "resource_link", "uri": "a:b", "name": "n", "mime_type": "text/plain"}),
                json!({"type": "resource_link", "uri": "a:b", "name": "n", "mimeType": "text/plain"}),
            ),
        ] {
            assert_eq!(block_of(&part), Some(expected.clone()));
            let text = json!({"type": "text", "text": "x"});
            assert_eq!(blocks(&[text.clone(), part]), Some(vec![text, expected]));
        }
        let omitted =
            json!({"type": "audio", "mime_type": "audio/wav", "bytes": 15, "omitted": true});
        assert_eq!(block_of(&omitted).unwrap()["type"], "text");
    }

    #[test]
    fn what_only_looks_like_a_part_stays_json() {
        for part in [
            json!({"type": "image", "base64": "AAAA"}),
            json!({"type": "image", "mime_type": "image/png", "base64": "AAAA", "width": 3}),
            json!({"type": "image", "mime_type": 5, "base64": "AAAA"}),
            json!({"type": "resource", "uri": "a:c"}),
            json!({"type": "resource", "uri": "a:c", "text": "t", "base64": "AAAA"}),
            json!({"type": "resource_link", "uri": "a:b"}),
            json!({"type": "text", "text": "one text would be a text"}),
            json!({"type": "audio", "bytes": "many", "omitted": true}),
            json!({"kind": "image"}),
        ] {
            assert_eq!(block_of(&part), None, "{part}");
            assert_eq!(
                blocks(&[json!({"type": "text", "text": "x"}), json!(1), part]),
                None
            );
        }
        assert_eq!(blocks(&[json!({"type": "text", "text": "x"})]), None);
        assert_eq!(
            blocks(&[
                json!({"type": "text", "text": "x"}),
                json!({"type": "text"})
            ]),
            None
        );
    }
}
