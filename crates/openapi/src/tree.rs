//! A compact tree of JSON values: a description of ten megabytes is kept in less than fifty.
//!
//! The values of a container stand side by side in one list, keys and short texts are kept once. A place in
//! the list names a value for as long as the tree lives, which is what `$ref` needs.

use std::collections::HashMap;
use std::fmt;

use proofhouse_source::{NodeRef, YamlScalar};
use serde_json::{Map, Number, Value};

/// How many values a description may have. GitHub's, with 1,200 operations, has 260,000.
const MAX_NODES: usize = 3_000_000;

/// Longer texts are rarely the same, so they are not looked up.
const MAX_SHARED_TEXT: usize = 48;

/// Maps with more entries than this are searched by a sorted list of their keys.
const MAX_UNSORTED: u32 = 16;

/// The name of a value in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id(u32);

#[derive(Debug, Clone, Copy, PartialEq)]
enum SchemaNode {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text { start: u32, length: u32 },
    List { start: u32, length: u32 },
    Map { start: u32, length: u32 },
}

/// A tree of values.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<SchemaNode>,
    /// The key of each value, as a number of `key_texts`; zero in lists.
    keys: Vec<u32>,
    text: String,
    key_texts: Vec<(u32, u32)>,
    key_numbers: HashMap<Box<str>, u32>,
    /// For large maps, by where they start: their places in the order of their keys.
    sorted: HashMap<u32, Box<[u32]>>,
    root: Option<Id>,
}

/// Why a tree could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it has more than {MAX_NODES} values")]
pub struct TooManyValues;

impl Tree {
    /// Reads JSON text.
    pub(crate) fn from_json(text: &[u8]) -> Result<Self, serde_json::Error> {
        let mut builder = TreeBuilder::default();
        let mut reader = serde_json::Deserializer::from_slice(text);
        let root = serde::de::DeserializeSeed::deserialize(&mut builder, &mut reader)?;
        reader.end()?;
        Ok(builder.finish(root))
    }

    /// Takes over what was read from YAML.
    pub(crate) fn from_yaml(root: NodeRef<'_>) -> Result<Self, TooManyValues> {
        let mut builder = TreeBuilder::default();
        let root = builder.yaml(root)?;
        Ok(builder.finish(root))
    }

    /// Takes over a value.
    #[cfg(test)]
    pub(crate) fn from_value(value: &Value) -> Self {
        Self::from_json(value.to_string().as_bytes()).unwrap_or_default()
    }

    /// The outermost value.
    pub(crate) fn root(&self) -> Option<Id> {
        self.root
    }

    fn node(&self, id: Id) -> SchemaNode {
        self.nodes
            .get(id.0 as usize)
            .copied()
            .unwrap_or(SchemaNode::Null)
    }

    /// A text.
    pub(crate) fn text(&self, id: Id) -> Option<&str> {
        match self.node(id) {
            SchemaNode::Text { start, length } => self.slice(start, length),
            _ => None,
        }
    }

    fn slice(&self, start: u32, length: u32) -> Option<&str> {
        let start = start as usize;
        self.text.get(start..start + length as usize)
    }

    /// A truth value.
    pub(crate) fn flag(&self, id: Id) -> Option<bool> {
        match self.node(id) {
            SchemaNode::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Whether the value is a map.
    pub(crate) fn is_map(&self, id: Id) -> bool {
        matches!(self.node(id), SchemaNode::Map { .. })
    }

    /// The value of a key. Of a key that is there twice, the last one counts.
    pub(crate) fn get(&self, map: Id, key: &str) -> Option<Id> {
        let SchemaNode::Map { start, length } = self.node(map) else {
            return None;
        };
        let number = *self.key_numbers.get(key)?;
        if let Some(places) = self.sorted.get(&start) {
            let after = places.partition_point(|place| self.keys[*place as usize] <= number);
            let place = *places.get(after.checked_sub(1)?)?;
            return (self.keys[place as usize] == number).then_some(Id(place));
        }
        let places = start..start + length;
        let mut places = places.rev();
        places
            .find(|place| self.keys[*place as usize] == number)
            .map(Id)
    }

    /// The value at the end of a way of keys.
    pub(crate) fn at(&self, from: Id, keys: &[&str]) -> Option<Id> {
        keys.iter().try_fold(from, |id, key| self.get(id, key))
    }

    /// The text of a key.
    pub(crate) fn text_at(&self, map: Id, key: &str) -> Option<&str> {
        self.text(self.get(map, key)?)
    }

    /// The truth value of a key.
    pub(crate) fn flag_at(&self, map: Id, key: &str) -> Option<bool> {
        self.flag(self.get(map, key)?)
    }

    /// The entries of a map; none for anything else.
    pub(crate) fn entries(&self, map: Id) -> impl Iterator<Item = (&str, Id)> {
        let places = match self.node(map) {
            SchemaNode::Map { start, length } => start..start + length,
            _ => 0..0,
        };
        places.map(|place| (self.key(place), Id(place)))
    }

    fn key(&self, place: u32) -> &str {
        let number = self.keys.get(place as usize).copied().unwrap_or_default();
        let (start, length) = self
            .key_texts
            .get(number as usize)
            .copied()
            .unwrap_or_default();
        self.slice(start, length).unwrap_or_default()
    }

    /// The items of a list; none for anything else.
    pub(crate) fn items(&self, list: Id) -> impl ExactSizeIterator<Item = Id> + use<> {
        let places = match self.node(list) {
            SchemaNode::List { start, length } => start..start + length,
            _ => 0..0,
        };
        places.map(Id)
    }

    /// The key under which a map holds a value, if it is that map's own.
    pub(crate) fn key_within(&self, map: Id, value: Id) -> Option<&str> {
        match self.node(map) {
            SchemaNode::Map { start, length } if (start..start + length).contains(&value.0) => {
                Some(self.key(value.0))
            }
            _ => None,
        }
    }

    /// Whether the value is a list.
    pub(crate) fn is_list(&self, id: Id) -> bool {
        matches!(self.node(id), SchemaNode::List { .. })
    }

    /// The value at a JSON Pointer.
    pub(crate) fn pointer(&self, pointer: &str) -> Option<Id> {
        let mut at = self.root?;
        if pointer.is_empty() {
            return Some(at);
        }
        for step in pointer.strip_prefix('/')?.split('/') {
            let step = step.replace("~1", "/").replace("~0", "~");
            at = match self.node(at) {
                SchemaNode::Map { .. } => self.get(at, &step)?,
                SchemaNode::List { start, length } => {
                    let index: u32 = step.parse().ok()?;
                    (index < length).then_some(Id(start + index))?
                }
                _ => return None,
            };
        }
        Some(at)
    }

    /// The value as JSON, as long as it has at most `left` values and bytes of text.
    pub(crate) fn value(&self, id: Id, left: &mut usize) -> Option<Value> {
        *left = left.checked_sub(1)?;
        Some(match self.node(id) {
            SchemaNode::Null => Value::Null,
            SchemaNode::Bool(value) => Value::Bool(value),
            SchemaNode::Int(value) => Value::from(value),
            SchemaNode::UInt(value) => Value::from(value),
            SchemaNode::Float(value) => Number::from_f64(value).map_or(Value::Null, Value::Number),
            SchemaNode::Text { start, length } => {
                *left = left.checked_sub(length as usize)?;
                Value::from(self.slice(start, length).unwrap_or_default())
            }
            SchemaNode::List { start, length } => {
                let items = (start..start + length).map(|place| self.value(Id(place), left));
                Value::Array(items.collect::<Option<_>>()?)
            }
            SchemaNode::Map { .. } => {
                let mut map = Map::new();
                for (key, value) in self.entries(id) {
                    *left = left.checked_sub(key.len())?;
                    map.insert(key.to_owned(), self.value(value, left)?);
                }
                Value::Object(map)
            }
        })
    }

    /// Whether a text behind a key, anywhere below a value, is like this.
    pub(crate) fn any_text_of(&self, key: &str, from: Id, is: &dyn Fn(&str) -> bool) -> bool {
        let found = self.text_at(from, key).is_some_and(is);
        found
            || self.items(from).any(|item| self.any_text_of(key, item, is))
            || self
                .entries(from)
                .any(|(_, value)| self.any_text_of(key, value, is))
    }

    /// A number as JSON.
    pub(crate) fn number(&self, id: Id) -> Option<Value> {
        match self.node(id) {
            SchemaNode::Int(value) => Some(Value::from(value)),
            SchemaNode::UInt(value) => Some(Value::from(value)),
            SchemaNode::Float(value) => Number::from_f64(value).map(Value::Number),
            _ => None,
        }
    }
}

/// Makes a tree from the inside out.
#[derive(Default)]
struct TreeBuilder {
    tree: Tree,
    /// Values of containers that are not whole yet, with the numbers of their keys.
    pending: Vec<(u32, SchemaNode)>,
    shared: HashMap<Box<str>, (u32, u32)>,
}

impl TreeBuilder {
    fn finish(mut self, root: SchemaNode) -> Tree {
        self.tree.root = Some(Id(count(self.tree.nodes.len())));
        self.tree.nodes.push(root);
        self.tree.keys.push(0);
        self.tree.nodes.shrink_to_fit();
        self.tree.keys.shrink_to_fit();
        self.tree.text.shrink_to_fit();
        self.tree
    }

    fn push(&mut self, key: u32, node: SchemaNode) -> Result<(), TooManyValues> {
        if self.tree.nodes.len() + self.pending.len() >= MAX_NODES {
            return Err(TooManyValues);
        }
        self.pending.push((key, node));
        Ok(())
    }

    fn add_text(&mut self, text: &str) -> (u32, u32) {
        if let Some(known) = self.shared.get(text) {
            return *known;
        }
        let place = (count(self.tree.text.len()), count(text.len()));
        self.tree.text.push_str(text);
        if text.len() <= MAX_SHARED_TEXT {
            self.shared.insert(text.into(), place);
        }
        place
    }

    fn text(&mut self, text: &str) -> SchemaNode {
        let (start, length) = self.add_text(text);
        SchemaNode::Text { start, length }
    }

    fn key(&mut self, key: &str) -> u32 {
        if let Some(number) = self.tree.key_numbers.get(key) {
            return *number;
        }
        let number = count(self.tree.key_texts.len());
        let place = self.add_text(key);
        self.tree.key_texts.push(place);
        self.tree.key_numbers.insert(key.into(), number);
        number
    }

    /// Moves what is pending since `mark` to where it stays.
    fn close(&mut self, mark: usize) -> (u32, u32) {
        let start = count(self.tree.nodes.len());
        let length = count(self.pending.len() - mark);
        for (key, node) in self.pending.drain(mark..) {
            self.tree.keys.push(key);
            self.tree.nodes.push(node);
        }
        (start, length)
    }

    fn close_list(&mut self, mark: usize) -> SchemaNode {
        let (start, length) = self.close(mark);
        SchemaNode::List { start, length }
    }

    fn close_map(&mut self, mark: usize) -> SchemaNode {
        let (start, length) = self.close(mark);
        if length > MAX_UNSORTED {
            let mut places: Vec<u32> = (start..start + length).collect();
            // Stable, so that of equal keys the last one stays last.
            places.sort_by_key(|place| self.tree.keys[*place as usize]);
            self.tree.sorted.insert(start, places.into());
        }
        SchemaNode::Map { start, length }
    }

    fn yaml(&mut self, node: NodeRef<'_>) -> Result<SchemaNode, TooManyValues> {
        let mark = self.pending.len();
        if let Some(items) = node.items() {
            for item in items {
                let item = self.yaml(item)?;
                self.push(0, item)?;
            }
            return Ok(self.close_list(mark));
        }
        if let Some(entries) = node.entries() {
            for (key, value) in entries {
                let value = self.yaml(value)?;
                let key = self.key(key);
                self.push(key, value)?;
            }
            return Ok(self.close_map(mark));
        }
        Ok(match node.scalar() {
            None | Some(YamlScalar::Null) => SchemaNode::Null,
            Some(YamlScalar::Bool(value)) => SchemaNode::Bool(value),
            Some(YamlScalar::Int(value)) => SchemaNode::Int(value),
            Some(YamlScalar::UInt(value)) => SchemaNode::UInt(value),
            Some(YamlScalar::Float(value)) => SchemaNode::Float(value),
            Some(YamlScalar::OutOfRange(text) | YamlScalar::Text(text)) => self.text(text),
        })
    }
}

/// Texts have at most 32 MB and values are counted, so nothing is ever cut here.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl<'de> serde::de::DeserializeSeed<'de> for &mut TreeBuilder {
    type Value = SchemaNode;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<SchemaNode, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> serde::de::Visitor<'de> for &mut TreeBuilder {
    type Value = SchemaNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<SchemaNode, E> {
        Ok(SchemaNode::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<SchemaNode, E> {
        Ok(SchemaNode::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<SchemaNode, E> {
        Ok(SchemaNode::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<SchemaNode, E> {
        Ok(i64::try_from(value).map_or(SchemaNode::UInt(value), SchemaNode::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<SchemaNode, E> {
        Ok(SchemaNode::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<SchemaNode, E> {
        Ok(self.text(value))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<SchemaNode, A::Error> {
        let mark = self.pending.len();
        while let Some(item) = items.next_element_seed(&mut *self)? {
            self.push(0, item).map_err(serde::de::Error::custom)?;
        }
        Ok(self.close_list(mark))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(
        self,
        mut entries: A,
    ) -> Result<SchemaNode, A::Error> {
        let mark = self.pending.len();
        while let Some(key) = entries.next_key_seed(KeyOf(self))? {
            let value = entries.next_value_seed(&mut *self)?;
            self.push(key, value).map_err(serde::de::Error::custom)?;
        }
        Ok(self.close_map(mark))
    }
}

/// Reads a key as its number.
struct KeyOf<'b>(&'b mut TreeBuilder);

impl<'de> serde::de::DeserializeSeed<'de> for KeyOf<'_> {
    type Value = u32;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<u32, D::Error> {
        reader.deserialize_str(self)
    }
}

impl serde::de::Visitor<'_> for KeyOf<'_> {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<u32, E> {
        Ok(self.0.key(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_source::{ReadLimits, Source};
    use proptest::prelude::*;
    use serde_json::json;

    fn back(tree: &Tree) -> Value {
        tree.value(tree.root().unwrap(), &mut usize::MAX.clone())
            .unwrap()
    }

    #[test]
    fn json_and_yaml_make_the_same_tree() {
        let value =
            json!({"a": [1, -2, 2.5, null, true, {"b": "x"}], "": {}, "c": u64::MAX, "d": []});
        assert_eq!(back(&Tree::from_value(&value)), value);
        let source = Source::read(&value.to_string(), &ReadLimits::default()).unwrap();
        assert_eq!(back(&Tree::from_yaml(source.root()).unwrap()), value);
    }

    #[test]
    fn keys_are_found_in_small_and_large_maps() {
        for size in [1, 16, 17, 1000] {
            let mut text = String::from("{");
            for number in 0..size {
                text.push_str(&format!("\"k{number}\": {number}, "));
            }
            text.push_str("\"k0\": \"last\"}");
            let tree = Tree::from_json(text.as_bytes()).unwrap();
            let root = tree.root().unwrap();
            assert_eq!(tree.text_at(root, "k0"), Some("last"), "{size}");
            let last = tree.get(root, &format!("k{}", size - 1)).unwrap();
            assert!(size == 1 || tree.number(last) == Some(json!(size - 1)));
            assert_eq!(tree.get(root, "none"), None);
        }
    }

    #[test]
    fn pointers_lead_to_values() {
        let tree = Tree::from_value(&json!({"a/b": {"~": [10, {"c": 1}]}}));
        let at = |pointer: &str| tree.pointer(pointer).and_then(|id| tree.number(id));
        assert_eq!(at("/a~1b/~0/1/c"), Some(json!(1)));
        assert_eq!(at("/a~1b/~0/0"), Some(json!(10)));
        for pointer in ["/a~1b/~0/2", "/a~1b/~0/x", "a", "/a~1b/~0/0/x", "/"] {
            assert_eq!(tree.pointer(pointer), None, "{pointer}");
        }
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let many = format!("[{}0]", "0,".repeat(MAX_NODES));
        let error = Tree::from_json(many.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("more than 3000000 values"), "{error}");
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let error = Tree::from_json(deep.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("recursion limit"), "{error}");
        let tree = Tree::from_value(&json!({"a": "b".repeat(100)}));
        assert_eq!(tree.value(tree.root().unwrap(), &mut 50), None);
    }

    proptest! {
        #[test]
        fn any_json_comes_back_as_it_was(value in crate::arbitrary::json()) {
            prop_assert_eq!(back(&Tree::from_value(&value)), value);
        }
    }
}
