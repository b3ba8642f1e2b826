//! Tests of derived schemas: what OpenAPI says in JSON Schema, cycles, and descriptions that mean harm.

use super::*;
use proptest::prelude::*;

const BIG: usize = 100_000;

fn describe(version: &str, schemas: &Value) -> OpenApiDescription {
    let value = json!({"openapi": version, "components": {"schemas": schemas}});
    OpenApiDescription::new(Tree::from_value(&value), None).unwrap()
}

/// The schema called `A` of some, with what it refers to.
fn derived(
    version: &str,
    schemas: &Value,
    direction: SchemaDirection,
    max: usize,
) -> (Value, bool) {
    let description = describe(version, schemas);
    let root = description.tree.pointer("/components/schemas/A").unwrap();
    let made = derive(&description, direction, &[root], max);
    let mut value = made.values[0].clone();
    if !made.definitions.is_empty() {
        value["$defs"] = made.definitions.into();
    }
    (value, made.cut)
}

fn request(version: &str, schemas: &Value) -> Value {
    let (value, cut) = derived(version, schemas, SchemaDirection::Request, BIG);
    assert!(!cut);
    jsonschema::validator_for(&value).unwrap();
    value
}

#[test]
fn schemas_become_json_schema() {
    for (version, schema, expected) in [
        (
            "3.0.0",
            json!({"type": "string", "nullable": true}),
            json!({"type": ["string", "null"]}),
        ),
        (
            "3.0.0",
            json!({"type": "string", "nullable": true, "enum": ["a", "a", "b"]}),
            json!({"type": ["string", "null"], "enum": ["a", "b", null]}),
        ),
        (
            "3.0.0",
            json!({"anyOf": [{"type": "string"}], "nullable": true, "description": "d"}),
            json!({"anyOf": [{"anyOf": [{"type": "string"}]}, {"type": "null"}], "description": "d"}),
        ),
        (
            "3.0.0",
            json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
            json!({"exclusiveMinimum": 1, "maximum": 9}),
        ),
        (
            "3.1.0",
            json!({"exclusiveMinimum": 2.5}),
            json!({"exclusiveMinimum": 2.5}),
        ),
        (
            "3.1.0",
            json!({"oneOf": [{"type": "null"}, true], "discriminator": {"propertyName": "x"}}),
            json!({"anyOf": [{"type": "null"}, true]}),
        ),
        (
            "3.1.0",
            json!({"oneOf": [{"const": 1}], "anyOf": [{"const": 2}]}),
            json!({"anyOf": [{"const": 2}], "allOf": [{"anyOf": [{"const": 1}]}]}),
        ),
        (
            "3.0.0",
            json!({"pattern": "(", "description": "A name.", "x-a": 1, "example": 2, "xml": {}}),
            json!({"description": "A name. Pattern: `(`."}),
        ),
        (
            "3.0.0",
            json!({
                "properties": {"id": {"readOnly": true}, "n": {"type": "integer"}},
                "required": ["id", "n", "n", 3],
            }),
            json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]}),
        ),
        (
            "3.0.0",
            json!({"allOf": [{"properties": {"id": {"readOnly": true}}}, {"required": ["id"]}]}),
            json!({"allOf": [{"properties": {}}, {}]}),
        ),
        // Words with values that make no sense are left out.
        (
            "3.0.0",
            json!({
                "type": "file", "required": true, "enum": [], "minLength": -1, "multipleOf": 0,
                "items": 3, "allOf": {}, "properties": [], "additionalProperties": "no", "format": 3,
            }),
            json!({}),
        ),
        (
            "3.1.0",
            json!({"items": [{"type": "string"}]}),
            json!({"prefixItems": [{"type": "string"}]}),
        ),
        (
            "3.1.0",
            json!({"patternProperties": {"(": {}}, "additionalProperties": false}),
            json!({}),
        ),
    ] {
        assert_eq!(request(version, &json!({"A": schema})), expected);
    }
}

#[test]
fn what_is_referred_to_once_stands_in_place() {
    let schemas = json!({
        "A": {"properties": {"b": {"$ref": "#/components/schemas/B"}}},
        "B": {"$ref": "#/components/schemas/C"},
        "C": {"type": "string"},
    });
    let expected = json!({"properties": {"b": {"type": "string"}}});
    assert_eq!(request("3.1.0", &schemas), expected);
}

#[test]
fn cycles_are_kept_as_definitions() {
    let schemas = json!({
        "A": {"type": "object", "properties": {
            "left": {"$ref": "#/components/schemas/A"}, "next": {"$ref": "#/components/schemas/B"},
        }},
        "B": {"type": "array", "items": {"$ref": "#/components/schemas/B"}},
    });
    let made = request("3.1.0", &schemas);
    assert_eq!(made["properties"]["next"], json!({"$ref": "#/$defs/B"}));
    assert_eq!(
        made["$defs"]["B"],
        json!({"type": "array", "items": {"$ref": "#/$defs/B"}})
    );
    let validator = jsonschema::validator_for(&made).unwrap();
    assert!(validator.is_valid(&json!({"left": {"left": {"next": [[], [[]]]}}})));
    assert!(!validator.is_valid(&json!({"left": {"left": {"next": [[], [1]]}}})));
}

#[test]
fn what_stands_beside_a_reference_counts() {
    let beside = json!({
        "A": {"properties": {
            "p": {"$ref": "#/components/schemas/B", "description": "mine", "nullable": true, "maxLength": 3},
        }},
        "B": {"type": "string", "description": "theirs"},
    });
    assert_eq!(
        request("3.0.0", &beside)["properties"]["p"],
        json!({"type": ["string", "null"], "description": "mine"})
    );
    let made = request("3.1.0", &beside);
    assert!(jsonschema::is_valid(&made, &json!({"p": "abc"})));
    assert!(!jsonschema::is_valid(&made, &json!({"p": "abcd"})));
}

#[test]
fn references_that_lead_nowhere_are_said_so() {
    for target in [
        "#/components/schemas/None",
        "other.yaml",
        "#/components/schemas/L",
    ] {
        let schemas = json!({
            "A": {"properties": {"p": {"$ref": target}}}, "L": {"$ref": "#/components/schemas/L"},
        });
        let (made, cut) = derived("3.1.0", &schemas, SchemaDirection::Request, BIG);
        assert_eq!(made["properties"]["p"], json!({"description": NOWHERE}));
        assert!(cut);
    }
}

#[test]
fn large_schemas_lose_their_depths() {
    let mut deep = json!({"type": "string", "description": "x".repeat(900)});
    for _ in 0..20 {
        deep =
            json!({"type": "object", "description": "y".repeat(100), "properties": {"in": deep}});
    }
    let (made, cut) = derived("3.1.0", &json!({"A": deep}), SchemaDirection::Request, 2000);
    assert!(cut);
    assert!(made.to_string().len() < 2500, "{}", made.to_string().len());
    assert!(made.to_string().contains(CUT));
    assert_eq!(made["properties"]["in"]["type"], "object");
}

#[test]
fn hostile_schemas_stay_small() {
    // Each level refers to the next one twice: in place, they would be 2^40.
    let doubling: Map<String, Value> = (0..40)
        .map(|level| {
            let next = json!({"$ref": format!("#/components/schemas/L{}", level + 1)});
            let name = if level == 0 {
                "A".to_owned()
            } else {
                format!("L{level}")
            };
            (name, json!({"properties": {"a": next, "b": next}}))
        })
        .collect();
    let chain: Map<String, Value> = (0..5_000)
        .map(|level| {
            let next = json!({"$ref": format!("#/components/schemas/L{}", level + 1)});
            let name = if level == 0 {
                "A".to_owned()
            } else {
                format!("L{level}")
            };
            (name, json!({"items": next}))
        })
        .collect();
    let same: Vec<Value> = (0..20_000)
        .map(|_| json!({"$ref": "#/components/schemas/A"}))
        .collect();
    let long: Vec<Value> = (0..30_000).map(Value::from).collect();
    for schemas in [
        json!(doubling),
        json!(chain),
        json!({"A": {"anyOf": same}}),
        json!({"A": {"enum": long}}),
        json!({"A": {"required": long, "description": "z".repeat(300_000)}}),
        json!({"A": {"default": "z".repeat(300_000)}}),
        json!({"A": {"properties": {"z".repeat(300_000): {}}}}),
    ] {
        for direction in [SchemaDirection::Request, SchemaDirection::Response] {
            let (made, _) = derived("3.1.0", &schemas, direction, 20_000);
            assert!(made.to_string().len() < 60_000);
            jsonschema::validator_for(&made).unwrap();
        }
    }
}

/// A schema of a few kilobytes that takes 2^60 steps to check, were it kept as it is.
#[test]
fn checking_a_value_is_never_endless() {
    let next = |level: usize| json!({"$ref": format!("#/components/schemas/L{}", level + 1)});
    let in_place = |level| json!({"allOf": [next(level), next(level)]});
    let below = |level| {
        let property = json!({"properties": {"a": next(level)}});
        json!({"anyOf": [property, property], "allOf": [property]})
    };
    let mut instance = json!({});
    for _ in 0..100 {
        instance = json!({"a": instance});
    }
    for level in [&in_place as &dyn Fn(usize) -> Value, &below] {
        let schemas: Map<String, Value> = (0..60)
            .map(|number| match number {
                0 => ("A".to_owned(), level(0)),
                _ => (format!("L{number}"), level(number)),
            })
            .chain([("L60".to_owned(), json!({"type": "object"}))])
            .collect();
        for direction in [SchemaDirection::Request, SchemaDirection::Response] {
            let (made, cut) = derived("3.1.0", &json!(schemas), direction, BIG);
            assert!(cut);
            assert!(
                jsonschema::validator_for(&made)
                    .unwrap()
                    .is_valid(&instance)
            );
        }
    }
}

#[test]
fn responses_need_nothing_that_is_only_written() {
    let schemas = json!({"A": {
        "properties": {"password": {"writeOnly": true}, "id": {"readOnly": true}},
        "required": ["password", "id"],
    }});
    let (made, _) = derived("3.0.0", &schemas, SchemaDirection::Response, BIG);
    assert_eq!(made["required"], json!(["id"]));
}

proptest! {
    #[test]
    fn any_schema_becomes_one_that_can_be_compiled(schema in crate::arbitrary::json()) {
        for version in ["3.0.0", "3.1.0"] {
            let schemas = json!({"A": schema});
            for max in [BIG, 100] {
                let (made, _) = derived(version, &schemas, SchemaDirection::Request, max);
                if let Err(error) = jsonschema::validator_for(&made) {
                    prop_assert!(false, "{}: {}", made, error);
                }
            }
        }
    }
}
