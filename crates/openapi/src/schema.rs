//! Schemas of a description as JSON Schema: references within reach, sizes bounded, OpenAPI's own words gone.
//!
//! What is referred to once stands where it is used. What is referred to more often, or refers to itself, is
//! kept in `$defs`. A schema that would be too large is made again with less depth until it fits.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use crate::description::OpenApiDescription;
use crate::error::ReferenceError;
use crate::keywords::{BASE64, cut_text, is_binary, is_positive, join, or_null, types};
use crate::names::{FunctionNames, name_of};
use crate::tree::{Id, Tree};
use proofhouse_manifest::json_schema::{MAX_UNFOLDED, unfolded};

/// How deep schemas stand within one another. JSON readers accept 128 levels, and one level here is up to three
/// of theirs.
const MAX_DEPTH: usize = 32;

/// The depths that are tried when a schema is too large.
const LESS_DEEP: [usize; 9] = [12, 8, 6, 5, 4, 3, 2, 1, 0];

/// How many values an enumeration may have, and in how many bytes.
const MAX_ENUM: usize = 500;
const MAX_ENUM_BYTES: usize = 16 << 10;

/// How long the description of one schema may be.
const MAX_DESCRIPTION: usize = 1000;

const CUT: &str = "Left out: the whole schema would be too large.";
const NOWHERE: &str = "Left out: the description refers to something that is not there.";
const LONG_ENUM: &str = "One of more values than can be listed.";

/// Whether a schema is for what is sent or for what comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaDirection {
    /// Without what is `readOnly`. Alternatives may overlap: which one is meant is the server's to say.
    Request,
    /// What is `writeOnly` is not needed.
    Response,
}

/// Schemas that share definitions.
#[derive(Debug)]
pub(crate) struct Schemas {
    /// One for each that was asked for.
    pub(crate) values: Vec<Value>,
    /// What they refer to as `#/$defs/name`.
    pub(crate) definitions: Map<String, Value>,
    /// Whether something was left out.
    pub(crate) cut: bool,
}

/// Derives schemas that have no more than about `max_bytes` together.
pub(crate) fn derive(
    description: &OpenApiDescription,
    direction: SchemaDirection,
    roots: &[Id],
    max_bytes: usize,
) -> Schemas {
    // A schema of that many values would be too large anyway.
    let uses = count_uses(description, roots, max_bytes / 2);
    let at_depth = |depth: usize| {
        let mut builder = SchemaBuilder {
            description,
            direction,
            uses: uses.as_ref(),
            max_depth: depth,
            limited: depth < MAX_DEPTH,
            left: max_bytes,
            overflow: false,
            cut: false,
            names: FunctionNames::default(),
            known: HashMap::new(),
            queue: VecDeque::new(),
            hidden: Vec::new(),
        };
        let schemas = builder.run(roots);
        let fits =
            !builder.overflow && unfolded(&schemas.values, &schemas.definitions) <= MAX_UNFOLDED;
        fits.then_some(schemas)
    };
    if let Some(whole) = at_depth(MAX_DEPTH) {
        return whole;
    }
    // Less of a schema is smaller, so the deepest that fits is found by halving: where every operation of a large
    // description has a large schema, each try counts. Nobody reads the schema of a response, so half of one is of
    // no use.
    let mut depths = match direction {
        SchemaDirection::Request => &LESS_DEEP[..],
        SchemaDirection::Response => &[],
    };
    let mut best = None;
    while !depths.is_empty() {
        let middle = depths.len() / 2;
        match at_depth(depths[middle]) {
            Some(schemas) => {
                best = Some(schemas);
                depths = &depths[..middle];
            }
            None => depths = &depths[middle + 1..],
        }
    }
    // Even with nothing in them the schemas are too many; then the names must do.
    best.unwrap_or_else(|| Schemas {
        values: vec![json!({"description": CUT}); roots.len()],
        definitions: Map::new(),
        cut: true,
    })
}

/// How often each schema is referred to; nothing when that takes too long to find out.
fn count_uses(
    description: &OpenApiDescription,
    roots: &[Id],
    most: usize,
) -> Option<HashMap<Id, u32>> {
    let tree = &description.tree;
    let mut uses = HashMap::new();
    let mut open: Vec<Id> = roots.to_vec();
    let mut visited = 0;
    while let Some(id) = open.pop() {
        visited += 1;
        if visited > most {
            return None;
        }
        if let Some(Ok(target)) = reference(description, id) {
            let count: &mut u32 = uses.entry(target).or_insert(0);
            *count += 1;
            if *count == 1 {
                open.push(target);
            }
        }
        open.extend(tree.entries(id).map(|(_, value)| value).take(most));
        open.extend(tree.items(id).take(most));
    }
    Some(uses)
}

/// What a schema refers to, if it does.
fn reference(description: &OpenApiDescription, id: Id) -> Option<Result<Id, ReferenceError>> {
    let reference = description.tree.text_at(id, "$ref")?;
    let target = description.target(reference);
    Some(target.and_then(|target| description.resolve(target)))
}

struct SchemaBuilder<'d> {
    description: &'d OpenApiDescription,
    direction: SchemaDirection,
    uses: Option<&'d HashMap<Id, u32>>,
    max_depth: usize,
    /// Whether parts may be missing, so that only rules that get weaker by it are kept.
    limited: bool,
    left: usize,
    overflow: bool,
    cut: bool,
    names: FunctionNames,
    known: HashMap<Id, String>,
    queue: VecDeque<(Id, String, usize)>,
    /// Properties that are left out of the schemas that are being made, also where only `required` names them.
    hidden: Vec<String>,
}

impl<'d> SchemaBuilder<'d> {
    fn tree(&self) -> &'d Tree {
        &self.description.tree
    }

    fn run(&mut self, roots: &[Id]) -> Schemas {
        let values = roots.iter().map(|root| self.schema(*root, 0)).collect();
        let mut definitions = Map::new();
        while let Some((id, name, depth)) = self.queue.pop_front() {
            if self.overflow {
                break;
            }
            let definition = self.schema(id, depth);
            definitions.insert(name, definition);
        }
        Schemas {
            values,
            definitions,
            cut: self.cut,
        }
    }

    fn pay(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => {
                self.left = 0;
                self.overflow = true;
            }
        }
        !self.overflow
    }

    fn note(&mut self, text: &str) -> Value {
        self.cut = true;
        self.pay(text.len());
        json!({"description": text})
    }

    fn schema(&mut self, id: Id, depth: usize) -> Value {
        if !self.pay(4) {
            return Value::Bool(true);
        }
        if let Some(flag) = self.tree().flag(id) {
            return Value::Bool(flag);
        }
        if depth > self.max_depth {
            return self.note(CUT);
        }
        let Some(target) = reference(self.description, id) else {
            return Value::Object(self.own(id, depth));
        };
        let mut beside = if self.description.is_3_0 {
            // There, what stands beside a reference has no meaning; its description is meant all the same.
            self.only(id, &["description", "nullable"])
        } else {
            self.own(id, depth)
        };
        let Ok(target) = target else {
            return self.note(NOWHERE);
        };
        let nullable = beside.shift_remove("nullable").is_some();
        let base = self.referred(target, depth);
        let value = join(base, beside);
        if nullable { or_null(value) } else { value }
    }

    /// The texts and flags of some keys.
    fn only(&mut self, id: Id, keys: &[&str]) -> Map<String, Value> {
        let mut found = Map::new();
        for key in keys {
            if let Some(text) = self.tree().text_at(id, key) {
                let text = cut_text(text, MAX_DESCRIPTION);
                self.pay(text.len());
                found.insert((*key).to_owned(), text.into());
            } else if self.tree().flag_at(id, key) == Some(true) {
                found.insert((*key).to_owned(), true.into());
            }
        }
        found
    }

    /// What a reference leads to: in place when nobody else refers to it.
    fn referred(&mut self, target: Id, depth: usize) -> Value {
        let once = self.uses.is_some_and(|uses| uses.get(&target) == Some(&1));
        if once {
            return self.schema(target, depth + 1);
        }
        let name = match self.known.get(&target) {
            Some(name) => name.clone(),
            None => {
                let name = self.names.unique(&self.name_for(target));
                self.known.insert(target, name.clone());
                let depth = if self.limited { depth + 1 } else { 0 };
                self.queue.push_back((target, name.clone(), depth));
                name
            }
        };
        self.pay(name.len() + 20);
        json!({"$ref": format!("#/$defs/{name}")})
    }

    /// A name for a definition: its title, or its key among the components.
    fn name_for(&self, target: Id) -> String {
        let tree = self.tree();
        let schemas = tree
            .root()
            .and_then(|root| tree.at(root, &["components", "schemas"]));
        let key = schemas.and_then(|schemas| tree.key_within(schemas, target));
        let title = tree.text_at(target, "title");
        name_of(key.or(title).unwrap_or("schema"))
    }

    /// The keywords of one schema.
    fn own(&mut self, id: Id, depth: usize) -> Map<String, Value> {
        let tree = self.tree();
        let mut made = Map::new();
        let mut notes: Vec<String> = Vec::new();
        let hidden_before = self.hidden.len();
        self.hide(id);
        for (key, value) in tree.entries(id) {
            if !self.pay(key.len() + 4) {
                break;
            }
            let new = match key {
                "type" => types(tree, value),
                "title" | "format" | "contentEncoding" | "contentMediaType" => self.text(value),
                "description" => {
                    let text = tree.text(value).unwrap_or_default();
                    notes.insert(0, cut_text(text, MAX_DESCRIPTION));
                    None
                }
                // An expression of someone else is shown and never compiled.
                "pattern" => {
                    let text = cut_text(tree.text(value).unwrap_or_default(), 200);
                    notes.push(format!("Pattern: `{text}`."));
                    None
                }
                "default" | "const" => self.plain(value),
                "enum" => {
                    let values = self.choices(value);
                    if values.is_none() && tree.items(value).len() > 0 {
                        notes.push(LONG_ENUM.to_owned());
                    }
                    values
                }
                "minimum" | "maximum" => tree.number(value),
                "multipleOf" => tree.number(value).filter(is_positive),
                "exclusiveMinimum" | "exclusiveMaximum" => tree.number(value),
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties" | "minContains" | "maxContains" => {
                    tree.number(value).filter(Value::is_u64)
                }
                "uniqueItems" | "deprecated" => tree.flag(value).map(Value::Bool),
                "required" => self.required(id, value),
                "properties" => self.properties(value, depth),
                "dependentSchemas" => self.map_of(value, depth),
                "items" if tree.is_list(value) => {
                    let items = self.list_of(value, depth);
                    made.extend(items.map(|items| ("prefixItems".to_owned(), items)));
                    None
                }
                "prefixItems" | "allOf" | "anyOf" | "oneOf" => self.list_of(value, depth),
                "items" | "contains" | "propertyNames" => self.one(value, depth),
                "additionalProperties" => {
                    // What patterns would allow is not known here.
                    let open = tree.get(id, "patternProperties").is_some();
                    (!open).then(|| self.one(value, depth)).flatten()
                }
                "not" | "if" | "then" | "else" | "unevaluatedProperties" | "unevaluatedItems"
                    if !self.limited =>
                {
                    self.one(value, depth)
                }
                _ => None,
            };
            made.extend(new.map(|new| (key.to_owned(), new)));
        }
        self.hidden.truncate(hidden_before);
        notes.retain(|note| !note.is_empty());
        if !notes.is_empty() {
            let text = notes.join(" ");
            self.pay(text.len());
            made.insert("description".to_owned(), text.into());
        }
        self.settle(id, made)
    }

    /// Turns what OpenAPI 3.0 says in its own way into JSON Schema.
    fn settle(&self, id: Id, mut made: Map<String, Value>) -> Map<String, Value> {
        let tree = self.tree();
        for (exclusive, bound) in [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ] {
            if tree.flag_at(id, exclusive) == Some(true)
                && let Some(value) = made.shift_remove(bound)
            {
                made.insert(exclusive.to_owned(), value);
            }
        }
        if self.direction == SchemaDirection::Request && is_binary(tree, id) {
            made.shift_remove("format");
            made.insert("contentEncoding".to_owned(), "base64".into());
            let text = made.get("description").and_then(Value::as_str);
            let text = format!("{} {BASE64}", text.unwrap_or_default());
            made.insert("description".to_owned(), text.trim_start().into());
        }
        if self.direction == SchemaDirection::Request
            && let Some(one_of) = made.shift_remove("oneOf")
        {
            if made.contains_key("anyOf") {
                match made.entry("allOf").or_insert_with(|| json!([])) {
                    Value::Array(all) => all.push(json!({"anyOf": one_of})),
                    other => *other = json!([{"anyOf": one_of}]),
                }
            } else {
                made.insert("anyOf".to_owned(), one_of);
            }
        }
        if tree.flag_at(id, "nullable") == Some(true) {
            let with_null = or_null(Value::Object(made));
            made = with_null.as_object().cloned().unwrap_or_default();
        }
        made
    }

    fn text(&mut self, value: Id) -> Option<Value> {
        let text = cut_text(self.tree().text(value)?, 200);
        self.pay(text.len());
        Some(text.into())
    }

    fn plain(&mut self, value: Id) -> Option<Value> {
        let mut left = self.left.min(MAX_ENUM_BYTES);
        let before = left;
        let found = self.tree().value(value, &mut left);
        self.pay(before - left);
        found
    }

    fn choices(&mut self, list: Id) -> Option<Value> {
        if !(1..=MAX_ENUM).contains(&self.tree().items(list).len()) {
            return None;
        }
        let Value::Array(values) = self.plain(list)? else {
            return None;
        };
        // The rules of JSON Schema ask for each value once.
        let mut seen = HashSet::new();
        let mut unique: Vec<Value> = Vec::with_capacity(values.len());
        for value in values {
            if seen.insert(value.to_string()) {
                unique.push(value);
            }
        }
        Some(unique.into())
    }

    fn required(&mut self, schema: Id, list: Id) -> Option<Value> {
        let tree = self.tree();
        let properties = tree.get(schema, "properties");
        let mut names: Vec<&str> = Vec::new();
        for name in tree.items(list).take(MAX_ENUM) {
            if !self.pay(1) {
                return None;
            }
            let Some(name) = tree.text(name) else {
                continue;
            };
            let property = properties.and_then(|properties| tree.get(properties, name));
            let is_hidden = self.hidden.iter().any(|hidden| hidden == name)
                || property.is_some_and(|property| self.is_hidden(property));
            if !is_hidden && !names.contains(&name) && self.pay(name.len()) {
                names.push(name);
            }
        }
        (!names.is_empty()).then(|| json!(names))
    }

    /// Notes the properties that the parts of a schema leave out, since any part may require them.
    fn hide(&mut self, id: Id) {
        let tree = self.tree();
        let Some(parts) = tree.get(id, "allOf") else {
            return;
        };
        for part in tree.items(parts).take(MAX_DEPTH) {
            let Ok(part) = self.description.resolve(part) else {
                continue;
            };
            let Some(properties) = tree.get(part, "properties") else {
                continue;
            };
            for (name, property) in tree.entries(properties).take(MAX_ENUM) {
                if !self.pay(1) {
                    return;
                }
                if self.is_hidden(property) && self.pay(name.len()) {
                    self.hidden.push(name.to_owned());
                }
            }
        }
    }

    fn is_hidden(&self, property: Id) -> bool {
        let key = match self.direction {
            SchemaDirection::Request => "readOnly",
            SchemaDirection::Response => "writeOnly",
        };
        let says = |id| self.tree().flag_at(id, key) == Some(true);
        says(property) || self.description.resolve(property).is_ok_and(says)
    }

    fn properties(&mut self, map: Id, depth: usize) -> Option<Value> {
        let mut made = Map::new();
        for (name, property) in self.tree().entries(map) {
            if !self.pay(1) {
                return None;
            }
            if self.direction == SchemaDirection::Request && self.is_hidden(property) {
                continue;
            }
            self.pay(name.len() + 4);
            let schema = self.schema(property, depth + 1);
            made.insert(name.to_owned(), schema);
        }
        self.tree().is_map(map).then_some(Value::Object(made))
    }

    fn map_of(&mut self, map: Id, depth: usize) -> Option<Value> {
        let mut made = Map::new();
        for (name, schema) in self.tree().entries(map) {
            if !self.pay(name.len() + 4) {
                return None;
            }
            let schema = self.one(schema, depth)?;
            made.insert(name.to_owned(), schema);
        }
        (!made.is_empty()).then_some(Value::Object(made))
    }

    fn list_of(&mut self, list: Id, depth: usize) -> Option<Value> {
        let mut made = Vec::new();
        for item in self.tree().items(list) {
            if !self.pay(1) {
                return None;
            }
            made.extend(self.one(item, depth));
        }
        (!made.is_empty()).then_some(Value::Array(made))
    }

    fn one(&mut self, schema: Id, depth: usize) -> Option<Value> {
        let is_schema = self.tree().is_map(schema) || self.tree().flag(schema).is_some();
        is_schema.then(|| self.schema(schema, depth + 1))
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
