//! JSON values read with an eye on keys that come twice, so that one value cannot hide another.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::lenient::read_mended;
use super::repair::Repairs;

/// How many readings of one message are judged.
pub(crate) const MAX_READINGS: usize = 8;

/// How many hidden values are kept. They are compared with each other, so few must do.
const MAX_HIDDEN: usize = 64;

/// How many texts of JSON within each other are looked into.
const MAX_TEXTS: usize = 4;

/// The longest text that may stand after a value on its line.
const MAX_REST: usize = 256;

/// Values that stood under a key that came again later, each with the way to it.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    values: Vec<(Vec<PathStep>, Value)>,
    /// Whether there were more than are kept.
    overflow: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Key(String),
    Index(usize),
}

/// The other ways to read a value.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// In each, earlier values stand where the usual reading has the last.
    pub(crate) others: Vec<Value>,
    /// Whether every value is in one of them.
    pub(crate) complete: bool,
}

impl Hidden {
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty() && !self.overflow
    }

    /// What to tell about them, naming one.
    pub(crate) fn describe(&self) -> String {
        let key = self.values.first().and_then(|(way, _)| match way.last() {
            Some(PathStep::Key(key)) => Some(key.chars().take(40).collect::<String>()),
            _ => None,
        });
        let key = key.unwrap_or_default();
        format!("the key {key:?} is there twice; each of its values is judged")
    }

    /// The other ways to read `value`: every hidden value is seen in one of them.
    pub(crate) fn readings(&self, value: &Value) -> Readings {
        let mut groups: Vec<Vec<&(Vec<PathStep>, Value)>> = Vec::new();
        let mut complete = !self.overflow;
        for hidden in &self.values {
            let meets = |other: &&(Vec<PathStep>, Value)| {
                hidden.0.starts_with(&other.0) || other.0.starts_with(&hidden.0)
            };
            let room = groups.iter().position(|group| !group.iter().any(meets));
            match room {
                Some(room) => groups[room].push(hidden),
                None if groups.len() + 1 < MAX_READINGS => groups.push(vec![hidden]),
                None => complete = false,
            }
        }
        let others = groups.into_iter().map(|group| {
            let mut reading = value.clone();
            for (way, earlier) in group {
                set(&mut reading, way, earlier);
            }
            reading
        });
        Readings {
            others: others.collect(),
            complete,
        }
    }

    /// What is hidden in texts of JSON within a value, for readers that look into them; and what to
    /// tell about it.
    pub(crate) fn in_texts(value: &Value) -> Option<(Self, String)> {
        let mut hidden = Self::default();
        let mut told = None;
        hidden.look_into(value, MAX_TEXTS, &mut told);
        told.map(|told| (hidden, told))
    }

    fn look_into(&mut self, value: &Value, levels: usize, told: &mut Option<String>) {
        match value {
            Value::String(text) => {
                if levels == 0 || !text.trim_ascii_start().starts_with(['{', '[']) {
                    return;
                }
                let Ok((inner, here)) = read_mended(text, &mut Repairs::default(), parse) else {
                    return;
                };
                if !here.is_empty() {
                    told.get_or_insert_with(|| here.describe());
                }
                let mut deeper = Self::default();
                deeper.look_into(&inner, levels - 1, told);
                for hidden in [here, deeper] {
                    let readings = hidden.readings(&inner);
                    self.overflow |= !readings.complete;
                    for other in readings.others {
                        self.push(Vec::new(), other.to_string().into());
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let before = self.values.len();
                    self.look_into(item, levels, told);
                    self.under(before, || PathStep::Index(index));
                }
            }
            Value::Object(map) => {
                for (key, value) in map {
                    let before = self.values.len();
                    self.look_into(value, levels, told);
                    self.under(before, || PathStep::Key(key.clone()));
                }
            }
            _ => {}
        }
    }

    /// Says where the values that were noted since stand.
    fn under(&mut self, before: usize, step: impl Fn() -> PathStep) {
        for (way, _) in &mut self.values[before..] {
            way.insert(0, step());
        }
    }

    fn push(&mut self, way: Vec<PathStep>, value: Value) {
        if self.values.len() < MAX_HIDDEN {
            self.values.push((way, value));
        } else {
            self.overflow = true;
        }
    }

    /// A key came again: `earlier`, with what it hides itself, is hidden by what came now. Hidden
    /// values from `start` to `end` belong to the object before.
    fn hide(&mut self, key: &str, earlier: Value, start: usize, end: usize) {
        if self.overflow {
            return;
        }
        let mut variants = 0;
        for (way, value) in &mut self.values[start..end] {
            if way.len() < 2 || !matches!(&way[0], PathStep::Key(first) if first == key) {
                continue;
            }
            variants += 1;
            if variants >= MAX_READINGS {
                self.overflow = true;
                break;
            }
            let mut whole = earlier.clone();
            set(&mut whole, &way[1..], value);
            way.truncate(1);
            *value = whole;
        }
        self.push(vec![PathStep::Key(key.to_owned())], earlier);
    }
}

fn set(value: &mut Value, way: &[PathStep], new: &Value) {
    if let Some(place) = find(value, way) {
        place.clone_from(new);
    }
}

fn find<'v>(value: &'v mut Value, way: &[PathStep]) -> Option<&'v mut Value> {
    way.iter().try_fold(value, |value, step| match step {
        PathStep::Key(key) => value.get_mut(key),
        PathStep::Index(index) => value.get_mut(index),
    })
}

/// A value and what it hides.
pub(crate) fn parse(text: &str) -> Result<(Value, Hidden), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = start(&mut deserializer)?;
    deserializer.end()?;
    Ok(found)
}

/// The value at the beginning of a line, and what it hides. A short text may come after it, but
/// none in which another value could hide.
pub(crate) fn parse_start(line: &str) -> Result<(Value, Hidden), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(line);
    let found = start(&mut deserializer)?;
    match deserializer.end() {
        Ok(()) => Ok(found),
        Err(error) => {
            let rest = line.get(error.column().saturating_sub(1)..).unwrap_or(line);
            if rest.len() <= MAX_REST && !rest.contains('{') {
                Ok(found)
            } else {
                Err(error)
            }
        }
    }
}

fn start<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(Value, Hidden), D::Error> {
    let mut hidden = Hidden::default();
    let value = Noting(&mut hidden).deserialize(deserializer)?;
    Ok((value, hidden))
}

/// Reads a value as [`Value`] would, and notes what it hides.
pub(crate) struct Noting<'h>(pub(crate) &'h mut Hidden);

impl<'de> DeserializeSeed<'de> for Noting<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Noting<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let before = self.0.values.len();
            let Some(item) = seq.next_element_seed(Noting(self.0))? else {
                return Ok(Value::Array(items));
            };
            if self.0.values.len() > before {
                let index = items.len();
                self.0.under(before, || PathStep::Index(index));
            }
            items.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let start = self.0.values.len();
        while let Some(key) = access.next_key::<String>()? {
            let before = self.0.values.len();
            let value = access.next_value_seed(Noting(self.0))?;
            if self.0.values.len() > before {
                self.0.under(before, || PathStep::Key(key.clone()));
            }
            match map.entry(key) {
                serde_json::map::Entry::Vacant(place) => {
                    place.insert(value);
                }
                serde_json::map::Entry::Occupied(mut place) => {
                    let earlier = place.insert(value);
                    self.0.hide(place.key(), earlier, start, before);
                }
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, last: &Value, others: &[Value]) {
        let (value, hidden) = parse(text).unwrap();
        assert_eq!(value, *last, "{text}");
        assert_eq!(
            serde_json::from_str::<Value>(text).unwrap(),
            *last,
            "{text}"
        );
        let readings = hidden.readings(&value);
        assert_eq!(readings.others, others, "{text}");
        assert!(readings.complete, "{text}");
    }

    #[test]
    fn every_value_of_a_key_is_in_some_reading() {
        check(
            r#"{"a": 1, "b": [true, null, -1.5, "x"]}"#,
            &json!({"a": 1, "b": [true, null, -1.5, "x"]}),
            &[],
        );
        check(r#"{"a": 1, "a": 2}"#, &json!({"a": 2}), &[json!({"a": 1})]);
        check(
            r#"{"a": 1, "a": 2, "a": 3, "b": 4, "b": 5}"#,
            &json!({"a": 3, "b": 5}),
            &[json!({"a": 1, "b": 4}), json!({"a": 2, "b": 5})],
        );
        check(
            r#"[0, {"p": {"q": 1, "q": {"r": 2}}}]"#,
            &json!([0, {"p": {"q": {"r": 2}}}]),
            &[json!([0, {"p": {"q": 1}}])],
        );
        check(
            r#"{"a": {"b": 1, "b": 2}, "a": 3}"#,
            &json!({"a": 3}),
            &[json!({"a": {"b": 1}}), json!({"a": {"b": 2}})],
        );
        check(
            r#"{"a": 3, "a": {"b": 1, "b": 2}}"#,
            &json!({"a": {"b": 2}}),
            &[json!({"a": {"b": 1}}), json!({"a": 3})],
        );
    }

    #[test]
    fn there_are_not_more_readings_than_can_be_judged() {
        for times in [20, 5000] {
            let text = format!("{{{}}}", vec![r#""k": 1"#; times].join(","));
            let (value, hidden) = parse(&text).unwrap();
            let readings = hidden.readings(&value);
            assert_eq!(
                (readings.others.len(), readings.complete),
                (MAX_READINGS - 1, false)
            );
            assert!(hidden.describe().contains("\"k\""));
        }
    }
}
