//! The frames of the Language Server Protocol: `Content-Length`, an empty line, JSON. Everything has a limit.

use std::io::{self, BufRead, Read, Write};

use serde_json::{Value, json};

/// Bytes of one message.
pub const MAX_MESSAGE: usize = 32 << 20;
/// Bytes of one line of the header.
const MAX_HEADER_LINE: u64 = 1024;
/// Lines of the header.
const MAX_HEADER_LINES: usize = 32;

/// Codes of errors, as JSON-RPC and the protocol have them.
pub(crate) mod code {
    pub(crate) const PARSE_ERROR: i64 = -32700;
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    pub(crate) const NOT_INITIALIZED: i64 = -32002;
}

/// Why the stream of messages cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It broke.
    #[error("the client cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The header says no length, or one that is no number.
    #[error("a message has no Content-Length")]
    NoLength,
    /// The header is too long.
    #[error(
        "the header of a message is longer than {MAX_HEADER_LINES} lines of {MAX_HEADER_LINE} bytes"
    )]
    LongHeader,
    /// The message is too long.
    #[error("a message of {0} bytes is longer than the {MAX_MESSAGE} that are read")]
    LongMessage(usize),
    /// It ends in the middle of a message.
    #[error("the client went away in the middle of a message")]
    CutOff,
}

/// Reads the next message: its bytes, or `None` when there are no more.
///
/// # Errors
///
/// Returns an error when the frame cannot be read or is larger than the limits.
pub fn read_frame(input: &mut impl BufRead) -> Result<Option<Vec<u8>>, FrameError> {
    let mut length = None;
    for count in 0.. {
        if count >= MAX_HEADER_LINES {
            return Err(FrameError::LongHeader);
        }
        let mut line = Vec::new();
        let read = input
            .by_ref()
            .take(MAX_HEADER_LINE)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            return if count == 0 {
                Ok(None)
            } else {
                Err(FrameError::CutOff)
            };
        }
        if line.last() != Some(&b'\n') {
            let is_long = read as u64 == MAX_HEADER_LINE;
            return Err(if is_long {
                FrameError::LongHeader
            } else {
                FrameError::CutOff
            });
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let length = length.ok_or(FrameError::NoLength)?;
    if length > MAX_MESSAGE {
        return Err(FrameError::LongMessage(length));
    }
    let mut bytes = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "capped by take")]
    input.by_ref().take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(FrameError::CutOff);
    }
    Ok(Some(bytes))
}

/// Writes a message.
///
/// # Errors
///
/// Returns an error when the client cannot be written to.
pub fn write_frame(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let text = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

/// The answer to a request.
pub(crate) fn answer(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The answer to a request that cannot be met.
pub(crate) fn refusal(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// Something to tell the client.
pub(crate) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Vec<u8>>, FrameError> {
        read_frame(&mut text.as_bytes())
    }

    #[test]
    fn frames_are_read_and_written() {
        let mut out = Vec::new();
        write_frame(&mut out, &json!({"ä": 1})).unwrap();
        write_frame(&mut out, &json!(2)).unwrap();
        let mut input = out.as_slice();
        let first = read_frame(&mut input).unwrap().unwrap();
        assert_eq!(first, "{\"ä\":1}".as_bytes());
        assert_eq!(read_frame(&mut input).unwrap().unwrap(), b"2");
        assert!(read_frame(&mut input).unwrap().is_none());
        let other = "content-length:2\r\nContent-Type: x\r\n\r\n{}";
        assert_eq!(read(other).unwrap().unwrap(), b"{}");
    }

    #[test]
    fn what_is_too_large_or_cut_off_is_refused() {
        assert!(matches!(read("X: 1\r\n\r\n{}"), Err(FrameError::NoLength)));
        assert!(matches!(
            read("Content-Length: -1\n\n"),
            Err(FrameError::NoLength)
        ));
        let huge = "Content-Length: 99999999999\r\n\r\n";
        assert!(matches!(read(huge), Err(FrameError::LongMessage(_))));
        assert!(matches!(
            read("Content-Length: 9\r\n\r\n{}"),
            Err(FrameError::CutOff)
        ));
        assert!(matches!(read("Content-Le"), Err(FrameError::CutOff)));
        assert!(matches!(
            read(&"x".repeat(5000)),
            Err(FrameError::LongHeader)
        ));
        assert!(matches!(
            read(&"X: y\n".repeat(50)),
            Err(FrameError::LongHeader)
        ));
    }
}
