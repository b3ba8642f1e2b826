//! Tells a format by the first lines: each that clearly is of one has a vote, even when it is cut off.

use super::{FORMATS, Format};

/// Lines that are looked at. One odd line among them does not decide for all that follow.
const MAX_LINES: usize = 64;

/// Keys of one object that are looked at.
const MAX_KEYS: usize = 64;

/// A key of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectKey<'a> {
    pub(crate) name: &'a str,
    /// Whether its value is an object or a list, or a text of one.
    pub(crate) opens: bool,
}

pub(crate) fn has(keys: &[ObjectKey<'_>], name: &str) -> bool {
    keys.iter().any(|key| key.name == name)
}

/// Whether these are all the lines that are looked at.
pub(crate) fn is_enough(start: &[u8]) -> bool {
    let lines = start.split_inclusive(|byte| *byte == b'\n');
    let whole = lines.filter(|line| line.ends_with(b"\n") && !line.trim_ascii().is_empty());
    whole.count() >= MAX_LINES
}

/// The format most lines are of; where two have as many, the one that is harder to be taken for.
pub(crate) fn detect(start: &[u8]) -> Option<Format> {
    let mut rest = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start);
    let mut votes = [0_usize; FORMATS.len()];
    let mut seen = 0;
    while seen < MAX_LINES && !rest.is_empty() {
        let line_end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        if rest[..line_end].trim_ascii().is_empty() {
            rest = &rest[line_end..];
            continue;
        }
        let object = read_object(rest);
        let found = FORMATS
            .iter()
            .position(|row| (row.recognises)(&object.keys));
        // An object over several lines has a vote for each, and those within have none.
        let end = match found {
            Some(_) => line_end.max(object.end),
            None => line_end,
        };
        let lines = memchr::memchr_iter(b'\n', &rest[..end]).count().max(1);
        let lines = lines.min(MAX_LINES - seen);
        if let Some(found) = found {
            votes[found] += lines;
        }
        seen += lines;
        rest = &rest[end..];
    }
    let most = votes.iter().copied().max().filter(|most| *most > 0)?;
    let winner = votes.iter().position(|count| *count == most)?;
    Some(FORMATS[winner].format)
}

/// What can be told of an object.
#[derive(Default)]
struct Object<'a> {
    keys: Vec<ObjectKey<'a>>,
    /// Where it, or what is there of it, ends.
    end: usize,
}

/// The object at the beginning of `bytes`, or the first object of the list there; after a short text
/// without braces if need be. Stops without complaint where the JSON stops.
fn read_object(bytes: &[u8]) -> Object<'_> {
    let line_end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    let Some(open) = memchr::memchr(b'{', &bytes[..line_end]) else {
        return Object::default();
    };
    let mut keys: Vec<ObjectKey<'_>> = Vec::new();
    let mut depth = 0_usize;
    // The text before a colon is a key.
    let mut last_text = None;
    let mut position = open;
    while let Some(&byte) = bytes.get(position) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    position += 1;
                    break;
                }
            }
            b'"' => {
                let Some(length) = text_length(&bytes[position + 1..]) else {
                    // The line is broken, or cut off: what comes after is another.
                    return Object { keys, end: 0 };
                };
                last_text = std::str::from_utf8(&bytes[position + 1..position + 1 + length]).ok();
                position += length + 1;
            }
            b':' if depth == 1 && keys.len() < MAX_KEYS => {
                if let Some(name) = last_text.take() {
                    let value = bytes[position + 1..].trim_ascii_start();
                    let value = value
                        .strip_prefix(b"\"")
                        .unwrap_or(value)
                        .trim_ascii_start();
                    let opens = matches!(value.first(), Some(b'{' | b'['));
                    keys.push(ObjectKey { name, opens });
                }
            }
            _ => {}
        }
        position += 1;
    }
    Object {
        keys,
        end: position.min(bytes.len()),
    }
}

/// Bytes up to the closing quote; `None` when it is not there, or the line ends first.
fn text_length(bytes: &[u8]) -> Option<usize> {
    let mut position = 0;
    loop {
        match bytes.get(position)? {
            b'"' => return Some(position),
            b'\n' => return None,
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_keys() {
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{}"#,
            "x".repeat(1000)
        );
        for (start, expected) in [
            (
                r#"{"proofhouse_trace": 1, "message": 2}"#,
                Some(Format::Trace),
            ),
            (
                r#"{"seq": 1, "protocol": "mcp", "operation": "x", "content": {}}"#,
                Some(Format::Trace),
            ),
            ("{\n  \"resourceSpans\": [\n", Some(Format::Otlp)),
            (r#"{"resourceLogs": []}"#, Some(Format::Otlp)),
            (r#"[{"jsonrpc": "2.0"}]"#, Some(Format::JsonRpc)),
            (r#"{"id": 1, "result": {}}"#, Some(Format::JsonRpc)),
            (
                r#"{"dir": "in", "msg": {"protocol": 1, "operation": 2}}"#,
                Some(Format::JsonRpc),
            ),
            (
                "2026-01-02T03:04:05Z -> {\"jsonrpc\": \"2.0\"}",
                Some(Format::JsonRpc),
            ),
            (&long, Some(Format::JsonRpc)),
            ("\u{feff}{\"resourceSpans\": []}", Some(Format::Otlp)),
            (
                "\n\n{\"seq\": 1, \"con\n{\"jsonrpc\": \"2.0\"}\n",
                Some(Format::JsonRpc),
            ),
            // One odd line does not decide, wherever it stands.
            (
                "{\"protocol\": \"http\", \"operation\": \"listen\"}\n{\"jsonrpc\": \"2.0\"}\n{\"jsonrpc\": \"2.0\"}\n",
                Some(Format::JsonRpc),
            ),
            (
                "{\"level\": \"info\", \"msg\": \"started\"}\n{\"protocol\": \"mcp\", \"operation\": \"x\"}\n",
                Some(Format::Trace),
            ),
            (
                "{\"method\": \"GET\"}\n{\"method\": \"GET\"}\n{\n  \"resourceSpans\": [\n {\"data\": {}},\n {\"method\": 1}\n ]\n}\n",
                Some(Format::Otlp),
            ),
            (
                "{\n{\"jsonrpc\": \"2.0\"}\n{\"jsonrpc\": \"2.0\"}\n",
                Some(Format::JsonRpc),
            ),
            (r#"{"level": "info", "msg": "started"}"#, None),
            (
                r#"{"data": "{\"jsonrpc\": \"2.0\"}"}"#,
                Some(Format::JsonRpc),
            ),
            (r#"{"data": [{}]}"#, Some(Format::JsonRpc)),
            ("", None),
            ("hello\nworld\n", None),
            (r#"{"a": {"jsonrpc": 1}, "b\"jsonrpc": 2}"#, None),
            (r#"{"jsonrpc"#, None),
        ] {
            assert_eq!(detect(start.as_bytes()), expected, "{start}");
        }
        let many = "{\"jsonrpc\": 1}\n\n".repeat(MAX_LINES);
        assert!(is_enough(many.as_bytes()));
        assert!(!is_enough(&many.as_bytes()[..many.len() - 3]));
        assert_eq!(
            detect(b"\xff\xfe\n{\"resourceSpans\": []}"),
            Some(Format::Otlp)
        );
    }
}
