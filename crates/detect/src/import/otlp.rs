//! OpenTelemetry GenAI spans in OTLP JSON, seen as a trace.

use std::collections::VecDeque;
use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::gen_ai::Converter;
use super::{Format, ImportOptions};
use crate::trace::lines::{Lines, json_error};
use crate::trace::stream::{LineFormat, MessageReader};
use crate::trace::{Item, LineError, LineErrorKind, ReadError, ReadSummary};

/// Reads OTLP JSON: one document, or JSON Lines of documents. How spans become messages is
/// described in `docs/traces.md`.
///
/// ```
/// use proofhouse_detect::{ImportOptions, Item, OtlpReader};
/// use serde_json::json;
///
/// let document = json!({"resourceSpans": [{"scopeSpans": [{"spans": [{
///     "name": "execute_tool weather",
///     "attributes": [
///         {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
///         {"key": "gen_ai.tool.name", "value": {"stringValue": "weather"}},
///         {"key": "gen_ai.tool.call.arguments", "value": {"stringValue": "{\"city\":\"Oslo\"}"}},
///     ],
/// }]}]}]}).to_string();
/// let items: Vec<_> = OtlpReader::new(document.as_bytes(), &ImportOptions::default()).collect();
/// let Ok(Item::Message { message, .. }) = &items[0] else { panic!() };
/// assert_eq!((&*message.protocol, &*message.operation), ("mcp", "tools/call"));
/// assert_eq!(message.content, json!({"name": "weather", "arguments": {"city": "Oslo"}}));
/// ```
pub type OtlpReader<R> = MessageReader<R, OtlpLines>;

/// The lines of an OTLP export.
pub struct OtlpLines {
    queue: VecDeque<Item>,
    converter: Converter,
    /// The first line and what follows it, while it is not known whether they are one document.
    first: Option<First>,
    max_document: usize,
}

/// The beginning of a document that goes on after its first line.
struct First {
    line: u64,
    text: String,
    error: LineError,
}

impl<R: Read> OtlpReader<R> {
    /// Reads an export.
    pub fn new(input: R, options: &ImportOptions) -> Self {
        let lines = Lines::new(input, &options.limits, options.limits.max_document_bytes);
        Self::over(lines, OtlpLines::new(options))
    }
}

impl LineFormat for OtlpLines {
    fn step<R: Read>(
        &mut self,
        lines: &mut Lines<R>,
        summary: &mut ReadSummary,
    ) -> Result<Option<Item>, ReadError> {
        // A document may be a line, and longer than lines usually are.
        lines.set_max_line(self.max_document);
        let mut at_start = lines.number() == 0;
        loop {
            if let Some(item) = self.queue.pop_front() {
                return Ok(Some(item));
            }
            let Some(line) = lines.next_line()? else {
                let Some(first) = self.first.take() else {
                    return Ok(None);
                };
                self.document(&first.text, first.line, false, summary);
                continue;
            };
            let (number, terminated) = (line.number, line.terminated);
            let text = match line.text {
                Ok(text) if text.trim_ascii().is_empty() => continue,
                Ok(text) => text,
                Err(error) => {
                    at_start = false;
                    self.give_up_first(summary);
                    self.queue.push_back(summary.problem(error));
                    continue;
                }
            };
            if let Some(first) = &mut self.first {
                // Lines that are documents by themselves show that the first one was just bad.
                let alone = is_document(text);
                if !alone && first.text.len() + text.len() < self.max_document {
                    first.text.push('\n');
                    first.text.push_str(text);
                    continue;
                }
                if !alone {
                    first.error.kind = LineErrorKind::TooLong;
                    first.error.message =
                        format!("a document of more than {} bytes", self.max_document);
                }
            } else if at_start
                && let Err(error) = serde_json::from_str::<IgnoredAny>(text)
                && error.is_eof()
            {
                let error = json_error(number, terminated, &error);
                self.first = Some(First {
                    line: number,
                    text: text.to_owned(),
                    error,
                });
                at_start = false;
                continue;
            }
            at_start = false;
            let text = text.to_owned();
            self.give_up_first(summary);
            self.document(&text, number, terminated, summary);
        }
    }
}

impl OtlpLines {
    pub(super) fn new(options: &ImportOptions) -> Self {
        Self {
            queue: VecDeque::new(),
            converter: Converter::new(options),
            first: None,
            max_document: options.limits.max_document_bytes,
        }
    }

    /// Reports a first line that turned out not to begin a document, after what can be saved of it.
    fn give_up_first(&mut self, summary: &mut ReadSummary) {
        if let Some(first) = self.first.take() {
            let mut sink = Sink::new(first.line, summary, &mut self.queue, &mut self.converter);
            // What stood before the break is not lost.
            let _ = sink.read(&first.text);
            self.queue.push_back(summary.problem(first.error));
        }
    }

    /// Takes the messages out of a document, or several one after the other.
    fn document(&mut self, text: &str, line: u64, terminated: bool, summary: &mut ReadSummary) {
        let mut sink = Sink::new(line, summary, &mut self.queue, &mut self.converter);
        if let Err(error) = sink.read(text) {
            let error = json_error(line, terminated, &error);
            self.queue.push_back(summary.problem(error));
        } else if !sink.known {
            self.queue.push_back(summary.problem(LineError {
                line,
                kind: LineErrorKind::NotAMessage,
                message:
                    "not a message: neither `resourceSpans` nor `resourceLogs` is there".into(),
            }));
        }
    }
}

fn is_document(text: &str) -> bool {
    Format::detect(text.as_bytes()) == Some(Format::Otlp)
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Where the spans of a document go while it is being read.
struct Sink<'a> {
    line: u64,
    summary: &'a mut ReadSummary,
    queue: &'a mut VecDeque<Item>,
    converter: &'a mut Converter,
    /// Whether there was any list of spans.
    known: bool,
}

impl<'a> Sink<'a> {
    fn new(
        line: u64,
        summary: &'a mut ReadSummary,
        queue: &'a mut VecDeque<Item>,
        converter: &'a mut Converter,
    ) -> Self {
        Self {
            line,
            summary,
            queue,
            converter,
            known: false,
        }
    }

    fn read(&mut self, text: &str) -> Result<(), serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        loop {
            Walk {
                sink: self,
                level: 0,
            }
            .deserialize(&mut deserializer)?;
            if deserializer.end().is_ok() {
                return Ok(());
            }
        }
    }

    fn record(&mut self, record: &Value) {
        let before = self.queue.len();
        let Self {
            line,
            summary,
            queue,
            converter,
            ..
        } = self;
        converter.convert(record, |message| {
            queue.push_back(summary.message(*line, message));
        });
        if self.queue.len() == before {
            self.summary.ignored += 1;
        }
    }
}

/// The keys that lead to spans and log records, level by level.
const LEVELS: [&[&str]; 3] = [
    &[
        "resourceSpans",
        "resource_spans",
        "resourceLogs",
        "resource_logs",
    ],
    &[
        "scopeSpans",
        "scope_spans",
        "instrumentationLibrarySpans",
        "scopeLogs",
        "scope_logs",
    ],
    &["spans", "logRecords", "log_records"],
];

/// Goes down to the records and hands out each as soon as it is read, so that no more than one is
/// held as a tree.
struct Walk<'w, 'a> {
    sink: &'w mut Sink<'a>,
    level: usize,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an OTLP object")
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Err(E::invalid_type(serde::de::Unexpected::Other("text"), &self))
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let keys = LEVELS.get(self.level).copied().unwrap_or_default();
        while let Some(key) = map.next_key::<String>()? {
            if keys.contains(&key.as_str()) {
                self.sink.known = true;
                map.next_value_seed(Walk {
                    sink: &mut *self.sink,
                    level: self.level,
                })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if self.level + 1 < LEVELS.len() {
            while let Some(()) = seq.next_element_seed(Walk {
                sink: &mut *self.sink,
                level: self.level + 1,
            })? {}
        } else {
            while let Some(record) = seq.next_element::<Value>()? {
                self.sink.record(&record);
            }
        }
        Ok(())
    }
}
