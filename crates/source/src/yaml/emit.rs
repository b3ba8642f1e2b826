//! Writes JSON values as canonical YAML: block style, two spaces, keys in the order given.
//!
//! Reading the output back gives the same value, whatever the strings hold; a property test below
//! insists on it.

use std::fmt::Write as _;

use serde_json::Value;

use crate::invisible::is_invisible;
use crate::yaml::scalar::{YamlScalar, resolve_plain};

/// Keys longer than this are written in the explicit form, because YAML bounds implicit keys.
const MAX_IMPLICIT_KEY: usize = 512;

/// Writes `value` as one canonical YAML document that ends in a newline.
///
/// ```
/// use proofhouse_source::to_yaml;
/// use serde_json::json;
/// assert_eq!(to_yaml(&json!({"oatf": "0.1", "tags": ["a", "no"]})),
///     "oatf: \"0.1\"\ntags:\n  - a\n  - \"no\"\n");
/// ```
#[must_use]
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => write_map(&mut out, map, 0),
        Value::Array(items) if !items.is_empty() => write_seq(&mut out, items, 0),
        // A block scalar at the root would need an indent below column zero.
        Value::String(text) => {
            write_inline_string(&mut out, text);
            out.push('\n');
        }
        _ => {
            write_inline(&mut out, value);
            out.push('\n');
        }
    }
    out
}

/// Writes a text as a scalar on one line, quoted where it has to be.
///
/// ```
/// assert_eq!(proofhouse_source::to_inline_scalar("plain text"), "plain text");
/// assert_eq!(proofhouse_source::to_inline_scalar("a: b"), "\"a: b\"");
/// ```
#[must_use]
pub fn to_inline_scalar(text: &str) -> String {
    let mut out = String::new();
    write_inline_string(&mut out, text);
    out
}

fn write_map(out: &mut String, map: &serde_json::Map<String, Value>, indent: usize) {
    for (position, (key, value)) in map.iter().enumerate() {
        if position > 0 {
            pad(out, indent);
        }
        write_entry(out, key, value, indent);
    }
}

fn write_entry(out: &mut String, key: &str, value: &Value, indent: usize) {
    if key.len() > MAX_IMPLICIT_KEY {
        out.push_str("? ");
        write_inline_string(out, key);
        out.push('\n');
        pad(out, indent);
        out.push(':');
    } else {
        write_inline_string(out, key);
        out.push(':');
    }
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            pad(out, indent + 2);
            write_map(out, map, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            pad(out, indent + 2);
            write_seq(out, items, indent + 2);
        }
        _ => {
            out.push(' ');
            write_leaf(out, value, indent);
        }
    }
}

fn write_seq(out: &mut String, items: &[Value], indent: usize) {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            pad(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => write_map(out, map, indent + 2),
            Value::Array(items) if !items.is_empty() => write_seq(out, items, indent + 2),
            _ => write_leaf(out, item, indent),
        }
    }
}

/// Writes a scalar or an empty collection, and ends the line.
fn write_leaf(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(text) if is_literal_block(text) => write_block(out, text, indent + 2),
        _ => {
            write_inline(out, value);
            out.push('\n');
        }
    }
}

fn write_inline(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            let _ = write!(out, "{number}");
        }
        Value::String(text) => write_inline_string(out, text),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn write_inline_string(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
    } else {
        write_quoted(out, text);
    }
}

fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push('"');
}

fn write_block(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    let trailing = text.len() - body.len();
    out.push_str(match trailing {
        0 => "|-\n",
        1 => "|\n",
        _ => "|+\n",
    });
    for line in body.split('\n') {
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
        out.push('\n');
    }
    for _ in 1..trailing {
        out.push('\n');
    }
}

/// Whether a text reads best, and safely, as a literal block.
fn is_literal_block(text: &str) -> bool {
    let body = text.trim_end_matches('\n');
    text.contains('\n')
        && !body.is_empty()
        && !body.starts_with([' ', '\t', '\n'])
        && text.chars().all(|c| c == '\n' || c == '\t' || is_printable(c))
        // Lines of blanks only would be read back as empty ones.
        && body.split('\n').all(|line| line.is_empty() || !line.trim_matches([' ', '\t']).is_empty())
}

/// Whether a text can stand without quotes and still be read as the same string, here and by
/// readers that still follow YAML 1.1.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else {
        return false;
    };
    if !(first.is_alphabetic() || matches!(first, '_' | '/' | '$' | '(' | '\\' | ';')) {
        return false;
    }
    !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        // These end a plain scalar inside flow collections; quoting keeps the text portable.
        && !text.contains([',', '[', ']', '{', '}'])
        && text.chars().all(|c| c == ' ' || (is_printable(c) && !c.is_whitespace()))
        && matches!(resolve_plain(text), YamlScalar::Text(_))
        && !is_yaml_1_1_word(text)
}

fn is_yaml_1_1_word(text: &str) -> bool {
    ["y", "n", "yes", "no", "on", "off"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

/// Characters that may stand in YAML text as they are, less the ones nobody can see.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
        && !is_invisible(c)
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadLimits, Source};
    use proptest::prelude::*;
    use serde_json::json;

    fn read_back(text: &str) -> Value {
        Source::read(text, &ReadLimits::default())
            .unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
            .root()
            .to_value(&mut |_| panic!("out of range"))
    }

    #[test]
    fn writes_every_shape() {
        let value = json!({
            "map": {"a": 1, "b": {}},
            "list": [1, [2, 3], {"x": "y", "z": []}, []],
            "block": "one\n\ntwo\n",
            "strip": "one\ntwo",
            "keep": "one\n\n\n",
            "odd key: x": null,
            "bool": true,
            "float": 1.5,
        });
        let text = to_yaml(&value);
        assert_eq!(
            text,
            "map:\n  a: 1\n  b: {}\nlist:\n  - 1\n  - - 2\n    - 3\n  - x: \"y\"\n    z: []\n  - []\nblock: |\n  one\n\n  two\nstrip: |-\n  one\n  two\nkeep: |+\n  one\n\n\n\"odd key: x\": null\nbool: true\nfloat: 1.5\n"
        );
        assert_eq!(read_back(&text), value);
    }

    #[test]
    fn strings_that_look_like_something_else_are_quoted() {
        for text in [
            "",
            " ",
            "true",
            "No",
            "null",
            "~",
            "1",
            "1.5",
            "0x1f",
            "2026-01-15",
            "12:30",
            "- a",
            "a: b",
            "a #b",
            "a:",
            "#a",
            "*a",
            "&a",
            "!a",
            "|",
            ">",
            "@a",
            "%a",
            "`a`",
            "'a'",
            "<<",
            "a\tb",
            "a\r\nb",
            "\u{feff}a",
            "\u{200b}",
            "\u{e0041}",
            "a ",
            " a",
            "---",
            "...",
            "[a]",
            "\n",
            "\n\n",
            "  \n",
            "a\n \nb",
            " a\nb",
            "a\n\n",
            "é",
            "日本語",
            "🙂 a",
            "\u{85}",
            "\u{7f}",
        ] {
            for value in [
                json!(text),
                json!([text]),
                json!({ text: text }),
                json!([{ "k": text }]),
            ] {
                assert_eq!(
                    read_back(&to_yaml(&value)),
                    value,
                    "{text:?}\n{}",
                    to_yaml(&value)
                );
            }
        }
    }

    #[test]
    fn nothing_invisible_is_written_as_it_is() {
        // The Arabic letter mark, the Mongolian vowel separator and annotations were.
        for (text, written) in [
            ("a\u{61c}b", "\"a\\u061cb\"\n"),
            ("a\u{180e}b", "\"a\\u180eb\"\n"),
            ("a\u{fffa}b", "\"a\\ufffab\"\n"),
            ("a\u{fe0f}b", "\"a\\ufe0fb\"\n"),
            ("a\u{e0041}b", "\"a\\U000e0041b\"\n"),
        ] {
            assert_eq!(to_yaml(&json!(text)), written);
        }
    }

    #[test]
    fn long_keys_take_the_explicit_form() {
        let value = json!({ "k".repeat(3000): {"a": [1]}, "z": 1 });
        assert_eq!(read_back(&to_yaml(&value)), value);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e300f64..1e300).prop_map(Value::from),
            "\\PC*".prop_map(Value::from),
            "[ \t\n\r:#a\\-|>'\"{},\\[\\]&*!%@?`~]{0,12}".prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[ -~\n]{0,8}", inner), 0..5)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn reads_back_what_it_wrote(value in any_value()) {
            // NUL is refused by the reader before YAML is even looked at, and is escaped here.
            let text = to_yaml(&value);
            prop_assert_eq!(read_back(&text), value, "{}", text);
        }

        #[test]
        fn reading_never_panics(text in "\\PC*|[ \t\n:#a\\-|>'\"{},\\[\\]&*!%@?`~]{0,60}") {
            let _ = Source::read_leniently(&text, &ReadLimits::default());
        }
    }
}
