//! One message of a trace, and how it is written as one line of JSON.

use std::fmt;

use proofhouse_oatf::{Direction, Protocol};
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::redact::{RedactedValue, Redactor};
use super::value::{Hidden, Noting};

/// The version of the format, as the header line names it.
pub const TRACE_VERSION: u64 = 1;

/// The operation of an entry that is no message of the protocol: its content is the text as it came. Indicators that
/// look at the whole of a message judge it, whatever their surface.
pub const UNPARSED: &str = "unparsed";

/// The key that makes a line a header.
pub(crate) const HEADER_KEY: &str = "proofhouse_trace";

/// One message that was seen on the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceMessage {
    /// The position in its trace, from 1; evidence points at it.
    pub sequence: u64,
    /// When it was seen, as an RFC 3339 text.
    pub time: Option<String>,
    /// The actor of the attacking side whose traffic it is.
    pub actor: Option<String>,
    /// The phase that actor was in.
    pub phase: Option<String>,
    /// The protocol: `mcp`, `a2a`, `ag_ui` or another.
    pub protocol: Protocol,
    /// The operation or event, such as `tools/call`.
    pub operation: String,
    /// The protocol role of the message.
    pub direction: Option<Direction>,
    /// The content root that indicators look at: params, result, event or card.
    pub content: Value,
    /// The message as it was on the wire, where that differs from the content. Evidence keeps it;
    /// indicators never look at it.
    pub raw: Option<Value>,
}

impl TraceMessage {
    /// A message with nothing but what every message has.
    ///
    /// ```
    /// use proofhouse_detect::TraceMessage;
    /// use serde_json::json;
    ///
    /// let message = TraceMessage::new("mcp", "tools/list", json!({"tools": []}));
    /// assert_eq!(message.sequence, 1);
    /// assert_eq!(
    ///     serde_json::to_string(&message).unwrap(),
    ///     r#"{"seq":1,"protocol":"mcp","operation":"tools/list","content":{"tools":[]}}"#,
    /// );
    /// ```
    #[must_use]
    pub fn new(
        protocol: impl Into<Protocol>,
        operation: impl Into<String>,
        content: Value,
    ) -> Self {
        Self {
            sequence: 1,
            time: None,
            actor: None,
            phase: None,
            protocol: protocol.into(),
            operation: operation.into(),
            direction: None,
            content,
            raw: None,
        }
    }
}

impl TraceMessage {
    /// The same without what was said.
    pub(crate) fn clone_place(&self) -> Self {
        Self {
            sequence: self.sequence,
            actor: self.actor.clone(),
            direction: self.direction,
            ..Self::new(self.protocol.clone(), self.operation.as_str(), Value::Null)
        }
    }
}

impl Serialize for TraceMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self, None, serializer)
    }
}

/// A message on its way out, with what must not leave.
pub(crate) struct RedactedMessage<'a>(pub(crate) &'a TraceMessage, pub(crate) &'a Redactor);

impl Serialize for RedactedMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, Some(self.1), serializer)
    }
}

/// The one place that knows the order of the fields.
fn serialize<S: Serializer>(
    message: &TraceMessage,
    redactor: Option<&Redactor>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("seq", &message.sequence)?;
    let text = |map: &mut S::SerializeMap, key: &str, text: &str| match redactor {
        Some(redactor) => map.serialize_entry(key, &redactor.redact(text)),
        None => map.serialize_entry(key, text),
    };
    if let Some(time) = &message.time {
        text(&mut map, "time", time)?;
    }
    if let Some(actor) = &message.actor {
        text(&mut map, "actor", actor)?;
    }
    if let Some(phase) = &message.phase {
        text(&mut map, "phase", phase)?;
    }
    text(&mut map, "protocol", message.protocol.as_str())?;
    text(&mut map, "operation", &message.operation)?;
    if let Some(direction) = message.direction {
        map.serialize_entry("direction", direction.as_str())?;
    }
    let mut value = |key: &str, value: &Value| match redactor {
        Some(redactor) => map.serialize_entry(key, &RedactedValue(value, redactor)),
        None => map.serialize_entry(key, value),
    };
    value("content", &message.content)?;
    if let Some(raw) = &message.raw {
        value("raw", raw)?;
    }
    map.end()
}

/// What one line of a trace can be.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are messages, and a box would cost each an allocation"
)]
pub(crate) enum TraceLine {
    /// A message; `numbered` says whether the line had a sequence number of its own.
    Message {
        message: TraceMessage,
        numbered: bool,
        unknown_fields: u64,
        /// Parts of the content under keys that came again.
        hidden: Hidden,
    },
    /// The header: the version and the whole line.
    Header {
        version: u64,
        metadata: Map<String, Value>,
    },
}

/// Reads one line. The error is of category `Data` when the line is JSON so far but no entry.
pub(crate) fn read_entry(line: &str) -> Result<TraceLine, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(line);
    let entry = deserializer.deserialize_any(EntryVisitor)?;
    deserializer.end()?;
    Ok(entry)
}

struct EntryVisitor;

/// Sets a field that may come once.
fn set<T, E: serde::de::Error>(
    slot: &mut Option<T>,
    name: &'static str,
    value: T,
) -> Result<(), E> {
    if slot.is_some() {
        return Err(E::custom(format_args!("the field `{name}` is there twice")));
    }
    *slot = Some(value);
    Ok(())
}

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = TraceLine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `protocol`, `operation` and `content`")
    }

    // Without this, the whole text would be repeated in the message of the error.
    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<TraceLine, E> {
        Err(E::invalid_type(serde::de::Unexpected::Other("text"), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TraceLine, A::Error> {
        let (mut sequence, mut direction) = (None, None);
        let (mut time, mut actor, mut phase) = (None, None, None);
        let (mut protocol, mut operation) = (None, None);
        let (mut content, mut raw) = (None, None);
        let mut hidden = Hidden::default();
        let mut unknown_fields = 0;
        let mut unknown = Map::new();
        let mut header = None;
        loop {
            // After the version everything belongs to the header, whatever its name.
            let key = match header {
                Some(_) => map.next_key::<String>()?.map(EntryKey::Other),
                None => map.next_key_seed(KeySeed)?,
            };
            let Some(key) = key else { break };
            match key {
                EntryKey::Seq => set(
                    &mut sequence,
                    "seq",
                    map.next_value_seed(PlainField("seq"))?.sequence()?,
                )?,
                EntryKey::Time => set(
                    &mut time,
                    "time",
                    map.next_value_seed(PlainField("time"))?.text()?,
                )?,
                EntryKey::Actor => set(
                    &mut actor,
                    "actor",
                    map.next_value_seed(PlainField("actor"))?.text()?,
                )?,
                EntryKey::Phase => set(
                    &mut phase,
                    "phase",
                    map.next_value_seed(PlainField("phase"))?.text()?,
                )?,
                EntryKey::Protocol => {
                    let found = map
                        .next_value_seed(PlainField("protocol"))?
                        .required_text()?;
                    set(&mut protocol, "protocol", Protocol::from(&*found))?;
                }
                EntryKey::Operation => {
                    let found = map
                        .next_value_seed(PlainField("operation"))?
                        .required_text()?;
                    set(&mut operation, "operation", found)?;
                }
                EntryKey::Direction => {
                    let found = map.next_value_seed(PlainField("direction"))?.direction()?;
                    set(&mut direction, "direction", found)?;
                }
                EntryKey::Content => {
                    let found = map.next_value_seed(Noting(&mut hidden))?;
                    set(&mut content, "content", found)?;
                }
                EntryKey::Raw => set(&mut raw, "raw", map.next_value::<Value>()?)?,
                EntryKey::Header => {
                    let found = map.next_value_seed(PlainField(HEADER_KEY))?.sequence()?;
                    let found = found.ok_or_else(|| {
                        A::Error::custom("`proofhouse_trace` must be a version number")
                    })?;
                    set(&mut header, HEADER_KEY, found)?;
                }
                EntryKey::Other(key) if header.is_some() => {
                    unknown.insert(key, map.next_value()?);
                }
                EntryKey::Other(_) => {
                    unknown_fields += 1;
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if let Some(version) = header {
            return Ok(TraceLine::Header {
                version,
                metadata: unknown,
            });
        }
        let missing = |name: &str| A::Error::custom(format_args!("the field `{name}` is missing"));
        Ok(TraceLine::Message {
            numbered: matches!(sequence, Some(Some(_))),
            message: TraceMessage {
                sequence: sequence.flatten().unwrap_or_default(),
                time: time.flatten(),
                actor: actor.flatten(),
                phase: phase.flatten(),
                protocol: protocol.ok_or_else(|| missing("protocol"))?,
                operation: operation.ok_or_else(|| missing("operation"))?,
                direction: direction.flatten(),
                content: content.ok_or_else(|| missing("content"))?,
                raw,
            },
            unknown_fields,
            hidden,
        })
    }
}

enum EntryKey {
    Seq,
    Time,
    Actor,
    Phase,
    Protocol,
    Operation,
    Direction,
    Content,
    Raw,
    Header,
    Other(String),
}

struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = EntryKey;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<EntryKey, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = EntryKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, key: &str) -> Result<EntryKey, E> {
        Ok(match key {
            "seq" => EntryKey::Seq,
            "time" => EntryKey::Time,
            "actor" => EntryKey::Actor,
            "phase" => EntryKey::Phase,
            "protocol" => EntryKey::Protocol,
            "operation" => EntryKey::Operation,
            "direction" => EntryKey::Direction,
            "content" => EntryKey::Content,
            "raw" => EntryKey::Raw,
            HEADER_KEY => EntryKey::Header,
            other => EntryKey::Other(other.to_owned()),
        })
    }
}

/// Reads the value of a plain field, whatever it is, so that the error can say what it should be
/// without repeating what it was.
struct PlainField(&'static str);

struct FieldValue {
    field: &'static str,
    scalar: FieldScalar,
}

enum FieldScalar {
    Null,
    Number(Option<u64>),
    Text(String),
    Other(&'static str),
}

impl FieldValue {
    fn wrong<E: serde::de::Error>(&self, wanted: &str) -> E {
        let found = match &self.scalar {
            FieldScalar::Null => "null",
            FieldScalar::Number(_) => "a number",
            FieldScalar::Text(_) => "a text",
            FieldScalar::Other(what) => what,
        };
        E::custom(format_args!(
            "`{}` must be {wanted}, found {found}",
            self.field
        ))
    }

    fn sequence<E: serde::de::Error>(self) -> Result<Option<u64>, E> {
        match self.scalar {
            FieldScalar::Null => Ok(None),
            FieldScalar::Number(Some(number)) => Ok(Some(number)),
            _ => Err(self.wrong("a whole number from 0")),
        }
    }

    fn text<E: serde::de::Error>(self) -> Result<Option<String>, E> {
        match self.scalar {
            FieldScalar::Null => Ok(None),
            FieldScalar::Text(text) => Ok(Some(text)),
            _ => Err(self.wrong("a text")),
        }
    }

    fn required_text<E: serde::de::Error>(self) -> Result<String, E> {
        match self.scalar {
            FieldScalar::Text(text) => Ok(text),
            _ => Err(self.wrong("a text")),
        }
    }

    fn direction<E: serde::de::Error>(self) -> Result<Option<Direction>, E> {
        match &self.scalar {
            FieldScalar::Null => Ok(None),
            FieldScalar::Text(text) => match text.parse() {
                Ok(direction) => Ok(Some(direction)),
                Err(_) => Err(E::custom(
                    "`direction` must be `request` or `response`, found another text",
                )),
            },
            _ => Err(self.wrong("`request` or `response`")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for PlainField {
    type Value = FieldValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<FieldValue, D::Error> {
        let field = self.0;
        let scalar = deserializer.deserialize_any(ScalarVisitor)?;
        Ok(FieldValue { field, scalar })
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = FieldScalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<FieldScalar, E> {
        Ok(FieldScalar::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<FieldScalar, E> {
        Ok(FieldScalar::Other("a truth value"))
    }

    fn visit_u64<E>(self, number: u64) -> Result<FieldScalar, E> {
        Ok(FieldScalar::Number(Some(number)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<FieldScalar, E> {
        Ok(FieldScalar::Number(u64::try_from(number).ok()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<FieldScalar, E> {
        Ok(FieldScalar::Number(None))
    }

    fn visit_str<E>(self, text: &str) -> Result<FieldScalar, E> {
        Ok(FieldScalar::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<FieldScalar, E> {
        Ok(FieldScalar::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<FieldScalar, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(FieldScalar::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FieldScalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(FieldScalar::Other("an object"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(line: &str) -> (TraceMessage, bool, u64) {
        match read_entry(line).unwrap() {
            TraceLine::Message {
                message,
                numbered,
                unknown_fields,
                ..
            } => (message, numbered, unknown_fields),
            TraceLine::Header { .. } => panic!("a header"),
        }
    }

    #[test]
    fn a_full_entry_survives() {
        let line = r#"{"seq":7,"time":"2026-01-02T03:04:05Z","actor":"default","phase":"phase-1","protocol":"mcp","operation":"tools/call","direction":"request","content":{"name":"weather"},"raw":{"jsonrpc":"2.0"}}"#;
        let (message, numbered, unknown) = message(line);
        assert_eq!((numbered, unknown), (true, 0));
        assert_eq!(message.direction, Some(Direction::Request));
        assert_eq!(serde_json::to_string(&message).unwrap(), line);
    }

    #[test]
    fn nulls_are_absent_and_unknown_fields_are_counted() {
        let (message, numbered, unknown) = message(
            r#"{"seq":null,"actor":null,"direction":null,"protocol":"mcp","operation":"x","content":null,"extra":{"deep":[1]},"more":1}"#,
        );
        assert_eq!((numbered, unknown), (false, 2));
        let expected = TraceMessage {
            sequence: 0,
            ..TraceMessage::new("mcp", "x", Value::Null)
        };
        assert_eq!(message, expected);
    }

    #[test]
    fn a_header_keeps_its_metadata() {
        match read_entry(r#"{"proofhouse_trace":1,"time":7,"run":{"id":3}}"#).unwrap() {
            TraceLine::Header { version, metadata } => {
                assert_eq!(version, 1);
                assert_eq!(
                    Value::Object(metadata),
                    json!({"time": 7, "run": {"id": 3}})
                );
            }
            TraceLine::Message { .. } => panic!("a message"),
        }
    }

    #[test]
    fn errors_name_the_field() {
        for (line, expected) in [
            (
                r#"{"seq":"x"}"#,
                "`seq` must be a whole number from 0, found a text",
            ),
            (
                r#"{"seq":-1}"#,
                "`seq` must be a whole number from 0, found a number",
            ),
            (
                r#"{"seq":1.5}"#,
                "`seq` must be a whole number from 0, found a number",
            ),
            (r#"{"time":5}"#, "`time` must be a text, found a number"),
            (r#"{"actor":["a"]}"#, "`actor` must be a text, found a list"),
            (
                r#"{"phase":{"a":1}}"#,
                "`phase` must be a text, found an object",
            ),
            (
                r#"{"protocol":null}"#,
                "`protocol` must be a text, found null",
            ),
            (
                r#"{"operation":true}"#,
                "`operation` must be a text, found a truth value",
            ),
            (
                r#"{"direction":"in"}"#,
                "`direction` must be `request` or `response`, found another text",
            ),
            (
                r#"{"direction":3}"#,
                "`direction` must be `request` or `response`, found a number",
            ),
            (
                r#"{"content":1,"content":2}"#,
                "the field `content` is there twice",
            ),
            (
                r#"{"operation":"a","content":1}"#,
                "the field `protocol` is missing",
            ),
            (
                r#"{"protocol":"a","content":1}"#,
                "the field `operation` is missing",
            ),
            (
                r#"{"protocol":"a","operation":"b"}"#,
                "the field `content` is missing",
            ),
            (r#""secret""#, "invalid type: text, expected an object"),
            ("[1]", "invalid type: sequence, expected an object"),
            ("1", "invalid type: integer `1`, expected an object"),
            (
                r#"{"proofhouse_trace":null}"#,
                "`proofhouse_trace` must be a version number",
            ),
        ] {
            let error = read_entry(line).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{line}: {error}");
            assert!(error.is_data(), "{line}");
        }
        assert!(read_entry(r#"{"seq":1"#).unwrap_err().is_eof());
        assert!(
            read_entry(r#"{"protocol":"a","operation":"b","content":1} x"#)
                .unwrap_err()
                .is_syntax()
        );
    }
}
