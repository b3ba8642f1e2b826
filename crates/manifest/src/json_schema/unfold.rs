//! How large schemas are with every reference followed, which is what checking a value against them may cost.
//!
//! Forty small definitions that each name the next one twice are a trillion when they are followed. What leads
//! back to itself counts once: validators keep what they found out about it.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// How many values are looked at to measure a schema. Places within places are looked at again and again.
const MAX_WORK: u64 = 4_000_000;

/// What moves the base of references, or chooses among them while a value is checked.
const MOVING: [&str; 7] = [
    "$id",
    "$schema",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
];

/// A part of a schema that is referred to: its own values, and the parts it names.
struct Outline {
    own: u64,
    depth: usize,
    /// The parts, and how deep in this one they are named.
    names: Vec<(usize, usize)>,
}

/// How far a schema goes with every reference followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    pub values: u64,
    pub depth: usize,
    /// How many regular expressions it has; those are compiled where they stand.
    pub patterns: usize,
}

/// The size of some schemas that share definitions, with all references followed.
pub fn unfolded(values: &[Value], definitions: &Map<String, Value>) -> u64 {
    let numbers: HashMap<&str, usize> = definitions.keys().map(String::as_str).zip(0..).collect();
    let mut find = |map: &Map<String, Value>| {
        let target = map.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|target| target.strip_prefix("#/$defs/"));
        target.and_then(|target| numbers.get(target).copied())
    };
    let outlines: Vec<Outline> = definitions
        .values()
        .map(|definition| Outline::of(definition, &mut find))
        .collect();
    let mut sizes = vec![None; outlines.len()];
    let mut whole: u64 = 0;
    for value in values {
        let outline = Outline::of(value, &mut find);
        whole = whole.saturating_add(outline.own);
        for (name, _) in outline.names {
            whole = whole.saturating_add(size(name, &outlines, &mut sizes).0);
        }
    }
    whole
}

/// The extent of a schema; none if it refers to what is not in it, or in a way that cannot be followed here.
pub fn extent(root: &Value) -> Option<Extent> {
    let mut start = root.clone();
    if let Some(start) = start.as_object_mut() {
        // Definitions count where they are referred to, and what the root calls itself moves nothing.
        for key in ["$defs", "definitions", "$id"] {
            start.shift_remove(key);
        }
        // Of the drafts that had `id` in the place of `$id` too many properties look like one.
        let draft = start.shift_remove("$schema");
        let draft = draft.as_ref().and_then(Value::as_str).unwrap_or_default();
        if draft.contains("draft-03") || draft.contains("draft-04") {
            return None;
        }
    }
    let mut finder = Finder::new(root, &start);
    let first = Outline::of(&start, &mut |map| finder.visit(map));
    let mut work = first.own;
    let mut outlines: Vec<Outline> = Vec::new();
    // What is found in a target may add to the targets.
    while let Some(target) = finder.targets.get(outlines.len()).copied() {
        let outline = Outline::of(target, &mut |map| finder.visit(map));
        work = work.saturating_add(outline.own);
        outlines.push(outline);
        if work > MAX_WORK || finder.is_open {
            return None;
        }
    }
    if finder.is_open {
        return None;
    }
    let mut sizes = vec![None; outlines.len()];
    let (mut values, mut depth) = (first.own, first.depth);
    for (name, at) in &first.names {
        let (size, below) = size(*name, &outlines, &mut sizes);
        values = values.saturating_add(size);
        depth = depth.max(at.saturating_add(below));
    }
    Some(Extent {
        values,
        depth,
        patterns: finder.patterns,
    })
}

/// Finds the parts of a schema that it refers to.
struct Finder<'a> {
    root: &'a Value,
    /// The root without its definitions.
    start: &'a Value,
    numbers: HashMap<String, usize>,
    targets: Vec<&'a Value>,
    patterns: usize,
    /// Whether something refers to what cannot be found here.
    is_open: bool,
}

impl<'a> Finder<'a> {
    fn new(root: &'a Value, start: &'a Value) -> Self {
        Self {
            root,
            start,
            numbers: HashMap::new(),
            targets: Vec::new(),
            patterns: 0,
            is_open: false,
        }
    }

    /// The number of the part that an object refers to.
    fn visit(&mut self, map: &Map<String, Value>) -> Option<usize> {
        // A word of the schema has a text; a property of that name has a schema.
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        self.patterns += usize::from(text("pattern").is_some());
        if let Some(Value::Object(map)) = map.get("patternProperties") {
            self.patterns += map.len();
        }
        self.is_open |= MOVING.iter().any(|key| text(key).is_some());
        let reference = text("$ref")?;
        if let Some(known) = self.numbers.get(reference) {
            return Some(*known);
        }
        let Some(target) = self.pointed(reference) else {
            self.is_open = true;
            return None;
        };
        let number = self.targets.len();
        self.targets.push(target);
        self.numbers.insert(reference.to_owned(), number);
        Some(number)
    }

    fn pointed(&self, reference: &str) -> Option<&'a Value> {
        let pointer = percent_decode_str(reference.strip_prefix('#')?);
        let pointer = pointer.decode_utf8().ok()?;
        if pointer.is_empty() {
            Some(self.start)
        } else {
            self.root.pointer(&pointer)
        }
    }
}

/// The size and the depth of a part. Without recursion, since a chain of parts may be long.
fn size(start: usize, outlines: &[Outline], sizes: &mut [Option<(u64, usize)>]) -> (u64, usize) {
    // Parts on the way from the start, how far each was followed, and what was found so far.
    let mut open: Vec<(usize, usize, u64, usize)> = Vec::new();
    let mut is_open = vec![false; outlines.len()];
    if sizes[start].is_none() {
        open.push((start, 0, outlines[start].own, outlines[start].depth));
        is_open[start] = true;
    }
    while let Some((at, next, sum, deepest)) = open.last_mut() {
        let Some((name, level)) = outlines[*at].names.get(*next).copied() else {
            sizes[*at] = Some((*sum, *deepest));
            is_open[*at] = false;
            open.pop();
            continue;
        };
        match sizes[name] {
            Some((size, below)) => {
                *sum = sum.saturating_add(size);
                *deepest = level.saturating_add(below).max(*deepest);
            }
            None if is_open[name] => *sum = sum.saturating_add(1),
            None => {
                // It is added when it is known, by coming here again.
                open.push((name, 0, outlines[name].own, outlines[name].depth));
                is_open[name] = true;
                continue;
            }
        }
        *next += 1;
    }
    sizes[start].unwrap_or((u64::MAX, usize::MAX))
}

impl Outline {
    /// The outline of a part; `find` tells which part an object refers to.
    fn of(schema: &Value, find: &mut impl FnMut(&Map<String, Value>) -> Option<usize>) -> Self {
        let mut outline = Self {
            own: 0,
            depth: 0,
            names: Vec::new(),
        };
        let mut open = vec![(schema, 1)];
        while let Some((value, depth)) = open.pop() {
            outline.own += 1;
            outline.depth = outline.depth.max(depth);
            match value {
                Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
                Value::Object(map) => {
                    let name = find(map);
                    outline.names.extend(name.map(|name| (name, depth)));
                    open.extend(map.values().map(|value| (value, depth + 1)));
                }
                _ => {}
            }
        }
        outline
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn to(level: usize) -> Value {
        json!({"$ref": format!("#/$defs/L{level}")})
    }

    fn size_of(levels: usize, definition: impl Fn(usize) -> Value) -> u64 {
        let definitions = (0..levels).map(|level| (format!("L{level}"), definition(level)));
        unfolded(&[to(0)], &definitions.collect())
    }

    #[test]
    fn references_are_followed() {
        assert_eq!(
            unfolded(&[json!({}), json!({"type": "string"})], &Map::new()),
            3
        );
        // The reference and its text, then one definition.
        assert_eq!(size_of(1, |_| json!({})), 3);
        let doubling = size_of(20, |level| json!({"allOf": [to(level + 1), to(level + 1)]}));
        assert!((1 << 20..1 << 24).contains(&doubling), "{doubling}");
        let endless = size_of(
            500,
            |level| json!({"allOf": [to(level + 1), to(level + 1)]}),
        );
        assert_eq!(endless, u64::MAX);
    }

    #[test]
    fn what_leads_back_counts_once() {
        assert!(size_of(1, |_| json!({"properties": {"a": to(0), "b": to(0)}})) < 20);
        let ring = size_of(10_000, |level| json!({"items": to((level + 1) % 10_000)}));
        assert!(ring < 100_000, "{ring}");
        let chain = size_of(20_000, |level| json!({"items": to(level + 1)}));
        assert!(chain < 200_000, "{chain}");
    }
}
