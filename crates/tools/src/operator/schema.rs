//! The JSON Schema and the reference page of what the operator configures, made from the table of keys.

use proofhouse_source::format::schema::{self, SchemaMaker};
use proofhouse_source::format::{SchemaStyle, reference};
use serde_json::{Map, Value, json};

use super::fields::{ALL, OPERATOR};

/// The JSON Schema (2020-12) of what the operator configures.
///
/// It says what a schema can say; [`OperatorConfig::read`](super::OperatorConfig::read) says the rest.
///
/// ```
/// let schema = proofhouse_tools::operator::json_schema();
/// assert!(schema["$defs"]["Operator"]["properties"]["egress"].is_object());
/// ```
#[must_use]
pub fn json_schema() -> Value {
    let maker = SchemaMaker::new(SchemaStyle {
        required_first: true,
        typed_choices: true,
    });
    // A file with none of the keys is all settings, so that the mapping with the keys is one of two.
    let keys: Vec<Value> = OPERATOR
        .keys()
        .map(|key| json!({"required": [key]}))
        .collect();
    let mut defs = Map::new();
    for spec in [&OPERATOR].into_iter().chain(ALL) {
        defs.insert(spec.name.to_owned(), maker.object(spec).into());
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema::id("operator"),
        "title": "What the operator configures",
        "anyOf": [
            schema::reference(OPERATOR.name),
            {"type": "object", "description": "All settings.", "not": {"anyOf": keys}},
            {"type": "null", "description": "An empty file: no settings."},
        ],
        "$defs": defs,
    })
}

/// The keys of what the operator configures as a page in Markdown.
///
/// ```
/// assert!(proofhouse_tools::operator::reference().contains("| `kubeconfig` |"));
/// ```
#[must_use]
pub fn reference() -> String {
    reference::markdown(
        "Keys of the operator's file",
        "proofhouse schema operator --reference",
        &OPERATOR,
        ALL,
    )
}
