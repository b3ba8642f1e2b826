//! The JSON Schema and the reference page of `proofhouse.yaml`, made from the table of its keys.

use proofhouse_source::format::schema::{self, SchemaMaker};
use proofhouse_source::format::{SchemaStyle, TypeSpec, reference};
use serde_json::{Value, json};

use super::fields::{CONFIG, PARTS, SIMULATIONS, SUBJECTS};

/// The JSON Schema (2020-12). It says what a schema can say; the reader says the rest.
#[must_use]
pub fn json_schema() -> Value {
    let maker = SchemaMaker::new(SchemaStyle {
        required_first: false,
        typed_choices: false,
    });
    Value::Object(maker.document("config", "proofhouse.yaml", &CONFIG, parts()))
}

/// The keys as a page in Markdown.
#[must_use]
pub fn reference() -> String {
    reference::markdown(
        "Keys of proofhouse.yaml",
        "proofhouse schema config --reference",
        &CONFIG,
        parts(),
    )
}

fn parts() -> impl Iterator<Item = &'static TypeSpec> {
    let kinds = SUBJECTS.iter().map(|(_, spec)| *spec);
    PARTS.iter().copied().chain(kinds)
}

/// The subjects: simulations by name, and mappings of each kind.
pub(super) fn subjects() -> Value {
    let kinds = SUBJECTS
        .iter()
        .map(|(_, spec)| schema::reference(spec.name));
    let mut kinds: Vec<Value> = kinds.collect();
    kinds.insert(0, json!({"enum": SIMULATIONS}));
    json!({"type": "array", "minItems": 1, "maxItems": 100, "items": {"anyOf": kinds}})
}
