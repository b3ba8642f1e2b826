//! Tells a format by the keys of the first object it recognises, even when the rest is cut off.

use super::{FORMATS, Format};

/// Lines that are looked at; the first may be bad, and the others should still be found.
const MAX_LINES: usize = 64;

/// Keys of one object that are looked at.
const MAX_KEYS: usize = 64;

pub(crate) fn detect(start: &[u8]) -> Option<Format> {
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start);
    let mut rest = start;
    for _ in 0..MAX_LINES {
        let keys = top_keys(rest);
        if let Some(row) = FORMATS.iter().find(|row| (row.recognises)(&keys)) {
            return Some(row.format);
        }
        let end = memchr::memchr(b'\n', rest)?;
        rest = &rest[end + 1..];
    }
    None
}

/// The keys of the object at the beginning of `bytes`, or of the first object of the list there;
/// after a short text without braces if need be. Stops without complaint where the JSON stops.
fn top_keys(bytes: &[u8]) -> Vec<&str> {
    let line_end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    let Some(open) = memchr::memchr(b'{', &bytes[..line_end]) else {
        return Vec::new();
    };
    let mut keys = Vec::new();
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
                    break;
                }
            }
            b'"' => {
                let Some(length) = text_length(&bytes[position + 1..]) else {
                    break;
                };
                last_text = std::str::from_utf8(&bytes[position + 1..position + 1 + length]).ok();
                position += length + 1;
            }
            b':' if depth == 1 => {
                keys.extend(last_text.take());
                if keys.len() >= MAX_KEYS {
                    break;
                }
            }
            _ => {}
        }
        position += 1;
    }
    keys
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
            ("", None),
            ("hello\nworld\n", None),
            (r#"{"a": {"jsonrpc": 1}, "b\"jsonrpc": 2}"#, None),
            (r#"{"jsonrpc"#, None),
        ] {
            assert_eq!(detect(start.as_bytes()), expected, "{start}");
        }
        assert_eq!(
            detect(b"\xff\xfe\n{\"resourceSpans\": []}"),
            Some(Format::Otlp)
        );
    }
}
