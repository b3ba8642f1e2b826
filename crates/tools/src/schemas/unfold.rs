//! How large schemas are with every reference followed, which is what checking a value against them may cost.
//!
//! Forty small definitions that each name the next one twice are a trillion when they are followed. What leads
//! back to itself counts once: validators keep what they found out about it.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// A schema without its definitions: its own values, and the definitions it names.
struct Outline {
    own: u64,
    names: Vec<usize>,
}

/// The size of some schemas that share definitions, with all references followed.
pub(super) fn unfolded(values: &[Value], definitions: &Map<String, Value>) -> u64 {
    let numbers: HashMap<&str, usize> = definitions.keys().map(String::as_str).zip(0..).collect();
    let outlines: Vec<Outline> = definitions
        .values()
        .map(|definition| Outline::of(definition, &numbers))
        .collect();
    let mut sizes: Vec<Option<u64>> = vec![None; outlines.len()];
    let mut whole: u64 = 0;
    for value in values {
        let outline = Outline::of(value, &numbers);
        whole = whole.saturating_add(outline.own);
        for name in outline.names {
            whole = whole.saturating_add(size(name, &outlines, &mut sizes));
        }
    }
    whole
}

/// The size of a definition. Without recursion, since a chain of definitions may be long.
fn size(start: usize, outlines: &[Outline], sizes: &mut [Option<u64>]) -> u64 {
    // Definitions on the way from the start, how far each was followed, and what was found so far.
    let mut open: Vec<(usize, usize, u64)> = Vec::new();
    let mut is_open = vec![false; outlines.len()];
    if sizes[start].is_none() {
        open.push((start, 0, outlines[start].own));
        is_open[start] = true;
    }
    while let Some((at, next, sum)) = open.last_mut() {
        let Some(name) = outlines[*at].names.get(*next).copied() else {
            sizes[*at] = Some(*sum);
            is_open[*at] = false;
            open.pop();
            continue;
        };
        match sizes[name] {
            Some(size) => *sum = sum.saturating_add(size),
            None if is_open[name] => *sum = sum.saturating_add(1),
            None => {
                // It is added when it is known, by coming here again.
                open.push((name, 0, outlines[name].own));
                is_open[name] = true;
                continue;
            }
        }
        *next += 1;
    }
    sizes[start].unwrap_or(u64::MAX)
}

impl Outline {
    fn of(schema: &Value, numbers: &HashMap<&str, usize>) -> Self {
        let mut outline = Self {
            own: 0,
            names: Vec::new(),
        };
        let mut open = vec![schema];
        while let Some(value) = open.pop() {
            outline.own += 1;
            match value {
                Value::Array(items) => open.extend(items),
                Value::Object(map) => {
                    let target = map.get("$ref").and_then(Value::as_str);
                    let target = target.and_then(|target| target.strip_prefix("#/$defs/"));
                    let number = target.and_then(|target| numbers.get(target));
                    outline.names.extend(number);
                    open.extend(map.values());
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
