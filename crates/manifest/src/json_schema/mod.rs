//! JSON Schemas that others wrote: they are checked against only where that cannot take for ever.
//!
//! A schema can be small and cost everything: by references that double, by chains of references that are
//! followed by recursion, by patterns that backtrack. One that does is told to the model as it is, and
//! values are left for its author to check.

mod unfold;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

pub use unfold::{extent, unfolded};

/// How large schemas may be when every reference is followed. Checking a value may take that many steps.
pub const MAX_UNFOLDED: u64 = 1_000_000;

/// How deep they may be then. Compiling and checking go as deep, on the stack of whoever calls.
const MAX_DEPTH: usize = 256;

/// How many patterns a schema may have; each takes memory as long as the schema is there.
const MAX_PATTERNS: usize = 200;

/// How much memory a compiled pattern may take, and the states that are made while it is searched for.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// A validator for a schema of someone who may be hostile; none where the schema is none, where it leads out
/// of itself, or where it could cost too much.
///
/// Patterns are matched in linear time. Those that cannot be are not checked; the rest of the schema is.
pub fn validator(schema: &Value) -> Option<Validator> {
    if !is_bearable(schema) {
        return None;
    }
    compile(schema).or_else(|| {
        let mut without = schema.clone();
        remove_patterns(&mut without).then(|| compile(&without))?
    })
}

/// Whether a schema stays within itself and within bounds.
pub fn is_bearable(schema: &Value) -> bool {
    extent(schema).is_some_and(|extent| {
        extent.values <= MAX_UNFOLDED
            && extent.depth <= MAX_DEPTH
            && extent.patterns <= MAX_PATTERNS
    })
}

fn compile(schema: &Value) -> Option<Validator> {
    let patterns = PatternOptions::regex()
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES);
    let options = jsonschema::options().offline();
    options.with_pattern_options(patterns).build(schema).ok()
}

/// Takes out what matches texts; tells whether there was something. Values that are only compared with stay.
fn remove_patterns(schema: &mut Value) -> bool {
    match schema {
        Value::Array(items) => {
            let mut found = false;
            for item in items {
                found |= remove_patterns(item);
            }
            found
        }
        Value::Object(map) => {
            let mut found = map.get("pattern").is_some_and(Value::is_string);
            if found {
                map.shift_remove("pattern");
            }
            for (key, value) in map.iter_mut() {
                if !matches!(key.as_str(), "enum" | "const" | "default" | "examples") {
                    found |= remove_patterns(value);
                }
            }
            found
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Definitions that each refer to the next one `times` times; the last is a text.
    fn chain(levels: usize, times: usize) -> Value {
        let mut definitions = serde_json::Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
            definitions.insert(format!("L{level}"), json!({"allOf": vec![next; times]}));
        }
        definitions.insert(format!("L{levels}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/L0", "$defs": definitions})
    }

    #[test]
    fn schemas_that_cost_too_much_are_not_checked() {
        for (name, schema) in [
            ("doubling", chain(24, 2)),
            ("a long chain", chain(5_000, 1)),
            ("far", json!({"$ref": "https://example.com/s.json"})),
            ("a file", json!({"$ref": "file:///etc/passwd"})),
            ("relative", json!({"$ref": "other.json"})),
            ("nowhere", json!({"$ref": "#/$defs/none"})),
            (
                "anchor",
                json!({"$ref": "#name", "$defs": {"a": {"$anchor": "name"}}}),
            ),
            (
                "dynamic",
                json!({"$dynamicRef": "#/$defs/a", "$defs": {"a": {}}}),
            ),
            (
                "another base",
                json!({"items": {"$id": "https://a.test/", "$ref": "#"}}),
            ),
            (
                "huge pattern",
                json!({"patternProperties": {"(?:a{1000}){1000}": false}}),
            ),
            (
                "unknown",
                json!({"$schema": "https://a.test/draft", "type": "object"}),
            ),
        ] {
            assert!(validator(&schema).is_none(), "{name}");
        }
        let many: serde_json::Map<String, Value> = (0..1000)
            .map(|number| (format!("p{number}"), json!({"pattern": "a{900}"})))
            .collect();
        assert!(validator(&json!({"properties": many})).is_none());
    }

    #[test]
    fn other_schemas_are_checked() {
        for (schema, good, bad) in [
            (chain(10, 2), json!("a"), json!(1)),
            (chain(40, 1), json!("a"), json!(1)),
            (
                json!({"$ref": "#/definitions/a%20b~1c", "definitions": {"a b/c": {"type": "null"}}}),
                json!(null),
                json!(1),
            ),
            (
                json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["v"]}),
                json!({"v": 1, "next": {"v": 2}}),
                json!({"v": 1, "next": {"next": {}}}),
            ),
            (json!({"pattern": "^(a+)+$"}), json!("aaa"), json!("aab")),
            // A pattern that looks ahead cannot be matched in linear time, so only the type counts.
            (
                json!({"type": "string", "pattern": "^(?!a)(b+)+$"}),
                json!("zzz"),
                json!(3),
            ),
            (
                json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "integer"}),
                json!(3),
                json!("3"),
            ),
        ] {
            let validator = validator(&schema).unwrap_or_else(|| panic!("{schema}"));
            assert!(validator.is_valid(&good), "{schema} {good}");
            assert!(!validator.is_valid(&bad), "{schema} {bad}");
        }
    }

    #[test]
    fn the_deepest_schemas_fit_on_a_small_stack() {
        // As deep as they may be: each link is an object in a list in an object.
        let schema = chain(MAX_DEPTH / 3 - 2, 1);
        let checked = std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn(move || validator(&schema).map(|validator| validator.is_valid(&json!(1))));
        assert_eq!(checked.unwrap().join().unwrap(), Some(false));
    }
}
