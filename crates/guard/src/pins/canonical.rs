//! The canonical form of a definition: two that mean the same have one form.
//!
//! Order means nothing among the members of an object, the `required`, `enum` and `type` of a schema, its `anyOf`,
//! `oneOf` and `allOf`, and the arguments of a prompt. `1.0` is `1`. Everything else counts, each letter of it.

use serde_json::{Map, Number, Value};

use super::PinKind;

/// The canonical form of a definition.
///
/// ```
/// use proofhouse_guard::pins::{PinKind, canonical};
/// use serde_json::json;
///
/// let one = json!({"name": "a", "inputSchema": {"required": ["x", "y"], "type": "object"}});
/// let two = json!({"inputSchema": {"type": "object", "required": ["y", "x"]}, "name": "a"});
/// assert_eq!(canonical(PinKind::Tool, &one), canonical(PinKind::Tool, &two));
/// ```
#[must_use]
pub fn canonical(kind: PinKind, item: &Value) -> Value {
    let Value::Object(members) = item else {
        return plain(item);
    };
    sorted(members.iter().map(|(key, value)| {
        let value = match (kind, key.as_str()) {
            (PinKind::Tool, "inputSchema" | "outputSchema") => schema(value),
            (PinKind::Prompt, "arguments") => set(value, plain),
            (PinKind::Tool | PinKind::Prompt | PinKind::ResourceTemplate, _) => plain(value),
        };
        (key.clone(), value)
    }))
}

/// The canonical form of the card of an agent.
#[must_use]
pub fn canonical_card(card: &Value) -> Value {
    plain(card)
}

/// The canonical form of a value that is no schema, such as the card of an agent.
pub(super) fn plain(value: &Value) -> Value {
    match value {
        Value::Object(members) => sorted(
            members
                .iter()
                .map(|(key, value)| (key.clone(), plain(value))),
        ),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Number(number) => Value::Number(whole(number)),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// The canonical form of a JSON Schema.
fn schema(value: &Value) -> Value {
    let Value::Object(members) = value else {
        return plain(value);
    };
    sorted(members.iter().map(|(key, value)| {
        let value = match key.as_str() {
            "required" | "enum" | "type" => set(value, plain),
            "anyOf" | "oneOf" | "allOf" => set(value, schema),
            "prefixItems" => each(value, schema),
            "items" if value.is_array() => each(value, schema),
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                of_members(value, schema)
            }
            "dependentRequired" => of_members(value, |value| set(value, plain)),
            "items"
            | "additionalProperties"
            | "additionalItems"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "propertyNames"
            | "contains"
            | "contentSchema"
            | "not"
            | "if"
            | "then"
            | "else" => schema(value),
            _ => plain(value),
        };
        (key.clone(), value)
    }))
}

/// A list whose order means nothing.
fn set(value: &Value, form: impl Fn(&Value) -> Value) -> Value {
    let Value::Array(items) = value else {
        return form(value);
    };
    let mut items: Vec<(String, Value)> = items
        .iter()
        .map(|item| {
            let item = form(item);
            (item.to_string(), item)
        })
        .collect();
    items.sort_by(|a, b| a.0.cmp(&b.0));
    items.into_iter().map(|(_, item)| item).collect()
}

/// A list whose order counts.
fn each(value: &Value, form: impl Fn(&Value) -> Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(form).collect(),
        other => form(other),
    }
}

/// An object whose keys are names, with values of one form.
fn of_members(value: &Value, form: impl Fn(&Value) -> Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter();
            sorted(members.map(|(key, value)| (key.clone(), form(value))))
        }
        other => plain(other),
    }
}

fn sorted(members: impl Iterator<Item = (String, Value)>) -> Value {
    let mut members: Vec<(String, Value)> = members.collect();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    Value::Object(members.into_iter().collect::<Map<String, Value>>())
}

/// A number as an integer where it is one.
fn whole(number: &Number) -> Number {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "below 2^53, without a fraction"
            )]
            let integer = float as i64;
            Number::from(integer)
        }
        _ => number.clone(),
    }
}
