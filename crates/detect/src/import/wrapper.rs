//! What people put around a JSON-RPC message when they log it: a time, a direction, an object.

use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde_json::{Map, Number, Value};

use crate::trace::lenient::{RepairNotes, parse_all, parse_first};

/// A message out of its wrapper.
#[derive(Debug, PartialEq)]
pub(crate) struct Envelope {
    pub(crate) payload: Value,
    /// The side that sent it, if known.
    pub(crate) sender: Option<String>,
    /// The side it was sent to, if known.
    pub(crate) receiver: Option<String>,
    pub(crate) time: Option<String>,
}

pub(super) const PAYLOAD_KEYS: &[&str] = &["message", "msg", "payload", "data"];
const TIME_KEYS: &[&str] = &["time", "ts", "timestamp"];

/// The longest text that may stand before a message on its line.
const MAX_PREFIX: usize = 256;

/// How many places on a line are tried as the beginning of a message.
const MAX_CANDIDATES: usize = 8;

/// Reads a line of a log: every way to read it, the usual one first.
pub(crate) fn open_envelope(
    line: &str,
    notes: &mut RepairNotes,
) -> Result<Vec<Envelope>, serde_json::Error> {
    let line = line.trim_ascii();
    let error = match open_text(line, notes, parse_all) {
        Ok(envelopes) => return Ok(envelopes),
        Err(error) => error,
    };
    // A logger's text, then the message. A `[` may belong to that text, so `{` is what counts; and
    // braces may belong to it too.
    let starts = memchr::memchr_iter(b'{', line.as_bytes());
    let starts: Vec<_> = starts
        .take_while(|start| *start <= MAX_PREFIX)
        .take(MAX_CANDIDATES)
        .collect();
    for start in starts {
        let (prefix, message) = line.split_at(start);
        let Ok(mut envelopes) = open_text(message, notes, parse_first) else {
            // Two messages on one line: none of them may hide the other.
            let mut values = serde_json::Deserializer::from_str(message).into_iter::<IgnoredAny>();
            if values.next().is_some_and(|value| value.is_ok()) {
                break;
            }
            continue;
        };
        if !envelopes.iter().any(Envelope::has_message) {
            continue;
        }
        for envelope in &mut envelopes {
            if envelope.time.is_none() {
                envelope.time = time_in(prefix);
            }
            if envelope.sender.is_none() {
                let words = prefix.split(|c: char| c.is_whitespace() || "[]():,|".contains(c));
                if let Some(side) = words.into_iter().find_map(side) {
                    envelope.sender = Some(side.0.to_owned());
                    envelope.receiver = Some(side.1.to_owned());
                }
            }
        }
        return Ok(envelopes);
    }
    Err(error)
}

/// Reads a text of JSON.
fn open_text(
    text: &str,
    notes: &mut RepairNotes,
    parse: fn(&str, &mut RepairNotes) -> Result<Vec<Value>, serde_json::Error>,
) -> Result<Vec<Envelope>, serde_json::Error> {
    let mut envelopes = Vec::new();
    for reading in parse(text, notes)? {
        match reading {
            Value::Object(map) if !is_message(&map) => unwrap_object(map, notes, &mut envelopes),
            payload => envelopes.push(Envelope {
                payload,
                sender: None,
                receiver: None,
                time: None,
            }),
        }
    }
    Ok(envelopes)
}

impl Envelope {
    fn has_message(&self) -> bool {
        match &self.payload {
            Value::Object(map) => is_message(map),
            other => other.is_array(),
        }
    }
}

/// Whether the object is a JSON-RPC message itself.
fn is_message(map: &Map<String, Value>) -> bool {
    let answers = map.contains_key("result") || map.contains_key("error");
    map.contains_key("jsonrpc")
        || map.get("method").is_some_and(Value::is_string)
        || (answers && map.contains_key("id"))
}

fn unwrap_object(
    mut map: Map<String, Value>,
    notes: &mut RepairNotes,
    envelopes: &mut Vec<Envelope>,
) {
    let payloads = PAYLOAD_KEYS.iter().find_map(|key| match map.get(*key)? {
        Value::Object(_) | Value::Array(_) => map.shift_remove(*key).map(|payload| vec![payload]),
        // Loggers that know texts only write the message as one.
        Value::String(text) if text.trim_ascii_start().starts_with(['{', '[']) => {
            parse_all(text, notes).ok()
        }
        _ => None,
    });
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let (mut sender, mut receiver) = (
        text("from").map(str::to_owned),
        text("to").map(str::to_owned),
    );
    if let Some((from, to)) = text("direction").or_else(|| text("dir")).and_then(side)
        && sender.is_none()
        && receiver.is_none()
    {
        sender = Some(from.to_owned());
        receiver = Some(to.to_owned());
    }
    let time = TIME_KEYS.iter().find_map(|key| time_of(map.get(*key)?));
    // Without a message inside, the object itself is what the caller complains about.
    for payload in payloads.unwrap_or_else(|| vec![Value::Object(map)]) {
        envelopes.push(Envelope {
            payload,
            sender: sender.clone(),
            receiver: receiver.clone(),
            time: time.clone(),
        });
    }
}

/// The two sides of a direction. Which is which does not matter, only that they are different.
fn side(word: &str) -> Option<(&'static str, &'static str)> {
    let out = ("here", "there");
    let back = ("there", "here");
    Some(match word.to_ascii_lowercase().as_str() {
        "out" | "outgoing" | "outbound" | "send" | "sent" | "tx" | "write" | ">" | "->" | "-->"
        | ">>" | ">>>" | "=>" | "client_to_server" | "client-to-server" | "client->server"
        | "c2s" => out,
        "in" | "incoming" | "inbound" | "recv" | "receive" | "received" | "rx" | "read" | "<"
        | "<-" | "<--" | "<<" | "<<<" | "<=" | "server_to_client" | "server-to-client"
        | "server->client" | "s2c" => back,
        _ => return None,
    })
}

/// A time as RFC 3339; texts stay as they are.
fn time_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => epoch(number),
        _ => None,
    }
}

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, told by their size: what would
/// be later than the year 5138 is meant in a smaller unit.
fn epoch(number: &Number) -> Option<String> {
    let nanoseconds = if let Some(whole) = number.as_i64() {
        let scale = match whole.unsigned_abs() {
            0..100_000_000_000 => 1_000_000_000,
            100_000_000_000..100_000_000_000_000 => 1_000_000,
            100_000_000_000_000..100_000_000_000_000_000 => 1_000,
            _ => 1,
        };
        i128::from(whole) * scale
    } else {
        // Fractions are of seconds, and are not more exact than microseconds.
        let seconds = number.as_f64().filter(|seconds| seconds.abs() < 1e11)?;
        (seconds * 1e6).round() as i128 * 1000
    };
    let time = Timestamp::from_nanosecond(nanoseconds).ok()?;
    Some(time.to_string())
}

/// The first words of a prefix that are a time.
fn time_in(prefix: &str) -> Option<String> {
    let clean = prefix.trim_matches(|c: char| c.is_whitespace() || "[(".contains(c));
    let word = clean
        .split(|c: char| c.is_whitespace() || "])|".contains(c))
        .next()?;
    word.parse::<Timestamp>().ok().map(|_| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(line: &str, payload: &Value, sides: Option<(&str, &str)>, time: Option<&str>) {
        let envelope = open_envelope(line, &mut RepairNotes::default())
            .unwrap()
            .remove(0);
        assert_eq!(envelope.payload, *payload, "{line}");
        assert_eq!(
            envelope.sender.as_deref().zip(envelope.receiver.as_deref()),
            sides,
            "{line}"
        );
        assert_eq!(envelope.time.as_deref(), time, "{line}");
    }

    #[test]
    fn wrappers_are_taken_off() {
        let ping = &json!({"jsonrpc": "2.0", "method": "ping"});
        let text = ping.to_string();
        let out = Some(("here", "there"));
        let back = Some(("there", "here"));
        check(&text, ping, None, None);
        check(&format!("[{text}]"), &json!([ping]), None, None);
        check(
            &format!(r#"{{"direction": "in", "message": {text}}}"#),
            ping,
            back,
            None,
        );
        check(
            &format!(r#"{{"dir": "sent", "msg": {text}, "ts": 1767323045}}"#),
            ping,
            out,
            Some("2026-01-02T03:04:05Z"),
        );
        check(
            &format!(r#"{{"payload": {text}, "timestamp": 1767323045006}}"#),
            ping,
            None,
            Some("2026-01-02T03:04:05.006Z"),
        );
        check(
            &format!(r#"{{"from": "a", "to": "b", "data": {text}, "time": "noon"}}"#),
            ping,
            Some(("a", "b")),
            Some("noon"),
        );
        check(
            &json!({"msg": "sent", "data": text}).to_string(),
            ping,
            None,
            None,
        );
        check(
            &format!("2026-01-02T03:04:05Z --> {text}"),
            ping,
            out,
            Some("2026-01-02T03:04:05Z"),
        );
        check(
            &format!("[2026-01-02T03:04:05.5Z] [info] recv: {text}"),
            ping,
            back,
            Some("2026-01-02T03:04:05.5Z"),
        );
        check(&format!("[debug] {text}"), ping, None, None);
        check(&format!("[debug] {text} (3 ms)"), ping, None, None);
        check(&format!("{text} // sent"), ping, None, None);
        check(&format!("session {{7}} sent {text} ok"), ping, out, None);
        check(
            r#"{"level": "info"}"#,
            &json!({"level": "info"}),
            None,
            None,
        );
    }

    #[test]
    fn what_is_not_json_is_said_to_be_so() {
        let two = format!("{0}{0}", json!({"method": "ping"}));
        for line in [
            two.as_str(),
            "hello",
            "hello {",
            "{\"a\"",
            "a { b } {}",
            "a {} b",
            "{} {}",
        ] {
            assert!(
                open_envelope(line, &mut RepairNotes::default()).is_err(),
                "{line}"
            );
        }
        assert!(
            open_envelope(
                &format!("{} {{}}", "x".repeat(300)),
                &mut RepairNotes::default()
            )
            .is_err()
        );
    }

    #[test]
    fn any_number_is_a_time_or_none() {
        for (number, expected) in [
            (json!(0.5), Some("1970-01-01T00:00:00.5Z")),
            (json!(-1), Some("1969-12-31T23:59:59Z")),
            (
                json!(1_767_323_045_006_007_i64),
                Some("2026-01-02T03:04:05.006007Z"),
            ),
            (
                json!(1_767_323_045_006_007_008_i64),
                Some("2026-01-02T03:04:05.006007008Z"),
            ),
            (json!(u64::MAX), None),
            (json!(1e300), None),
        ] {
            assert_eq!(time_of(&number).as_deref(), expected, "{number}");
        }
    }
}
