//! The JSON Schema of a document, generated from the field tables, for editors.

use serde_json::{Map, Value, json};

use crate::fields::{self, FieldSpec, Kind, SIMPLE_PATH, TypeSpec, WILDCARD_PATH};
use crate::model::{MatchCondition, SeverityLevel};

/// The same durations that V-036 accepts.
const DURATION: &str = "^([0-9]+[smhd]|P[0-9]+D(T([0-9]+H([0-9]+M)?([0-9]+S)?|[0-9]+M([0-9]+S)?|[0-9]+S))?|PT([0-9]+H([0-9]+M)?([0-9]+S)?|[0-9]+M([0-9]+S)?|[0-9]+S))$";

/// The JSON Schema (2020-12) of a document.
///
/// It says what a schema can say; [`validate`](crate::validate) says the rest.
///
/// ```
/// let schema = proofhouse_oatf::json_schema();
/// assert_eq!(schema["properties"]["attack"]["$ref"], "#/$defs/Attack");
/// ```
#[must_use]
pub fn json_schema() -> Value {
    let mut defs = Map::new();
    for spec in [
        &fields::ATTACK,
        &fields::CORRELATION,
        &fields::SEVERITY,
        &fields::CLASSIFICATION,
        &fields::MAPPING,
        &fields::REFERENCE,
        &fields::EXECUTION,
        &fields::ACTOR,
        &fields::PHASE,
        &fields::SEND,
        &fields::LOG,
        &fields::EXTRACTOR,
        &fields::TRIGGER,
        &fields::INDICATOR,
        &fields::EXPRESSION,
        &fields::SEMANTIC,
        &fields::EXAMPLES,
    ] {
        defs.insert(spec.name.to_owned(), object(spec));
    }
    defs.insert("Severity".to_owned(), severity());
    defs.insert("Action".to_owned(), action());
    defs.insert("MatchCondition".to_owned(), match_condition());
    defs.insert("MatchPredicate".to_owned(), match_predicate());
    defs.insert("PatternMatch".to_owned(), pattern_match());
    constrain(&mut defs);

    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    schema.insert("title".to_owned(), "Open Agent Threat Format 0.1".into());
    if let Value::Object(root) = object(&fields::DOCUMENT) {
        schema.extend(root);
    }
    schema.insert("$defs".to_owned(), Value::Object(defs));
    Value::Object(schema)
}

/// What holds between the fields of one mapping.
fn constrain(defs: &mut Map<String, Value>) {
    let mut put = |name: &str, key: &str, value: Value| {
        if let Some(Value::Object(def)) = defs.get_mut(name) {
            def.insert(key.to_owned(), value);
        }
    };
    put(
        "Attack",
        "dependentRequired",
        json!({"correlation": ["indicators"]}),
    );
    put(
        "Trigger",
        "dependentRequired",
        json!({"count": ["event"], "match": ["event"]}),
    );
    put(
        "Trigger",
        "anyOf",
        json!([{"required": ["event"]}, {"required": ["after"]}]),
    );
    put("SemanticExamples", "minProperties", json!(1));
    put(
        "Execution",
        "oneOf",
        json!([
            {"required": ["mode", "state"]},
            {"required": ["phases"]},
            {"required": ["actors"]},
        ]),
    );
    put(
        "Execution",
        "dependentSchemas",
        json!({
            "state": {"required": ["mode"]},
        }),
    );
    put(
        "Indicator",
        "oneOf",
        json!([
            {"required": ["pattern"]},
            {"required": ["expression"]},
            {"required": ["semantic"]},
        ]),
    );
}

fn object(spec: &TypeSpec) -> Value {
    let properties: Map<String, Value> = spec
        .fields
        .iter()
        .map(|field| (field.key.to_owned(), property(field)))
        .collect();
    let required: Vec<&str> = spec
        .fields
        .iter()
        .filter(|field| field.required.is_some())
        .map(|field| field.key)
        .collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), "object".into());
    object.insert("description".to_owned(), spec.doc.into());
    if !required.is_empty() {
        object.insert("required".to_owned(), required.into());
    }
    object.insert("properties".to_owned(), Value::Object(properties));
    if spec.extensions {
        object.insert("patternProperties".to_owned(), json!({"^x-": true}));
    }
    object.insert("additionalProperties".to_owned(), false.into());
    Value::Object(object)
}

fn property(field: &FieldSpec) -> Value {
    let mut schema = match kind(&field.kind) {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    schema.insert("description".to_owned(), field.doc.into());
    Value::Object(schema)
}

fn kind(kind: &Kind) -> Value {
    match kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Matching(pattern) => json!({"type": "string", "pattern": pattern}),
        Kind::Integer { min, max: None } => json!({"type": "integer", "minimum": min}),
        Kind::Integer {
            min,
            max: Some(max),
        } => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        Kind::Number { min, max } => json!({"type": "number", "minimum": min, "maximum": max}),
        Kind::Duration => {
            json!({"type": "string", "pattern": DURATION, "examples": ["30s", "5m", "PT1M30S"]})
        }
        Kind::Date => json!({
            "type": "string",
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt].+([Zz]|[+-][0-9]{2}:?[0-9]{2}))?$",
            "examples": ["2026-01-15", "2026-01-15T10:30:00Z"],
        }),
        Kind::Any => json!({}),
        Kind::Object => json!({"type": "object"}),
        Kind::Choice(members) => json!({"type": "string", "enum": members}),
        Kind::TextMap => json!({
            "type": "object",
            "propertyNames": {"pattern": "^[_a-zA-Z][_a-zA-Z0-9]*$"},
            "additionalProperties": {"type": "string", "pattern": SIMPLE_PATH},
        }),
        Kind::Type(spec) => json!({"$ref": format!("#/$defs/{}", spec.name)}),
        Kind::Shape(name) => json!({"$ref": format!("#/$defs/{name}")}),
        Kind::List { of, min, unique } => {
            let mut list = json!({"type": "array", "items": self::kind(of)});
            if *min > 0 {
                list["minItems"] = json!(min);
            }
            if *unique {
                list["uniqueItems"] = json!(true);
            }
            list
        }
    }
}

fn severity() -> Value {
    json!({
        "description": "A level, or a level with the author's confidence in it.",
        "oneOf": [
            {"type": "string", "enum": SeverityLevel::NAMES},
            {"$ref": "#/$defs/SeverityObject"},
        ],
    })
}

fn action() -> Value {
    let known = |key: &str, def: &str| {
        json!({
            "required": [key],
            "properties": {key: {"$ref": format!("#/$defs/{def}")}},
            "patternProperties": {"^x-": true},
            "additionalProperties": false,
        })
    };
    json!({
        "type": "object",
        "description": "An entry action: send, log, or one that a protocol binding defines.",
        "oneOf": [
            known("send", "Send"),
            known("log", "Log"),
            {
                "minProperties": 1,
                "not": {"anyOf": [
                    {"required": ["send"]},
                    {"required": ["log"]},
                    {"propertyNames": {"pattern": "^x-"}},
                ]},
            },
        ],
    })
}

fn operator_properties() -> Map<String, Value> {
    let text = |doc: &str| json!({"type": "string", "description": doc});
    let number = |doc: &str| json!({"type": "number", "description": doc});
    let entries = [
        ("contains", text("Holds this text; case matters.")),
        ("starts_with", text("Starts with this text; case matters.")),
        ("ends_with", text("Ends with this text; case matters.")),
        (
            "regex",
            text("Matches this RE2 regular expression anywhere."),
        ),
        (
            "any_of",
            json!({"type": "array", "minItems": 1, "description": "Equals one of these."}),
        ),
        ("gt", number("Is greater.")),
        ("lt", number("Is less.")),
        ("gte", number("Is greater or equal.")),
        ("lte", number("Is less or equal.")),
        (
            "exists",
            json!({"type": "boolean", "description": "Is there (true) or not there (false)."}),
        ),
    ];
    entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn one_operator() -> Value {
    MatchCondition::OPERATORS
        .iter()
        .map(|key| json!({"required": [key]}))
        .collect()
}

fn match_condition() -> Value {
    json!({
        "type": "object",
        "description": "Operators, all of which must hold.",
        "properties": operator_properties(),
        "additionalProperties": false,
        "anyOf": one_operator(),
    })
}

/// A value to be equal to, or operators. A mapping without an operator is a value.
fn condition() -> Value {
    json!({
        "anyOf": [
            {"type": ["string", "number", "boolean", "array", "null"]},
            {"type": "object", "not": {"anyOf": one_operator()}},
            {"$ref": "#/$defs/MatchCondition"},
        ],
    })
}

fn match_predicate() -> Value {
    json!({
        "type": "object",
        "description": "Conditions on fields, all of which must hold.",
        "propertyNames": {"pattern": SIMPLE_PATH},
        "additionalProperties": condition(),
    })
}

fn pattern_match() -> Value {
    let mut properties = Map::new();
    properties.insert(
        "target".to_owned(),
        json!({
            "type": "string",
            "pattern": WILDCARD_PATH,
            "description": "Overrides the indicator's target.",
        }),
    );
    let mut standard = condition();
    standard["description"] = "The condition: a value or operators.".into();
    properties.insert("condition".to_owned(), standard);
    properties.extend(operator_properties());
    let mut forms = vec![json!({"required": ["condition"], "not": {"anyOf": one_operator()}})];
    forms.push(json!({"anyOf": one_operator(), "not": {"required": ["condition"]}}));
    json!({
        "type": "object",
        "description": "A condition on the target: operators, or `condition` around them.",
        "properties": properties,
        "additionalProperties": false,
        "oneOf": forms,
    })
}
