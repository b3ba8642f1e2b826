//! Arguments of tool calls, checked against the schema that the tool announces.
//!
//! The schema is a document's and the arguments are the subject's: schemas that could take for ever are not checked
//! against, and nothing outside of a schema is looked up.

use std::fmt::Write as _;

use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};

use super::mcp_server::has_templates;

/// How large a schema may be when every reference is followed, and how deep.
const MAX_UNFOLDED: usize = 50_000;
const MAX_DEPTH: usize = 64;
/// How much memory a compiled pattern may take.
const MAX_PATTERN_BYTES: usize = 256 << 10;
/// How many faults are told, and how much of each.
const MAX_FAULTS: usize = 5;
const MAX_FAULT_CHARS: usize = 300;

/// What arguments are checked against; by default, nothing.
#[derive(Debug, Default)]
pub(super) struct ArgumentSchema(Option<Validator>);

/// Why arguments cannot be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unchecked {
    #[error("`inputSchema` is no schema")]
    NoSchema,
    #[error("`inputSchema` has templates")]
    Templates,
    #[error("`inputSchema` refers to something outside of it, to itself, or is too large")]
    Unbearable,
}

/// What is wrong with arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct ArgumentFault(String);

impl ArgumentSchema {
    /// Compiles the schema of a tool. Without one, any arguments will do.
    pub(super) fn of(schema: Option<&Value>) -> Result<Self, Unchecked> {
        let schema = match schema {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(schema) => schema,
        };
        if has_templates(schema) {
            return Err(Unchecked::Templates);
        }
        if !is_bearable(schema, schema, 0, &mut MAX_UNFOLDED.clone()) {
            return Err(Unchecked::Unbearable);
        }
        let patterns = PatternOptions::regex()
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES);
        let options = jsonschema::options().offline();
        let validator = options.with_pattern_options(patterns).build(schema);
        validator
            .map(|validator| Self(Some(validator)))
            .map_err(|_| Unchecked::NoSchema)
    }

    /// Whether the arguments of a call fit. Absent ones are none.
    pub(super) fn check(&self, arguments: Option<&Value>) -> Result<(), ArgumentFault> {
        let Some(validator) = &self.0 else {
            return Ok(());
        };
        let none = json!({});
        let arguments = arguments.filter(|given| !given.is_null()).unwrap_or(&none);
        if validator.is_valid(arguments) {
            return Ok(());
        }
        let mut told = String::new();
        for fault in validator.iter_errors(arguments).take(MAX_FAULTS) {
            let what: String = fault.to_string().chars().take(MAX_FAULT_CHARS).collect();
            let place = fault.instance_path().to_string();
            let place = if place.is_empty() {
                "arguments"
            } else {
                &place
            };
            let separator = if told.is_empty() { "" } else { "; " };
            // Writing to a text cannot fail.
            let _ = write!(told, "{separator}{place}: {what}");
        }
        Err(ArgumentFault(told))
    }
}

/// Whether a schema stays within itself and within bounds, all references followed. One that leads to itself has no
/// end, and is not.
fn is_bearable(root: &Value, schema: &Value, depth: usize, left: &mut usize) -> bool {
    if depth > MAX_DEPTH || *left == 0 {
        return false;
    }
    *left -= 1;
    match schema {
        Value::Array(items) => items
            .iter()
            .all(|item| is_bearable(root, item, depth + 1, left)),
        Value::Object(map) => map.iter().all(|(key, value)| match (key.as_str(), value) {
            ("$ref", Value::String(place)) => place
                .strip_prefix('#')
                .and_then(|pointer| root.pointer(pointer))
                .is_some_and(|target| is_bearable(root, target, depth + 1, left)),
            (
                "$id" | "$anchor" | "$dynamicRef" | "$dynamicAnchor" | "$recursiveRef",
                Value::String(_),
            ) => false,
            (_, value) => is_bearable(root, value, depth + 1, left),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let schema = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"],
            "$defs": {"n": {"type": "integer"}}});
        let schema = ArgumentSchema::of(Some(&schema)).unwrap();
        assert_eq!(schema.check(Some(&json!({"n": 1}))), Ok(()));
        for (arguments, told) in [
            (Some(json!({"n": "x"})), "/n: "),
            (Some(json!([])), "arguments: "),
            (Some(json!(null)), "arguments: "),
            (None, "required"),
        ] {
            let fault = schema.check(arguments.as_ref()).unwrap_err();
            assert!(fault.to_string().contains(told), "{fault}");
        }
        let long = json!({"n": "x".repeat(100_000)});
        assert!(schema.check(Some(&long)).unwrap_err().0.len() < 2_000);
        assert_eq!(ArgumentSchema::default().check(None), Ok(()));
    }

    #[test]
    fn schemas_that_could_take_for_ever_are_not_checked_against() {
        let mut definitions = serde_json::Map::new();
        for level in 0..24 {
            let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
            definitions.insert(format!("L{level}"), json!({"allOf": [next, next]}));
        }
        definitions.insert("L24".to_owned(), json!({}));
        for (schema, why) in [
            (json!({"allOf": [{"$ref": "#"}]}), Unchecked::Unbearable),
            (
                json!({"$ref": "https://example.com/s"}),
                Unchecked::Unbearable,
            ),
            (json!({"$ref": "#/$defs/none"}), Unchecked::Unbearable),
            (
                json!({"$ref": "#/$defs/L0", "$defs": definitions}),
                Unchecked::Unbearable,
            ),
            (json!({"type": 7}), Unchecked::NoSchema),
            (json!({"const": "{{x}}"}), Unchecked::Templates),
        ] {
            assert_eq!(
                ArgumentSchema::of(Some(&schema)).unwrap_err(),
                why,
                "{schema}"
            );
        }
        assert!(ArgumentSchema::of(None).is_ok() && ArgumentSchema::of(Some(&json!(null))).is_ok());
    }
}
