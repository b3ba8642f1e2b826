//! One change to a value: something dropped, renamed, doubled, put in from the schema, or replaced by what does not belong there.

use serde_json::{Map, Value, json};

/// Numbers that are the same in every run.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Texts that are right in one place or another, and some that are right nowhere.
const TEXTS: &[&str] = &[
    "x",
    "",
    " ",
    "a b",
    "5s",
    "250ms",
    "PT1M",
    "0s",
    "1h30m",
    "5 s",
    "-5s",
    "examples/weather",
    "EXAMPLES",
    "a.b",
    "https://example.com/mcp",
    "http://127.0.0.1:8080",
    "ftp://example.com",
    "example.com",
    "not an address",
    "127.0.0.1",
    "127.0.0.1:80",
    "10.0.0.0/8",
    "*.example.com",
    "2026-01-15",
    "2026-13-45",
    "true",
    "1 + 1",
    "call.tool == 'x'",
    "1 +",
    "${TOKEN}",
    "${",
    "{{ x }}",
    "{{",
    "* * * * *",
    "0 3 * * 1-5",
    "61 * * * *",
    "Europe/Berlin",
    "Mars/Olympus",
    "openai:gpt-5",
    "sim:gullible",
    "sim:nobody",
    "hihg",
    "high",
    "GET",
    "PATCHY",
    "$.a.b",
    "[",
    "../x",
    "/etc/x",
    "@weekly",
    "1.5",
    "1e3",
];

fn others(chance: &mut Chance) -> Value {
    let values = [
        json!(null),
        json!(0),
        json!(7),
        json!(-1),
        json!(100_000_000_000_u64),
        json!(0.5),
        json!(1.5),
        json!(true),
        json!([]),
        json!({}),
        json!(["a"]),
        json!(["a", "a"]),
        json!([7]),
        json!([""]),
        json!({"a": "b"}),
        json!({"": 1}),
        json!([{}]),
    ];
    match chance.below(2) {
        0 => json!(*chance.of(TEXTS)),
        _ => chance.of(&values).clone(),
    }
}

/// Changes one thing.
pub(super) fn change(value: &mut Value, schema: &Value, chance: &mut Chance) {
    let mut places = Vec::new();
    all_places(value, String::new(), schema, schema, &mut places);
    let (chosen, part) = chance.of(&places).clone();
    match chance.below(8) {
        0 => remove(value, &chosen, chance),
        1 => rename(value, &chosen, chance),
        2 => double(value, &chosen),
        3 => misspell(value, &chosen),
        4 | 5 => insert(value, &chosen, schema, &part, chance),
        6 => {
            if let Some(held) = value.pointer_mut(&chosen) {
                *held = made(schema, &part, chance, 0);
            }
        }
        _ => {
            if let Some(held) = value.pointer_mut(&chosen) {
                *held = others(chance);
            }
        }
    }
}

fn remove(value: &mut Value, at: &str, chance: &mut Chance) {
    match value.pointer_mut(at) {
        Some(Value::Object(map)) => {
            if let Some(key) = map.keys().nth(chance.below(map.len())).cloned() {
                map.remove(&key);
            }
        }
        Some(Value::Array(items)) if !items.is_empty() => {
            items.remove(chance.below(items.len()));
        }
        _ => {}
    }
}

fn rename(value: &mut Value, at: &str, chance: &mut Chance) {
    if let Some(Value::Object(map)) = value.pointer_mut(at)
        && let Some(key) = map.keys().nth(chance.below(map.len())).cloned()
        && let Some(held) = map.remove(&key)
    {
        let name = match chance.below(4) {
            0 => key.to_uppercase(),
            1 => String::new(),
            2 => (*chance.of(TEXTS)).to_owned(),
            _ => format!("{key}z"),
        };
        map.insert(name, held);
    }
}

fn double(value: &mut Value, at: &str) {
    if let Some(Value::Array(items)) = value.pointer_mut(at)
        && let Some(first) = items.first().cloned()
    {
        items.push(first);
    }
}

fn misspell(value: &mut Value, at: &str) {
    if let Some(Value::String(text)) = value.pointer_mut(at) {
        let mut letters: Vec<char> = text.chars().collect();
        if letters.len() > 2 {
            letters.swap(1, 2);
        }
        *text = letters.into_iter().collect();
    }
}

/// Puts in a key that the schema knows and that is not there, or another item of a list.
fn insert(value: &mut Value, at: &str, schema: &Value, part: &Value, chance: &mut Chance) {
    let alternatives = forms(schema, part);
    if alternatives.is_empty() {
        return;
    }
    let form = chance.of(&alternatives).clone();
    match value.pointer_mut(at) {
        Some(Value::Object(map)) => {
            let Some(properties) = form["properties"].as_object() else {
                if form["additionalProperties"].is_object() {
                    let name = name_for(&form, chance);
                    map.insert(name, made(schema, &form["additionalProperties"], chance, 0));
                }
                return;
            };
            let absent: Vec<&String> = properties
                .keys()
                .filter(|key| !map.contains_key(*key))
                .collect();
            if let Some(key) = absent.get(chance.below(absent.len())) {
                let held = made(schema, &properties[*key], chance, 0);
                map.insert((*key).clone(), held);
            }
        }
        Some(Value::Array(items)) => items.push(made(schema, &form["items"], chance, 0)),
        _ => {}
    }
}

/// The forms that a part of a schema allows, without references.
fn forms(schema: &Value, part: &Value) -> Vec<Value> {
    if let Some(reference) = part["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        return schema
            .pointer(pointer)
            .map_or_else(Vec::new, |part| forms(schema, part));
    }
    let Some(alternatives) = part["anyOf"].as_array().or(part["oneOf"].as_array()) else {
        return vec![part.clone()];
    };
    let mut all: Vec<Value> = alternatives
        .iter()
        .flat_map(|one| forms(schema, one))
        .collect();
    if part.get("properties").is_some() {
        all.push(part.clone());
    }
    all
}

/// The pointers of all values with the part of the schema that they are under, but nothing below what is the author's own.
fn all_places(
    value: &Value,
    at: String,
    schema: &Value,
    part: &Value,
    into: &mut Vec<(String, Value)>,
) {
    let alternatives = forms(schema, part);
    match value {
        Value::Object(map) => {
            for (key, held) in map {
                let below = |form: &Value| {
                    form["properties"]
                        .get(key)
                        .or(form
                            .get("additionalProperties")
                            .filter(|more| more.is_object()))
                        .cloned()
                };
                let parts: Vec<Value> = alternatives.iter().filter_map(below).collect();
                if !parts.is_empty() {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    let part = json!({"anyOf": parts});
                    all_places(held, format!("{at}/{key}"), schema, &part, into);
                }
            }
        }
        Value::Array(items) => {
            let parts: Vec<&Value> = alternatives
                .iter()
                .filter_map(|form| form.get("items"))
                .collect();
            let part = json!({"anyOf": parts});
            for (number, item) in items.iter().enumerate() {
                all_places(item, format!("{at}/{number}"), schema, &part, into);
            }
        }
        _ => {}
    }
    into.push((at, part.clone()));
}

fn name_for(form: &Value, chance: &mut Chance) -> String {
    let names = &form["propertyNames"];
    match text(names, chance) {
        Value::String(name) => name,
        _ => "x".to_owned(),
    }
}

/// A text that fits, if one does; now and then any.
fn text(form: &Value, chance: &mut Chance) -> Value {
    if form.get("pattern").is_none() && form.get("minLength").is_none() {
        return json!(*chance.of(TEXTS));
    }
    let Ok(validator) = jsonschema::validator_for(form) else {
        return json!("x");
    };
    for _ in 0..12 {
        let candidate = json!(*chance.of(TEXTS));
        if validator.is_valid(&candidate) {
            return candidate;
        }
    }
    form["examples"].get(0).cloned().unwrap_or(json!("x"))
}

/// A value that a part of a schema allows, more or less.
fn made(schema: &Value, part: &Value, chance: &mut Chance, depth: usize) -> Value {
    let alternatives = forms(schema, part);
    if alternatives.is_empty() {
        return others(chance);
    }
    let form = chance.of(&alternatives).clone();
    if let Some(words) = form["enum"].as_array().filter(|words| !words.is_empty()) {
        return chance.of(words).clone();
    }
    if let Some(only) = form.get("const") {
        return only.clone();
    }
    let kind = match &form["type"] {
        Value::Array(kinds) => chance.of(kinds).clone(),
        kind => kind.clone(),
    };
    match kind.as_str() {
        Some("boolean") => json!(chance.below(2) == 0),
        Some("integer" | "number") => {
            let least = form["minimum"].clone();
            let greatest = form["maximum"].clone();
            let candidates = [least, greatest, json!(1), json!(7), json!(100_000)];
            let chosen = chance.of(&candidates).clone();
            if chosen.is_null() { json!(1) } else { chosen }
        }
        Some("string") => text(&form, chance),
        Some("array") => {
            let least = form["minItems"].as_u64().unwrap_or(0) as usize;
            let count = least + chance.below(2);
            (0..count)
                .map(|_| made(schema, &form["items"], chance, depth + 1))
                .collect()
        }
        Some("object") => mapping(schema, &form, chance, depth),
        _ => others(chance),
    }
}

fn mapping(schema: &Value, form: &Value, chance: &mut Chance, depth: usize) -> Value {
    let mut map = Map::new();
    if form["additionalProperties"].is_object() && depth < 4 {
        for _ in 0..chance.below(2) {
            let name = name_for(form, chance);
            let held = made(schema, &form["additionalProperties"], chance, depth + 1);
            map.insert(name, held);
        }
    }
    let none = Map::new();
    let properties = form["properties"].as_object().unwrap_or(&none);
    let required = form["required"].as_array();
    let is_required = |key: &String| {
        required.is_some_and(|keys| keys.iter().any(|one| one.as_str() == Some(key.as_str())))
    };
    for (key, part) in properties {
        if is_required(key) || (depth < 4 && chance.below(5) == 0) {
            map.insert(key.clone(), made(schema, part, chance, depth + 1));
        }
    }
    Value::Object(map)
}
