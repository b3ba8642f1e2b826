//! Ids of requests that are numbers no machine number holds: they come back as they were written.
//!
//! A JSON value keeps 30 digits only roughly. Such an id is carried as a text that begins with a mark, and written as
//! the number that it was. A text that begins with the mark itself gets a second one, so that the two cannot be taken for
//! each other.

use serde_json::Value;

/// A character that Unicode promises never to assign.
const MARK: char = '\u{fdd0}';

/// The id to carry for one that was read from this message.
pub(crate) fn carried(id: Value, message: &[u8]) -> Value {
    match &id {
        Value::String(text) if text.starts_with(MARK) => format!("{MARK}{text}").into(),
        Value::Number(number) if number.is_f64() => match written_id(message) {
            Some(text) if text != number.to_string() => format!("{MARK}{text}").into(),
            _ => id,
        },
        _ => id,
    }
}

/// An id as it stands in a message.
pub(crate) fn text_of(id: &Value) -> String {
    let Some(carried) = id.as_str().and_then(|text| text.strip_prefix(MARK)) else {
        return id.to_string();
    };
    if carried.starts_with(MARK) {
        return Value::from(carried).to_string();
    }
    // Whoever carries something else there made it themselves.
    match serde_json::from_str(carried) {
        Ok(Value::Number(_)) => carried.to_owned(),
        _ => id.to_string(),
    }
}

/// The nearest value of an id, for places where it is one value among others.
pub(crate) fn plain(id: &Value) -> Value {
    match id {
        Value::String(text) if text.starts_with(MARK) => {
            serde_json::from_str(&text_of(id)).unwrap_or_else(|_| id.clone())
        }
        _ => id.clone(),
    }
}

/// The value of the last `id` of an object, as it is written. The text is known to be JSON.
fn written_id(message: &[u8]) -> Option<&str> {
    let (mut depth, mut at, mut found) = (0_usize, 0, None);
    while let Some(byte) = message.get(at) {
        match byte {
            b'"' => {
                let end = end_of_text(message, at)?;
                let is_key = depth == 1 && message.get(at..end) == Some(b"\"id\"");
                at = end;
                if !is_key {
                    continue;
                }
                let rest = message.get(at..)?.trim_ascii_start();
                // As a value, a text is not followed by a colon.
                if let Some(rest) = rest.strip_prefix(b":") {
                    let rest = rest.trim_ascii_start();
                    let end = rest
                        .iter()
                        .position(|byte| !b"+-.eE0123456789".contains(byte));
                    found = rest.get(..end?).filter(|text| !text.is_empty());
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    std::str::from_utf8(found?).ok()
}

/// Where a text ends that begins here with its quotation mark.
fn end_of_text(message: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match message.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{self, RpcMessage};
    use proptest::prelude::*;

    fn echo(message: &str) -> String {
        match rpc::parse(message.as_bytes()) {
            Ok(RpcMessage::Request { id, .. }) => rpc::to_text(&rpc::response(&id, Value::Null)),
            Err(invalid) => rpc::to_text(&invalid.to_response()),
            Ok(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_id_of_the_message_is_meant_and_no_other() {
        for (message, id) in [
            (
                r#"{"jsonrpc":"2.0","params":{"id":1e9},"id" : 1e3 ,"method":"m"}"#,
                "1e3",
            ),
            (r#"{"id":1.50,"jsonrpc":"2.0","method":"id"}"#, "1.50"),
            (r#"{"method":"\"id\":7","id":2e1,"jsonrpc":"2.0"}"#, "2e1"),
            (r#"{"jsonrpc":"2.0","method":"m","id":1e1,"id":2e2}"#, "2e2"),
            (r#"{"jsonrpc":"2.0","method":"m","\u0069d":1e1}"#, "10.0"),
            (r#"{"jsonrpc":"1","method":"m","id":1e1}"#, "1e1"),
        ] {
            let answer = echo(message);
            assert!(
                answer.contains(&format!("\"id\":{id},")),
                "{message}: {answer}"
            );
        }
    }

    #[test]
    fn nothing_but_a_number_is_written_bare() {
        let invented = Value::from(format!("{MARK}1,\"x\":2"));
        let written: Value = serde_json::from_str(&text_of(&invented)).unwrap();
        assert_eq!(written, invented);
        let long = carried(1e30.into(), br#"{"id":1000000000000000000000000000000}"#);
        assert_eq!(plain(&long), Value::from(1e30));
    }

    proptest! {
        #[test]
        fn every_id_comes_back(digits in "-?[1-9][0-9]{0,40}", text in "\\PC{0,8}", marks in 0..3_usize) {
            let answer = echo(&format!(r#"{{"jsonrpc":"2.0","id":{digits},"method":"m"}}"#));
            let expected = format!("\"id\":{digits},");
            prop_assert!(answer.contains(&expected), "{}", answer);
            let id = Value::from(format!("{}{text}", MARK.to_string().repeat(marks)));
            let answer = echo(&rpc::request(&id, "m", None).to_string());
            let answer: Value = serde_json::from_str(&answer).unwrap();
            prop_assert_eq!(&answer["id"], &id);
        }
    }
}
