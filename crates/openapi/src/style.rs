//! Styles: how the value of a parameter is written in a path, a query, a header or a cookie.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use proofhouse_manifest::interpolate::encode;

/// How deep `deepObject` goes; what stands deeper is written as JSON.
const MAX_DEEP: usize = 16;

/// What `allowReserved` leaves as it is. `#`, `&`, `+` and `=` would end the value or begin another.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'[')
    .remove(b']');

/// The styles of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
}

/// A style and how it is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) style: Style,
    /// Whether each item of a list, or each entry of an object, stands for itself.
    pub(crate) explode: bool,
    /// Whether reserved characters stay as they are.
    pub(crate) reserved: bool,
}

impl Style {
    /// The style of a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "simple" => Self::Simple,
            "label" => Self::Label,
            "matrix" => Self::Matrix,
            "form" => Self::Form,
            "spaceDelimited" => Self::SpaceDelimited,
            "pipeDelimited" => Self::PipeDelimited,
            "deepObject" => Self::DeepObject,
            _ => return None,
        })
    }
}

/// A value taken apart; nothing for what is not given.
enum ValueParts {
    Nothing,
    One(String),
    List(Vec<String>),
    Pairs(Vec<(String, String)>),
}

impl ValueParts {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Nothing,
            Value::Array(items) => {
                let items = items.iter().filter(|item| !item.is_null());
                Self::List(items.map(text_of).collect())
            }
            Value::Object(map) => {
                let entries = map.iter().filter(|(_, value)| !value.is_null());
                let pairs = entries.map(|(key, value)| (key.clone(), text_of(value)));
                Self::Pairs(pairs.collect())
            }
            one => Self::One(text_of(one)),
        }
    }

    /// All of it with one way to encode.
    fn map(self, encode: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::One(one) => Self::One(encode(&one)),
            Self::List(items) => Self::List(items.iter().map(|item| encode(item)).collect()),
            Self::Pairs(pairs) => {
                let pairs = pairs.iter();
                Self::Pairs(
                    pairs
                        .map(|(key, value)| (encode(key), encode(value)))
                        .collect(),
                )
            }
        }
    }
}

/// A value within a text.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Keys and values in one row, as the styles that do not explode write them.
fn row(pairs: Vec<(String, String)>) -> Vec<String> {
    let both = pairs.into_iter().flat_map(|(key, value)| [key, value]);
    both.collect()
}

fn joined(pairs: &[(String, String)], separator: &str) -> String {
    let pairs = pairs.iter().map(|(key, value)| format!("{key}={value}"));
    pairs.collect::<Vec<_>>().join(separator)
}

/// A value in a path, encoded.
pub(crate) fn in_path(name: &str, value: &Value, shape: Shape) -> String {
    let parts = ValueParts::of(value).map(encode);
    let name = encode(name);
    match (shape.style, parts) {
        (_, ValueParts::Nothing) => String::new(),
        (Style::Label, ValueParts::One(one)) => format!(".{one}"),
        (Style::Label, ValueParts::List(items)) => {
            let separator = if shape.explode { "." } else { "," };
            format!(".{}", items.join(separator))
        }
        (Style::Label, ValueParts::Pairs(pairs)) if shape.explode => {
            format!(".{}", joined(&pairs, "."))
        }
        (Style::Label, ValueParts::Pairs(pairs)) => format!(".{}", row(pairs).join(",")),
        (Style::Matrix, ValueParts::One(one)) if one.is_empty() => format!(";{name}"),
        (Style::Matrix, ValueParts::One(one)) => format!(";{name}={one}"),
        (Style::Matrix, ValueParts::List(items)) if shape.explode => {
            let items = items.iter().map(|item| format!(";{name}={item}"));
            items.collect()
        }
        (Style::Matrix, ValueParts::List(items)) => format!(";{name}={}", items.join(",")),
        (Style::Matrix, ValueParts::Pairs(pairs)) if shape.explode => {
            format!(";{}", joined(&pairs, ";"))
        }
        (Style::Matrix, ValueParts::Pairs(pairs)) => format!(";{name}={}", row(pairs).join(",")),
        (_, parts) => simple(parts, shape.explode),
    }
}

/// A value in a header, as it is.
pub(crate) fn in_header(value: &Value, shape: Shape) -> String {
    simple(ValueParts::of(value), shape.explode)
}

fn simple(parts: ValueParts, explode: bool) -> String {
    match parts {
        ValueParts::Nothing => String::new(),
        ValueParts::One(one) => one,
        ValueParts::List(items) => items.join(","),
        ValueParts::Pairs(pairs) if explode => joined(&pairs, ","),
        ValueParts::Pairs(pairs) => row(pairs).join(","),
    }
}

/// A value in a query, a form or a cookie: pairs of names and values, encoded.
pub(crate) fn in_query(name: &str, value: &Value, shape: Shape) -> Vec<(String, String)> {
    let encoded = |text: &str| {
        if shape.reserved {
            encode_reserved(text)
        } else {
            encode(text)
        }
    };
    if shape.style == Style::DeepObject && (value.is_object() || value.is_array()) {
        let mut pairs = Vec::new();
        deep(name, value, 0, &mut |name, value| {
            pairs.push((encode(name), encoded(value)));
        });
        return pairs;
    }
    let name = encode(name);
    let separator = match shape.style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        Style::Simple | Style::Label | Style::Matrix | Style::Form | Style::DeepObject => ",",
    };
    match ValueParts::of(value).map(encoded) {
        ValueParts::Nothing => Vec::new(),
        ValueParts::One(one) => vec![(name, one)],
        ValueParts::List(items) if shape.explode => {
            let items = items.into_iter().map(|item| (name.clone(), item));
            items.collect()
        }
        // A list without items says nothing.
        ValueParts::List(items) if items.is_empty() => Vec::new(),
        ValueParts::List(items) => vec![(name, items.join(separator))],
        ValueParts::Pairs(pairs) if shape.explode => pairs,
        ValueParts::Pairs(pairs) if pairs.is_empty() => Vec::new(),
        ValueParts::Pairs(pairs) => vec![(name, row(pairs).join(separator))],
    }
}

/// Names like `a[b][0]`. What lists look like is not specified; numbers are what most servers read.
fn deep(name: &str, value: &Value, depth: usize, add: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::Null => {}
        Value::Object(map) if depth < MAX_DEEP => {
            for (key, value) in map {
                deep(&format!("{name}[{key}]"), value, depth + 1, add);
            }
        }
        Value::Array(items) if depth < MAX_DEEP => {
            for (number, value) in items.iter().enumerate() {
                deep(&format!("{name}[{number}]"), value, depth + 1, add);
            }
        }
        one => add(name, &text_of(one)),
    }
}

/// Encodes what must be; percent-encoded characters pass, unless they would break a line.
fn encode_reserved(text: &str) -> String {
    let mut encoded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (before, from) = rest.split_at(at);
        encoded.extend(utf8_percent_encode(before, RESERVED));
        let digits = from.get(1..3).filter(|digits| {
            let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            hex && !matches!(digits.to_ascii_lowercase().as_str(), "0a" | "0d" | "00")
        });
        match digits {
            Some(_) => {
                encoded.push_str(&from[..3]);
                rest = &from[3..];
            }
            None => {
                encoded.push_str("%25");
                rest = &from[1..];
            }
        }
    }
    encoded.extend(utf8_percent_encode(rest, RESERVED));
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shape(style: Style, explode: bool) -> Shape {
        Shape {
            style,
            explode,
            reserved: false,
        }
    }

    fn query(value: &Value, style: Style, explode: bool) -> String {
        joined(&in_query("color", value, shape(style, explode)), "&")
    }

    /// The table of the specification: style, explode, then empty, text, list and object.
    #[test]
    fn the_table_of_the_specification() {
        let values = [
            json!(""),
            json!("blue"),
            json!(["blue", "black", "brown"]),
            json!({"R": 100, "G": 200, "B": 150}),
        ];
        use Style::{DeepObject, Form, Label, Matrix, PipeDelimited, Simple, SpaceDelimited};
        for (style, explode, expected) in [
            (
                Matrix,
                false,
                [
                    ";color",
                    ";color=blue",
                    ";color=blue,black,brown",
                    ";color=R,100,G,200,B,150",
                ],
            ),
            (
                Matrix,
                true,
                [
                    ";color",
                    ";color=blue",
                    ";color=blue;color=black;color=brown",
                    ";R=100;G=200;B=150",
                ],
            ),
            (
                Label,
                false,
                [".", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"],
            ),
            (
                Label,
                true,
                [".", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"],
            ),
            (
                Simple,
                false,
                ["", "blue", "blue,black,brown", "R,100,G,200,B,150"],
            ),
            (
                Simple,
                true,
                ["", "blue", "blue,black,brown", "R=100,G=200,B=150"],
            ),
        ] {
            for (value, expected) in values.iter().zip(expected) {
                let made = in_path("color", value, shape(style, explode));
                assert_eq!(made, expected, "{style:?} {explode} {value}");
                if style == Simple {
                    assert_eq!(in_header(value, shape(style, explode)), expected);
                }
            }
        }
        for (style, explode, expected) in [
            (
                Form,
                false,
                [
                    "color=",
                    "color=blue",
                    "color=blue,black,brown",
                    "color=R,100,G,200,B,150",
                ],
            ),
            (
                Form,
                true,
                [
                    "color=",
                    "color=blue",
                    "color=blue&color=black&color=brown",
                    "R=100&G=200&B=150",
                ],
            ),
        ] {
            for (value, expected) in values.iter().zip(expected) {
                assert_eq!(
                    query(value, style, explode),
                    expected,
                    "{style:?} {explode} {value}"
                );
            }
        }
        let [_, _, list, object] = &values;
        assert_eq!(
            query(list, SpaceDelimited, false),
            "color=blue%20black%20brown"
        );
        assert_eq!(
            query(object, SpaceDelimited, false),
            "color=R%20100%20G%20200%20B%20150"
        );
        assert_eq!(
            query(list, PipeDelimited, false),
            "color=blue%7Cblack%7Cbrown"
        );
        assert_eq!(
            query(object, PipeDelimited, false),
            "color=R%7C100%7CG%7C200%7CB%7C150"
        );
        assert_eq!(
            query(object, DeepObject, true),
            "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"
        );
    }

    #[test]
    fn values_are_encoded_and_nothing_is_left_out_of_sight() {
        assert_eq!(
            in_path("a", &json!(["x/y", "?,"]), shape(Style::Simple, false)),
            "x%2Fy,%3F%2C"
        );
        assert_eq!(
            query(&json!("a&b=c#d+e f"), Style::Form, true),
            "color=a%26b%3Dc%23d%2Be%20f"
        );
        assert_eq!(query(&json!(null), Style::Form, true), "");
        assert_eq!(query(&json!([]), Style::Form, false), "");
        assert_eq!(
            query(&json!([1, null, true]), Style::Form, true),
            "color=1&color=true"
        );
        assert_eq!(
            query(&json!([[1], {"a": 2}]), Style::Form, true),
            "color=%5B1%5D&color=%7B%22a%22%3A2%7D"
        );
        assert_eq!(
            query(
                &json!({"a": {"b": [1, {"c": "&"}]}}),
                Style::DeepObject,
                true
            ),
            "color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=%26"
        );
        assert_eq!(query(&json!("x"), Style::DeepObject, true), "color=x");
        let mut nested = json!(1);
        for _ in 0..100 {
            nested = json!({"n": nested});
        }
        assert_eq!(
            in_query("c", &nested, shape(Style::DeepObject, true)).len(),
            1
        );
    }

    #[test]
    fn reserved_characters_can_stay() {
        for (text, expected) in [
            ("/a?b:c@[d];,", "/a?b:c@[d];,"),
            ("a&b=c#d+e f", "a%26b%3Dc%23d%2Be%20f"),
            ("%41%zz%", "%41%25zz%25"),
            ("%0d%0A", "%250d%250A"),
            ("é%é", "%C3%A9%25%C3%A9"),
        ] {
            assert_eq!(encode_reserved(text), expected, "{text}");
        }
    }
}
