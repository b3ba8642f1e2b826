//! Values as text, and how deep they are, without recursion: a value that a program built may be nested deeper than any
//! stack is.

use serde_json::{Map, Value};

/// How deep a value may be where it is given to code that recurses.
pub(crate) const MAX_VALUE_DEPTH: usize = 512;

/// How large a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueShape {
    /// Values in it, with itself.
    pub(super) nodes: usize,
    /// Levels of lists and maps.
    pub(super) depth: usize,
}

/// The shape of a value, unless it is nested deeper than `levels`.
pub(super) fn shape_within(value: &Value, levels: usize) -> Option<ValueShape> {
    let mut shape = ValueShape { nodes: 0, depth: 0 };
    let mut open = vec![(value, 0)];
    while let Some((value, outside)) = open.pop() {
        shape.nodes += 1;
        let depth = outside + usize::from(value.is_array() || value.is_object());
        if depth > levels {
            return None;
        }
        shape.depth = shape.depth.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth))),
            Value::Object(map) => open.extend(map.values().map(|value| (value, depth))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Some(shape)
}

/// Whether lists and maps of a value are nested deeper than `levels`.
pub(crate) fn nests_deeper(value: &Value, levels: usize) -> bool {
    shape_within(value, levels).is_none()
}

/// A copy of a value; what is nested deeper than [`MAX_VALUE_DEPTH`] is null in it.
pub(crate) fn shallow_copy(value: &Value) -> Value {
    if nests_deeper(value, MAX_VALUE_DEPTH) {
        cut(value, MAX_VALUE_DEPTH)
    } else {
        value.clone()
    }
}

fn cut(value: &Value, levels: usize) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => Value::Null,
        Value::Array(items) => items.iter().map(|item| cut(item, levels - 1)).collect(),
        Value::Object(map) => {
            let entries = map.iter();
            Value::Object(
                entries
                    .map(|(key, value)| (key.clone(), cut(value, levels - 1)))
                    .collect(),
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// What is still to be written of a list or a map.
enum UnwrittenRest<'v> {
    List(std::slice::Iter<'v, Value>),
    Map(serde_json::map::Iter<'v>),
    Sorted(std::vec::IntoIter<(&'v String, &'v Value)>),
}

/// Writes compact JSON, with the keys sorted or in the order they have.
pub(super) fn write_json(out: &mut String, value: &Value, sorted: bool) {
    let mut open: Vec<UnwrittenRest<'_>> = Vec::new();
    let mut next = Some(value);
    loop {
        if let Some(value) = next.take() {
            match value {
                Value::Null => out.push_str("null"),
                Value::Bool(true) => out.push_str("true"),
                Value::Bool(false) => out.push_str("false"),
                Value::Number(number) => out.push_str(&number.to_string()),
                Value::String(text) => write_json_string(out, text),
                Value::Array(items) => {
                    out.push('[');
                    open.push(UnwrittenRest::List(items.iter()));
                }
                Value::Object(map) => {
                    out.push('{');
                    open.push(entries(map, sorted));
                }
            }
        }
        let Some(rest) = open.last_mut() else { return };
        let (entry, end) = match rest {
            UnwrittenRest::List(items) => (items.next().map(|item| (None, item)), ']'),
            UnwrittenRest::Map(entries) => {
                (entries.next().map(|(key, value)| (Some(key), value)), '}')
            }
            UnwrittenRest::Sorted(entries) => {
                (entries.next().map(|(key, value)| (Some(key), value)), '}')
            }
        };
        let Some((key, value)) = entry else {
            out.push(end);
            open.pop();
            continue;
        };
        // Texts end in a quote, so a bracket that was written last was opened last.
        if !out.ends_with(['[', '{']) {
            out.push(',');
        }
        if let Some(key) = key {
            write_json_string(out, key);
            out.push(':');
        }
        next = Some(value);
    }
}

fn entries(map: &Map<String, Value>, sorted: bool) -> UnwrittenRest<'_> {
    if !sorted {
        return UnwrittenRest::Map(map.iter());
    }
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    UnwrittenRest::Sorted(entries.into_iter())
}

fn write_json_string(out: &mut String, text: &str) {
    out.push('"');
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[copied..at]);
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
        copied = at + 1;
    }
    out.push_str(&text[copied..]);
    out.push('"');
}

/// The text of a value in templates and of what extractors find: a text as it is, anything else as compact JSON in the
/// order it has.
pub(super) fn to_text(value: &Value) -> std::borrow::Cow<'_, str> {
    if let Value::String(text) = value {
        return text.into();
    }
    let mut out = String::new();
    write_json(&mut out, value, false);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn writes_what_the_library_writes() {
        for value in [
            json!([]),
            json!({}),
            json!([[], [[]], {}, {"b": {}, "a": [1, "[", "{"]}]),
            json!({"[": "{", "{": ["["], "n": null, "t": true, "f": false, "x": -1.5}),
            json!("\"\\\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}é"),
        ] {
            let mut out = String::new();
            write_json(&mut out, &value, false);
            assert_eq!(out, value.to_string());
        }
        let value = json!([[[1]], {"a": []}, 2]);
        assert!(nests_deeper(&value, 2) && !nests_deeper(&value, 3));
        let shape = ValueShape { nodes: 7, depth: 3 };
        assert_eq!(shape_within(&value, 3), Some(shape));
        assert_eq!(cut(&value, 2), json!([[null], {"a": null}, 2]));
        assert_eq!(shallow_copy(&value), value);
    }

    proptest! {
        #[test]
        fn texts_are_json_strings(text in any::<String>()) {
            let value = json!([text]);
            let mut out = String::new();
            write_json(&mut out, &value, true);
            prop_assert_eq!(out, serde_json::to_string(&value).unwrap());
        }
    }
}
