//! Arbitrary values for the property tests of this runtime.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any JSON, with the words of OpenAPI among its keys and texts.
pub(crate) fn json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(WORDS);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<i16>().prop_map(|number| json!(f64::from(number) / 4.0 + 0.125)),
        word.clone().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 6, move |inner| {
        let entry = (word.clone(), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            prop::collection::vec(entry, 0..6).prop_map(|entries| {
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value));
                Value::Object(entries.collect::<Map<_, _>>())
            }),
        ]
    })
}

/// What is nearly a parameter.
pub(crate) fn parameter() -> impl Strategy<Value = Value> {
    let places: &[&str] = &["path", "query", "header", "cookie"];
    let styles: &[&str] = &[
        "simple",
        "label",
        "matrix",
        "form",
        "deepObject",
        "pipeDelimited",
        "other",
    ];
    (
        prop::sample::select(&["a", "b", "name", "$ref", "x y"][..]),
        prop::sample::select(places),
        prop::sample::select(styles),
        any::<(bool, bool)>(),
        json(),
    )
        .prop_map(|(name, place, style, (explode, reserved), schema)| {
            json!({
                "name": name, "in": place, "style": style, "explode": explode, "allowReserved": reserved,
                "schema": schema,
            })
        })
}

const WORDS: &[&str] = &[
    "$ref",
    "#",
    "#/components/schemas/A",
    "#/paths/~1a~1{b}/get",
    "A",
    "a",
    "b",
    "openapi",
    "3.0.3",
    "3.1.0",
    "paths",
    "/a/{b}",
    "get",
    "post",
    "operationId",
    "parameters",
    "name",
    "in",
    "path",
    "query",
    "header",
    "cookie",
    "required",
    "schema",
    "content",
    "style",
    "explode",
    "form",
    "simple",
    "label",
    "matrix",
    "deepObject",
    "spaceDelimited",
    "requestBody",
    "application/json",
    "multipart/form-data",
    "application/x-www-form-urlencoded",
    "text/plain",
    "application/octet-stream",
    "encoding",
    "contentType",
    "type",
    "object",
    "array",
    "string",
    "integer",
    "null",
    "properties",
    "items",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "nullable",
    "readOnly",
    "additionalProperties",
    "enum",
    "const",
    "pattern",
    "[",
    "format",
    "binary",
    "exclusiveMinimum",
    "minimum",
    "description",
    "summary",
    "components",
    "schemas",
    "securitySchemes",
    "security",
    "apiKey",
    "http",
    "bearer",
    "basic",
    "scheme",
    "servers",
    "url",
    "variables",
    "default",
    "https://h.test/{a}",
    "/v1",
    "responses",
    "200",
    "2XX",
];
