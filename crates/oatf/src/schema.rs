//! The JSON Schema and the reference of a document, made from the table of fields.

use proofhouse_source::format::schema::SchemaMaker;
use proofhouse_source::format::{SchemaStyle, reference};
use serde_json::{Map, Value, json};

use crate::fields::{self, SIMPLE_PATH, WILDCARD_PATH};
use crate::model::{MatchCondition, SeverityLevel};

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
    let maker = SchemaMaker::new(SchemaStyle {
        required_first: true,
        typed_choices: true,
    });
    let mut schema = maker.document(
        "oatf",
        "Open Agent Threat Format 0.1",
        &fields::DOCUMENT,
        fields::ALL,
    );
    if let Some(Value::Object(defs)) = schema.get_mut("$defs") {
        defs.insert("Severity".to_owned(), severity());
        defs.insert("Action".to_owned(), action());
        defs.insert("MatchCondition".to_owned(), match_condition());
        defs.insert("MatchPredicate".to_owned(), match_predicate());
        defs.insert("PatternMatch".to_owned(), pattern_match());
        constrain(defs);
    }
    Value::Object(schema)
}

/// The keys of a document as a page in Markdown, made from the same table.
///
/// ```
/// assert!(proofhouse_oatf::reference().contains("| `indicators` |"));
/// ```
#[must_use]
pub fn reference() -> String {
    reference::markdown(
        "Keys of threat documents",
        "proofhouse schema oatf --reference",
        &fields::DOCUMENT,
        fields::ALL,
    )
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
