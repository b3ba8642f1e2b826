//! Reads a trace, line by line.

use std::collections::VecDeque;
use std::io::Read;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::item::{
    LineError, LineErrorKind, ReadSummary, TraceItem, TraceReadError, TraceReadErrorKind,
    TraceReadLimits,
};
use super::lenient::{RepairNotes, read_mended};
use super::lines::{InputLine, LineSplitter, json_error};
use super::message::{TRACE_VERSION, TraceLine, read_entry};
use super::stream::{LineFormat, MessageReader};
use crate::import::detect::{ObjectKey, has};
use crate::import::{ImportOptions, TraceFormat};

/// Reads a trace in JSON Lines, plain or compressed with gzip or zstd, in flat memory.
///
/// A bad line is yielded as a [problem](TraceItem::Problem), counted and skipped. An error of the input
/// or the decompressor ends the reading, after everything that came before it.
///
/// ```
/// use proofhouse_detect::{TraceItem, LineErrorKind, MessageSource, TraceReader};
///
/// let trace = r#"{"proofhouse_trace": 1, "tool": "example"}
/// {"seq": 1, "protocol": "mcp", "operation": "tools/list", "content": {"tools": []}}
/// {"seq": 2, "protocol": "mcp", "ope
/// {"seq": 3, "protocol": "mcp", "operation": "tools/call", "content": {"name": "weather"}}
/// "#;
/// let mut reader = TraceReader::new(trace.as_bytes());
/// let mut operations = Vec::new();
/// for item in &mut reader {
///     match item.unwrap() {
///         TraceItem::Message { line, message, .. } => operations.push((line, message.operation)),
///         TraceItem::Problem(error) => assert_eq!((error.line, error.kind), (3, LineErrorKind::NotJson)),
///     }
/// }
/// assert_eq!(operations, [(2, "tools/list".to_owned()), (4, "tools/call".to_owned())]);
/// assert_eq!(reader.header().unwrap()["tool"], "example");
/// assert_eq!((reader.summary().messages, reader.summary().skipped()), (2, 1));
/// ```
pub type TraceReader<R> = MessageReader<R, TraceLines>;

/// Our own format, and what is known from the lines before.
#[derive(Debug, Default)]
pub struct TraceLines {
    header: Option<Map<String, Value>>,
    order: TraceOrder,
    /// What else the last line gave.
    pending: VecDeque<TraceItem>,
}

impl<R: Read> TraceReader<R> {
    /// Reads with the usual limits.
    pub fn new(input: R) -> Self {
        Self::with_limits(input, &TraceReadLimits::default())
    }

    /// Reads with own limits.
    pub fn with_limits(input: R, limits: &TraceReadLimits) -> Self {
        let lines = LineSplitter::new(input, limits, limits.max_line_bytes);
        Self::over(lines, TraceLines::default())
    }

    /// The metadata of the last header that was read.
    #[must_use]
    pub fn header(&self) -> Option<&Map<String, Value>> {
        self.format.header.as_ref()
    }
}

impl TraceFormat for TraceLines {
    const NAME: &'static str = "trace";
    const SUMMARY: &'static str = "Proofhouse trace, JSON Lines";

    fn recognises(keys: &[ObjectKey<'_>]) -> bool {
        let first = keys.first().map(|key| key.name);
        first == Some("proofhouse_trace") || (has(keys, "protocol") && has(keys, "operation"))
    }

    fn new(_options: &ImportOptions) -> Self {
        Self::default()
    }
}

impl LineFormat for TraceLines {
    fn step<R: Read>(
        &mut self,
        lines: &mut LineSplitter<R>,
        summary: &mut ReadSummary,
    ) -> Result<Option<TraceItem>, TraceReadError> {
        loop {
            if let Some(item) = self.pending.pop_front() {
                return Ok(Some(item));
            }
            let Some(line) = lines.next_line()? else {
                return Ok(None);
            };
            let number = line.number;
            let ReadLine {
                entry,
                others,
                notes,
            } = match read_line(&line) {
                Ok(None) => continue,
                Ok(Some(found)) => found,
                Err(error) => {
                    self.order.skipped();
                    return Ok(Some(summary.problem(error)));
                }
            };
            for problem in notes.problems(number) {
                self.pending.push_back(summary.problem(problem));
            }
            match entry {
                TraceLine::Header { version, metadata } => {
                    check_version(number, version)?;
                    if let Some(warning) = self.order.header(number) {
                        self.pending.push_back(summary.problem(warning));
                    }
                    self.header = Some(metadata);
                }
                TraceLine::Message {
                    mut message,
                    numbered,
                    unknown_fields,
                    ..
                } => {
                    summary.unknown_fields += unknown_fields;
                    if numbered {
                        if let Some(warning) = self.order.number(number, message.sequence) {
                            self.pending.push_back(summary.problem(warning));
                        }
                    } else {
                        self.order.unnumbered();
                        message.sequence = number;
                    }
                    if self.pending.is_empty() && others.is_empty() {
                        return Ok(Some(summary.message(number, message)));
                    }
                    for content in others {
                        let mut other = message.clone();
                        other.content = content;
                        self.pending.push_back(summary.reading(number, other));
                    }
                    self.pending.push_back(summary.message(number, message));
                }
            }
        }
    }
}

/// Refuses what could not be judged rightly.
pub(crate) fn check_version(line: u64, version: u64) -> Result<(), TraceReadError> {
    if version == TRACE_VERSION {
        return Ok(());
    }
    Err(TraceReadError {
        line,
        kind: TraceReadErrorKind::UnsupportedVersion,
        message: format!("version {version} of the trace format is not known"),
        source: None,
    })
}

/// What came before a line, as far as the numbers tell whether something is missing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TraceOrder {
    /// Whether anything came.
    began: bool,
    /// The number of the message before; of a recording that has just begun, nothing.
    previous: Option<u64>,
    /// Whether the line before was a header, after which numbers begin with 1.
    after_header: bool,
    /// Whether a line was skipped since, which is told by itself and may have had the numbers that are missing.
    skipped: bool,
}

impl TraceOrder {
    /// A header: a recording begins. Traces may be joined end to end, and each counts anew; but what is judged as one
    /// run was two.
    pub(crate) fn header(&mut self, line: u64) -> Option<LineError> {
        let began = self.began;
        *self = Self {
            began: true,
            previous: None,
            after_header: true,
            skipped: false,
        };
        began.then(|| LineError {
            line,
            kind: LineErrorKind::Joined,
            message: "another recording begins here; split the file to judge each by itself"
                .to_owned(),
        })
    }

    /// A message with a number.
    pub(crate) fn number(&mut self, line: u64, sequence: u64) -> Option<LineError> {
        let before = std::mem::replace(
            self,
            Self {
                began: true,
                previous: Some(sequence),
                after_header: false,
                skipped: false,
            },
        );
        let found = |kind, message| {
            Some(LineError {
                line,
                kind,
                message,
            })
        };
        match before.previous {
            Some(previous) if sequence <= previous => found(
                LineErrorKind::OutOfOrder,
                format!("sequence number {sequence} comes after {previous}"),
            ),
            Some(previous) if sequence - previous > 1 && !before.skipped => found(
                LineErrorKind::Gap,
                format!(
                    "sequence number {sequence} comes after {previous}: {} missing",
                    sequence - previous - 1
                ),
            ),
            None if before.after_header && sequence > 1 && !before.skipped => found(
                LineErrorKind::Gap,
                format!(
                    "the first sequence number is {sequence}: {} missing",
                    sequence - 1
                ),
            ),
            Some(_) | None => None,
        }
    }

    /// A line that could not be read.
    pub(crate) fn skipped(&mut self) {
        self.skipped = true;
    }

    /// A message without a number.
    pub(crate) fn unnumbered(&mut self) {
        self.began = true;
    }
}

/// The entry on a line.
pub(crate) struct ReadLine {
    pub(crate) entry: TraceLine,
    /// Other contents of its message, where keys come twice.
    pub(crate) others: Vec<Value>,
    pub(crate) notes: RepairNotes,
}

/// The entry on a line; `None` for a blank one.
pub(crate) fn read_line(line: &InputLine<'_>) -> Result<Option<ReadLine>, LineError> {
    let text = line.text.as_ref().map_err(Clone::clone)?;
    let mut notes = RepairNotes::default();
    let entry = match read_mended(text, &mut notes.repairs, read_entry) {
        Ok(entry) => entry,
        Err(_) if text.trim_ascii().is_empty() => return Ok(None),
        Err(error) => {
            if let Some(damage) = line.damage {
                return Err(damage.error(line.number));
            }
            // An entry is refused at its first wrong field; what comes after may not be JSON at all.
            let error = match serde_json::from_str::<IgnoredAny>(text) {
                Err(syntax) if error.is_data() => syntax,
                _ => error,
            };
            return Err(json_error(line.number, line.terminated, &error));
        }
    };
    notes.repairs.not_utf8 = line.damage.map(|damage| damage.byte);
    let others = match &entry {
        TraceLine::Message {
            message, hidden, ..
        } => notes.readings(&message.content, hidden),
        // Nothing of a header is judged, so nothing needs to be told.
        TraceLine::Header { .. } => {
            notes = RepairNotes::default();
            Vec::new()
        }
    };
    Ok(Some(ReadLine {
        entry,
        others,
        notes,
    }))
}
