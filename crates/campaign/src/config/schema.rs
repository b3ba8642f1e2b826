//! The JSON Schema of `proofhouse.yaml`, made from the table of its keys.

use serde_json::{Map, Value, json};

use super::fields::{CONFIG, FieldSpec, Kind, PARTS, SIMULATIONS, SUBJECTS, TypeSpec};

/// The JSON Schema (2020-12). It says what a schema can say; the reader says the rest.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    schema.insert("title".to_owned(), "proofhouse.yaml".into());
    if let Value::Object(root) = object(&CONFIG) {
        schema.extend(root);
    }
    let kinds = SUBJECTS.iter().map(|(_, spec)| *spec);
    let defs: Map<String, Value> = PARTS
        .iter()
        .copied()
        .chain(kinds)
        .map(|spec| (spec.name.to_owned(), object(spec)))
        .collect();
    schema.insert("$defs".to_owned(), Value::Object(defs));
    Value::Object(schema)
}

fn object(spec: &TypeSpec) -> Value {
    let mut properties = Map::new();
    for field in spec.fields {
        properties.insert(field.key.to_owned(), property(field));
    }
    let required: Vec<&str> = spec
        .fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.key)
        .collect();
    let mut object = json!({
        "type": "object",
        "description": spec.doc,
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn property(field: &FieldSpec) -> Value {
    let mut schema = kind(&field.kind);
    schema["description"] = field.doc.into();
    schema
}

fn kind(kind: &Kind) -> Value {
    let text = json!({"type": "string", "minLength": 1});
    match kind {
        Kind::Version => json!({"const": 1}),
        Kind::Name => json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"}),
        Kind::Text | Kind::Path => text,
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Whole { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
        Kind::Duration => {
            json!({"type": "string", "pattern": "^([0-9]+(ms|s|m|h|d))+$|^P"})
        }
        Kind::Size => json!({"anyOf": [
            {"type": "integer", "minimum": 1},
            {"type": "string", "pattern": "^[0-9]+[KkMmGg]?$"},
        ]}),
        Kind::Url => json!({"type": "string", "pattern": "^https?://|\\$\\{"}),
        Kind::Address => json!({"type": "string", "pattern": ":[0-9]+$"}),
        Kind::Texts | Kind::Paths | Kind::Networks => one_or_more(&text),
        Kind::Choice(words) => json!({"enum": words}),
        Kind::Choices(words) => one_or_more(&json!({"enum": words})),
        Kind::FailOn => one_or_more(&json!({
            "type": "string", "pattern": "^(exploited|regression|tier=.+|severity=.+)$",
        })),
        Kind::Command => json!({"anyOf": [
            text, {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ]}),
        Kind::Variables => json!({
            "type": "object",
            "additionalProperties": {"type": ["string", "integer", "boolean"]},
        }),
        Kind::Type(spec) => reference(spec),
        Kind::McpConfig => json!({"anyOf": [text, reference(&super::fields::MCP_CONFIG)]}),
        Kind::Subjects => {
            let mut kinds: Vec<Value> = SUBJECTS.iter().map(|(_, spec)| reference(spec)).collect();
            kinds.insert(0, json!({"enum": SIMULATIONS}));
            json!({"type": "array", "minItems": 1, "maxItems": 100, "items": {"anyOf": kinds}})
        }
    }
}

fn reference(spec: &TypeSpec) -> Value {
    json!({"$ref": format!("#/$defs/{}", spec.name)})
}

fn one_or_more(item: &Value) -> Value {
    json!({"anyOf": [item, {"type": "array", "items": item}]})
}
