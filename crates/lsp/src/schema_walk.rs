//! Follows a way through a JSON Schema: which keys and values may stand there, and what they are for.

use serde_json::Value;

use crate::cursor::CursorStep;

/// How many alternatives are kept at a step.
const MAX_ALTERNATIVES: usize = 256;
/// How deep references and alternatives are followed.
const MAX_NESTING: usize = 24;

/// A key or a value that may stand somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) label: String,
    pub(crate) doc: String,
    /// Of a key: whether its value begins on the next line.
    pub(crate) is_block: bool,
    pub(crate) is_required: bool,
}

/// A schema that is walked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaWalk<'a> {
    root: &'a Value,
}

impl<'a> SchemaWalk<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        Self { root }
    }

    /// The schemas that describe what is at the end of a way.
    fn at(self, path: &[CursorStep]) -> Vec<&'a Value> {
        let mut here = Vec::new();
        self.expand(self.root, 0, &mut here);
        for step in path {
            let mut next = Vec::new();
            for schema in here {
                let into = match step {
                    CursorStep::Key(key) => {
                        let known = schema.get("properties").and_then(|all| all.get(key));
                        known.or_else(|| schema.get("additionalProperties"))
                    }
                    CursorStep::Item => schema.get("items"),
                };
                if let Some(into) = into {
                    self.expand(into, 0, &mut next);
                }
            }
            here = next;
        }
        here
    }

    /// A schema and everything it refers to or offers to choose from.
    fn expand(self, schema: &'a Value, depth: usize, into: &mut Vec<&'a Value>) {
        let is_known = into.iter().any(|known| std::ptr::eq(*known, schema));
        if depth > MAX_NESTING || into.len() >= MAX_ALTERNATIVES || is_known {
            return;
        }
        into.push(schema);
        if let Some(name) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = name
                .strip_prefix('#')
                .and_then(|name| self.root.pointer(name))
        {
            self.expand(target, depth + 1, into);
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            let options = schema.get(key).and_then(Value::as_array);
            for option in options.into_iter().flatten() {
                self.expand(option, depth + 1, into);
            }
        }
    }

    /// What is said of the value at the end of a way.
    pub(crate) fn doc(self, path: &[CursorStep]) -> Option<&'a str> {
        let mut schemas = self.at(path).into_iter();
        schemas.find_map(|schema| schema.get("description")?.as_str())
    }

    /// The keys that may stand in the mapping at the end of a way.
    pub(crate) fn keys(self, path: &[CursorStep]) -> Vec<Candidate> {
        let mut keys: Vec<Candidate> = Vec::new();
        for schema in self.at(path) {
            let required = schema.get("required").and_then(Value::as_array);
            let properties = schema.get("properties").and_then(Value::as_object);
            for (label, property) in properties.into_iter().flatten() {
                if keys.iter().any(|key| key.label == *label) {
                    continue;
                }
                let mut parts = Vec::new();
                self.expand(property, 0, &mut parts);
                let mut docs = parts.iter().filter_map(|part| part.get("description"));
                let doc = docs.next().and_then(Value::as_str).unwrap_or_default();
                let is = |part: &&&Value, name: &str| part.get("type").is_some_and(|it| it == name);
                let is_block = parts
                    .iter()
                    .any(|part| is(&part, "object") || is(&part, "array"))
                    && !parts.iter().any(|part| is(&part, "string"));
                let is_required =
                    required.is_some_and(|names| names.iter().any(|name| name == label.as_str()));
                keys.push(Candidate {
                    label: label.clone(),
                    doc: doc.to_owned(),
                    is_block,
                    is_required,
                });
            }
        }
        keys
    }

    /// The values that may stand at the end of a way, where they can be listed.
    pub(crate) fn values(self, path: &[CursorStep]) -> Vec<Candidate> {
        let mut values: Vec<Candidate> = Vec::new();
        let mut add = |value: &Value, doc: &str| {
            let label = match value {
                Value::String(text) => proofhouse_source::to_inline_scalar(text),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return,
            };
            if !values.iter().any(|known| known.label == label) {
                values.push(Candidate {
                    label,
                    doc: doc.to_owned(),
                    is_block: false,
                    is_required: false,
                });
            }
        };
        for schema in self.at(path) {
            let doc = schema.get("description").and_then(Value::as_str);
            let doc = doc.unwrap_or_default();
            let lists = ["enum", "examples"].into_iter();
            let listed = lists
                .filter_map(|key| schema.get(key)?.as_array())
                .flatten();
            listed
                .chain(schema.get("const"))
                .for_each(|value| add(value, doc));
            if schema.get("type").is_some_and(|it| it == "boolean") {
                add(&Value::Bool(true), doc);
                add(&Value::Bool(false), doc);
            }
        }
        values
    }
}
