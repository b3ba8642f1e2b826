//! The JSON Schemas of manifests, made from the table of fields.

use serde_json::{Map, Value, json};

use super::agent::fields as agent;
use super::fields::{self, FieldSpec, Kind, TypeSpec, VERSIONS};
use super::starts::fields as starts;

/// The JSON Schema (2020-12) of a tool manifest.
///
/// It says what a schema can say; [`Bundle::read`](super::Bundle::read) says the rest.
///
/// ```
/// let schema = proofhouse_manifest::json_schema();
/// assert_eq!(schema["$defs"]["Execute"]["maxProperties"], 1);
/// ```
#[must_use]
pub fn json_schema() -> Value {
    document(&fields::TOOL, "tool", "Tool", &fields::ALL)
}

/// The JSON Schema (2020-12) of an agent manifest.
///
/// ```
/// let schema = proofhouse_manifest::agent_json_schema();
/// assert!(schema["properties"]["capabilities"].is_object());
/// ```
#[must_use]
pub fn agent_json_schema() -> Value {
    document(&agent::AGENT, "agent", "Agent", &agent::ALL)
}

/// The JSON Schema (2020-12) of a trigger manifest.
///
/// ```
/// let schema = proofhouse_manifest::trigger_json_schema();
/// assert!(schema["properties"]["source"].is_object());
/// ```
#[must_use]
pub fn trigger_json_schema() -> Value {
    document(&starts::TRIGGER, "trigger", "Trigger", &starts::OF_TRIGGER)
}

/// The JSON Schema (2020-12) of a schedule manifest.
///
/// ```
/// let schema = proofhouse_manifest::schedule_json_schema();
/// assert!(schema["properties"]["cron"].is_object());
/// ```
#[must_use]
pub fn schedule_json_schema() -> Value {
    document(&starts::SCHEDULE, "schedule", "Schedule", &[])
}

fn document(root: &TypeSpec, kind: &str, title: &str, parts: &[&TypeSpec]) -> Value {
    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    schema.insert(
        "title".to_owned(),
        format!("{title} manifest of the Common Agent Specification").into(),
    );
    if let Value::Object(root) = object(root) {
        schema.extend(root);
    }
    let kinds: Vec<String> = VERSIONS
        .iter()
        .map(|version| format!("commonagents.info/{version}/{kind}"))
        .collect();
    if let Some(kind) = schema
        .get_mut("properties")
        .and_then(|properties| properties.get_mut("kind"))
    {
        kind["enum"] = json!(kinds);
    }
    let mut defs: Map<String, Value> = parts
        .iter()
        .map(|spec| (spec.name.to_owned(), object(spec)))
        .collect();
    defs.insert(
        "Parameters".to_owned(),
        json!({
            "type": "object",
            "description": "Values by name; one without a default is required.",
            "properties": {"properties": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": {"require_binding": {"type": "boolean"}},
                },
            }},
        }),
    );
    schema.insert("$defs".to_owned(), Value::Object(defs));
    Value::Object(schema)
}

fn object(spec: &TypeSpec) -> Value {
    let mut properties = Map::new();
    let mut forbidden = Vec::new();
    for field in spec.fields {
        properties.insert(field.key.to_owned(), property(field));
        if let Some(alias) = field.alias {
            properties.insert(alias.to_owned(), property(field));
            forbidden.push(json!({"not": {"required": [field.key, alias]}}));
        }
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
        "patternProperties": {"^x-": true},
        "additionalProperties": false,
    });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    if !forbidden.is_empty() {
        object["allOf"] = Value::Array(forbidden);
    }
    if spec.exactly_one {
        object["minProperties"] = json!(1);
        object["maxProperties"] = json!(1);
    }
    object
}

fn property(field: &FieldSpec) -> Value {
    let mut schema = kind(&field.kind);
    schema["description"] = field.doc.into();
    schema
}

fn kind(kind: &Kind) -> Value {
    let text = json!({"type": "string"});
    let template = json!({"type": ["string", "number"]});
    match kind {
        Kind::Text | Kind::Cel => text,
        Kind::Template => template,
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Duration => json!({"type": "string", "pattern": "^([0-9]+(ms|s|m|h|d))+$"}),
        Kind::JsonPath => json!({"type": "string", "pattern": r"^\$"}),
        Kind::JsonPaths => {
            json!({"type": "object", "additionalProperties": {"type": "string", "pattern": r"^\$"}})
        }
        Kind::TemplateMap => json!({"type": "object", "additionalProperties": template}),
        Kind::Templates => json!({"type": "array", "items": template}),
        Kind::Body => json!({}),
        Kind::Choice(members) => json!({"type": "string", "enum": members}),
        Kind::Parameters => json!({"$ref": "#/$defs/Parameters"}),
        Kind::EventParameters => json!({"anyOf": [
            {"$ref": "#/$defs/Parameters", "required": ["properties"]},
            {"type": "object", "additionalProperties": text},
        ]}),
        Kind::Number => json!({"type": "integer", "minimum": 0}),
        Kind::Names => json!({"type": "array", "items": text}),
        Kind::CelMap => {
            json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}})
        }
        Kind::Capabilities(spec) => json!({"type": "object", "additionalProperties": {"anyOf": [
            {"const": "*"},
            {"$ref": format!("#/$defs/{}", spec.name), "minProperties": 1},
        ]}}),
        Kind::Type(spec) => json!({"$ref": format!("#/$defs/{}", spec.name)}),
        Kind::List(spec) => {
            json!({"type": "array", "items": {"$ref": format!("#/$defs/{}", spec.name)}})
        }
    }
}
