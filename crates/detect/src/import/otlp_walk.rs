//! Goes through OTLP documents down to their spans and log records, and hands each out once.

use std::collections::{HashSet, VecDeque};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::gen_ai::Converter;
use crate::trace::lenient::RepairNotes;
use crate::trace::value::{Hidden, MAX_READINGS, Noting};
use crate::trace::{ReadSummary, TraceItem};

/// Where the spans of a document go while it is being read.
pub(super) struct SpanSink<'a> {
    line: u64,
    summary: &'a mut ReadSummary,
    queue: &'a mut VecDeque<TraceItem>,
    converter: &'a mut Converter,
    /// Whether there was any list of spans.
    pub(super) known: bool,
    /// Records that were read.
    pub(super) records: usize,
    /// Records that were taken before the document had to be mended and read again.
    pub(super) taken: usize,
    pub(super) notes: RepairNotes,
}

impl<'a> SpanSink<'a> {
    pub(super) fn new(
        line: u64,
        summary: &'a mut ReadSummary,
        queue: &'a mut VecDeque<TraceItem>,
        converter: &'a mut Converter,
    ) -> Self {
        Self {
            line,
            summary,
            queue,
            converter,
            known: false,
            records: 0,
            taken: 0,
            notes: RepairNotes::default(),
        }
    }

    pub(super) fn read(&mut self, text: &str) -> Result<(), serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        loop {
            Top(self, true).deserialize(&mut deserializer)?;
            if deserializer.end().is_ok() {
                return Ok(());
            }
        }
    }

    /// Takes every reading of a record, unless it was taken before.
    fn take(&mut self, record: &Value, hidden: &Hidden) {
        self.records += 1;
        if self.records <= self.taken {
            return;
        }
        for other in self.notes.readings(record, hidden) {
            self.record(&other);
        }
        // Attributes are often texts of JSON, which are looked into.
        if let Some((hidden, told)) = Hidden::in_texts(record) {
            self.notes.twice(told, true);
            for other in self.notes.readings(record, &hidden) {
                self.record(&other);
            }
        }
        let (others, complete) = attribute_readings(record);
        if let Some((key, _)) = others.first() {
            let key: String = key.chars().take(40).collect();
            let what =
                format!("the attribute {key:?} is there twice; each of its values is judged");
            self.notes.twice(what, complete);
        }
        for (_, other) in others {
            self.record(&other);
        }
        self.record(record);
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
        summary.without_arguments += converter.take_without_arguments();
        if self.queue.len() == before {
            self.summary.ignored += 1;
        }
    }
}

/// The readings of a record in which an earlier attribute counts instead of a later one of that name,
/// each with that name; and whether these are all.
fn attribute_readings(record: &Value) -> (Vec<(String, Value)>, bool) {
    let Some(Value::Array(attributes)) = record.get("attributes") else {
        return (Vec::new(), true);
    };
    let mut later = HashSet::new();
    let mut earlier = Vec::new();
    for (position, attribute) in attributes.iter().enumerate().rev() {
        if let Some(Value::String(key)) = attribute.get("key")
            && !later.insert(key.as_str())
        {
            earlier.push((position, key));
        }
    }
    let complete = earlier.len() < MAX_READINGS;
    let readings = earlier.into_iter().take(MAX_READINGS - 1);
    let readings = readings.map(|(position, key)| {
        let mut reading = record.clone();
        if let Some(Value::Array(attributes)) = reading.get_mut("attributes") {
            let attribute = attributes.remove(position);
            attributes.push(attribute);
        }
        (key.clone(), reading)
    });
    (readings.collect(), complete)
}

/// A document, or a list of documents.
struct Top<'w, 'a>(&'w mut SpanSink<'a>, bool);

impl<'de> DeserializeSeed<'de> for Top<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Top<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an OTLP document, or a list of them")
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Err(E::invalid_type(serde::de::Unexpected::Other("text"), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let walk = SpanWalk {
            sink: self.0,
            level: 0,
        };
        walk.visit_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self(sink, outermost) = self;
        if !outermost {
            return Err(serde::de::Error::custom("a list of lists"));
        }
        while let Some(()) = seq.next_element_seed(Top(&mut *sink, false))? {}
        Ok(())
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
struct SpanWalk<'w, 'a> {
    sink: &'w mut SpanSink<'a>,
    level: usize,
}

impl<'de> DeserializeSeed<'de> for SpanWalk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SpanWalk<'_, '_> {
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
                map.next_value_seed(SpanWalk {
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
            while let Some(()) = seq.next_element_seed(SpanWalk {
                sink: &mut *self.sink,
                level: self.level + 1,
            })? {}
        } else {
            let mut hidden = Hidden::default();
            while let Some(record) = seq.next_element_seed(Noting(&mut hidden))? {
                self.sink.take(&record, &std::mem::take(&mut hidden));
            }
        }
        Ok(())
    }
}
