//! The JSON Schemas and the reference pages of manifests, made from the table of fields.

use proofhouse_source::format::schema::{self, SchemaMaker};
use proofhouse_source::format::{SchemaStyle, TypeSpec, reference};
use serde_json::{Map, Value, json};

use super::agent::fields as agent;
use super::fields::{self, METHODS, VERSIONS};
use super::interpolate::Root;
use super::triggers::fields as triggers;

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
    document(&fields::TOOL, "tool", "Tool", &fields::all())
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
    document(
        &triggers::TRIGGER,
        "trigger",
        "Trigger",
        &triggers::OF_TRIGGER,
    )
}

/// The JSON Schema (2020-12) of a schedule manifest.
///
/// ```
/// let schema = proofhouse_manifest::schedule_json_schema();
/// assert!(schema["properties"]["cron"].is_object());
/// ```
#[must_use]
pub fn schedule_json_schema() -> Value {
    document(&triggers::SCHEDULE, "schedule", "Schedule", &[])
}

/// The keys of tool manifests as a page in Markdown.
#[must_use]
pub fn reference() -> String {
    page("tool", &fields::TOOL, &fields::all())
}

/// The keys of agent manifests as a page in Markdown.
#[must_use]
pub fn agent_reference() -> String {
    page("agent", &agent::AGENT, &agent::ALL)
}

/// The keys of trigger manifests as a page in Markdown.
#[must_use]
pub fn trigger_reference() -> String {
    page("trigger", &triggers::TRIGGER, &triggers::OF_TRIGGER)
}

/// The keys of schedule manifests as a page in Markdown.
#[must_use]
pub fn schedule_reference() -> String {
    page("schedule", &triggers::SCHEDULE, &[])
}

fn page(kind: &str, root: &TypeSpec, parts: &[&'static TypeSpec]) -> String {
    reference::markdown(
        &format!("Keys of {kind} manifests"),
        &format!("proofhouse schema {kind} --reference"),
        root,
        parts.iter().copied(),
    )
}

fn document(root: &TypeSpec, kind: &str, title: &str, parts: &[&'static TypeSpec]) -> Value {
    let maker = SchemaMaker::new(SchemaStyle {
        required_first: false,
        typed_choices: true,
    });
    let title = format!("{title} manifest of the Common Agent Specification");
    let mut schema = maker.document(kind, &title, root, parts.iter().copied());
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
    if let Some(Value::Object(defs)) = schema.get_mut("$defs") {
        defs.insert(
            "Parameters".to_owned(),
            json!({
                "type": "object",
                "description": "Values by name; one without a default is required.",
                "properties": {
                    "properties": {
                        // Nothing behind the key are no parameters.
                        "type": ["object", "null"],
                        "additionalProperties": {
                            "type": "object",
                            "properties": {"require_binding": {"type": "boolean"}},
                        },
                    },
                    "type": true,
                    "required": true,
                    "title": true,
                    "description": true,
                    "additionalProperties": true,
                    "$schema": true,
                },
                "patternProperties": {"^x-": true},
                "additionalProperties": false,
            }),
        );
        if let Some(Value::Object(step)) = defs.get_mut(agent::STEP.name) {
            step.extend(of_step(kind == "trigger"));
        }
    }
    Value::Object(schema)
}

/// Which keys of a step go together. One of a trigger asserts: there is no task yet.
fn of_step(is_trigger: bool) -> Map<String, Value> {
    let only = |key: &str| json!({"required": [key]});
    let mut rules = Map::new();
    if is_trigger {
        let others = ["invoke", "transform", "bindings"].map(only);
        rules.insert("required".to_owned(), json!(["assert"]));
        rules.insert("not".to_owned(), json!({"anyOf": others}));
    } else {
        let actions = ["assert", "invoke", "transform"].map(only);
        rules.insert("oneOf".to_owned(), json!(actions));
        rules.insert(
            "dependentRequired".to_owned(),
            json!({"bindings": ["invoke"]}),
        );
    }
    rules
}

/// One of the methods, or a text in which a reference says it.
pub(super) fn http_method() -> Value {
    let roots: Vec<&str> = Root::ALL.iter().map(|root| root.name()).collect();
    let (methods, roots) = (METHODS.join("|"), roots.join("|"));
    json!({"type": "string", "pattern": format!(r"^({methods})$|\{{\s*({roots})\.")})
}

/// The input of a task.
pub(super) fn inputs() -> Value {
    json!({"type": "object", "properties": {"message": {"type": ["string", "array"]}}})
}

/// Aliases in CEL, or a parameter schema.
pub(super) fn event_parameters() -> Value {
    json!({"anyOf": [
        {
            "$ref": "#/$defs/Parameters",
            "required": ["properties"],
            "properties": {"properties": {"type": "object"}},
        },
        {"type": "object", "additionalProperties": {"type": "string"}},
    ]})
}

/// The word of a scope, or a list of them.
pub(super) fn mount() -> Value {
    let scopes = agent::MOUNT_SCOPES;
    let words: Vec<&str> = std::iter::once(agent::NO_MOUNT)
        .chain(scopes.iter().copied())
        .collect();
    let list = json!({
        "type": "array", "uniqueItems": true, "items": {"type": "string", "enum": scopes},
    });
    json!({"anyOf": [{"type": "string", "enum": words}, list]})
}

/// References to tools and agents, each `"*"` or the mapping.
pub(super) fn capabilities() -> Value {
    let mut rules = schema::reference(agent::CAPABILITY.name);
    rules["minProperties"] = json!(1);
    json!({"type": "object", "additionalProperties": {"anyOf": [{"const": "*"}, rules]}})
}
