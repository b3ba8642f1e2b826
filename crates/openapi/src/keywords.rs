//! Keywords of schemas: small pieces that OpenAPI and JSON Schema say in different words.

use serde_json::{Map, Value, json};

use crate::tree::{Id, Tree};

/// How many types a schema may list; there are seven.
const MAX_TYPES: usize = 32;

/// What is said of bytes, which models write as text.
pub(crate) const BASE64: &str = "The bytes in base64.";

/// A schema and what stands beside the reference to it.
pub(crate) fn join(base: Value, beside: Map<String, Value>) -> Value {
    if beside.is_empty() {
        return base;
    }
    let notes = ["title", "description", "default", "deprecated"];
    let only_notes = beside.keys().all(|key| notes.contains(&key.as_str()));
    match base {
        Value::Object(mut base) if only_notes || base.contains_key("$ref") => {
            base.extend(beside);
            Value::Object(base)
        }
        base => json!({"allOf": [base, beside]}),
    }
}

/// The schema, or nothing.
pub(crate) fn or_null(schema: Value) -> Value {
    let Value::Object(mut map) = schema else {
        return schema;
    };
    if map.is_empty() {
        return Value::Object(map);
    }
    match map.get_mut("type") {
        Some(Value::String(one)) => {
            let both = json!([one, "null"]);
            map.insert("type".to_owned(), both);
        }
        Some(Value::Array(several)) => {
            if !several.contains(&json!("null")) {
                several.push("null".into());
            }
        }
        _ => {
            let description = map.shift_remove("description");
            let mut either = Map::new();
            either.insert("anyOf".to_owned(), json!([map, {"type": "null"}]));
            either.extend(description.map(|text| ("description".to_owned(), text)));
            return Value::Object(either);
        }
    }
    if let Some(Value::Array(values)) = map.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    Value::Object(map)
}

pub(crate) fn types(tree: &Tree, value: Id) -> Option<Value> {
    let known = |text: &str| {
        let types = [
            "string", "number", "integer", "boolean", "array", "object", "null",
        ];
        types.contains(&text)
    };
    if let Some(one) = tree.text(value) {
        return known(one).then(|| one.into());
    }
    let mut several: Vec<&str> = Vec::new();
    for item in tree.items(value).take(MAX_TYPES) {
        let text = tree.text(item)?;
        if !known(text) {
            return None;
        }
        if !several.contains(&text) {
            several.push(text);
        }
    }
    (!several.is_empty()).then(|| json!(several))
}

/// Whether a schema is one of bytes, which models write in base64.
pub(crate) fn is_binary(tree: &Tree, schema: Id) -> bool {
    let media = tree.text_at(schema, "contentMediaType");
    tree.text_at(schema, "format") == Some("binary")
        || (media.is_some_and(|media| !is_readable(media))
            && tree.get(schema, "contentEncoding").is_none())
}

/// Whether a media type is one of text.
pub(crate) fn is_readable(media: &str) -> bool {
    let media = media.to_ascii_lowercase();
    ["text/", "json", "xml", "yaml", "graphql", "javascript"]
        .iter()
        .any(|word| media.contains(word))
}

pub(crate) fn is_positive(number: &Value) -> bool {
    number.as_f64().is_some_and(|number| number > 0.0)
}

/// The start of a text, with a mark where it was cut.
pub(crate) fn cut_text(text: &str, length: usize) -> String {
    // Four bytes are the longest character; what is behind them is not even looked at.
    let most = length.saturating_mul(4).saturating_add(4);
    let end = (0..=most.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let text = text[..end].trim();
    match text.char_indices().nth(length) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
