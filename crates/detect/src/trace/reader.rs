//! Reads a trace, line by line.

use std::io::Read;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::item::{
    Item, LineError, LineErrorKind, MessageSource, ReadError, ReadErrorKind, ReadLimits,
    ReadSummary,
};
use super::lines::{Line, Lines, json_error};
use super::message::{Entry, Message, TRACE_VERSION, read_entry};

/// Reads a trace in JSON Lines, plain or compressed with gzip or zstd, in flat memory.
///
/// A bad line is yielded as a [problem](Item::Problem), counted and skipped. An error of the input
/// or the decompressor ends the reading, after everything that came before it.
///
/// ```
/// use proofhouse_detect::{Item, LineErrorKind, MessageSource, TraceReader};
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
///         Item::Message { line, message } => operations.push((line, message.operation)),
///         Item::Problem(error) => assert_eq!((error.line, error.kind), (3, LineErrorKind::NotJson)),
///     }
/// }
/// assert_eq!(operations, [(2, "tools/list".to_owned()), (4, "tools/call".to_owned())]);
/// assert_eq!(reader.header().unwrap()["tool"], "example");
/// assert_eq!((reader.summary().messages, reader.summary().skipped()), (2, 1));
/// ```
pub struct TraceReader<R: Read> {
    lines: Lines<R>,
    summary: ReadSummary,
    header: Option<Map<String, Value>>,
    previous: Option<u64>,
    /// The message a warning was just given for.
    pending: Option<(u64, Message)>,
    done: bool,
}

impl<R: Read> TraceReader<R> {
    /// Reads with the usual limits.
    pub fn new(input: R) -> Self {
        Self::with_limits(input, &ReadLimits::default())
    }

    /// Reads with own limits.
    pub fn with_limits(input: R, limits: &ReadLimits) -> Self {
        Self::from_lines(Lines::new(input, limits, limits.max_line_bytes))
    }

    pub(crate) fn from_lines(lines: Lines<R>) -> Self {
        Self {
            lines,
            summary: ReadSummary::default(),
            header: None,
            previous: None,
            pending: None,
            done: false,
        }
    }

    /// The metadata of the last header that was read.
    #[must_use]
    pub fn header(&self) -> Option<&Map<String, Value>> {
        self.header.as_ref()
    }

    fn step(&mut self) -> Result<Option<Item>, ReadError> {
        if let Some((line, message)) = self.pending.take() {
            return Ok(Some(self.summary.message(line, message)));
        }
        while let Some(line) = self.lines.next_line()? {
            let number = line.number;
            match read_line(&line) {
                Ok(None) => {}
                Ok(Some(Entry::Header { version, metadata })) => {
                    if version != TRACE_VERSION {
                        return Err(ReadError {
                            line: number,
                            kind: ReadErrorKind::UnsupportedVersion,
                            message: format!("version {version} of the trace format is not known"),
                            source: None,
                        });
                    }
                    // Traces may be joined end to end; each counts anew.
                    self.previous = None;
                    self.header = Some(metadata);
                }
                Ok(Some(Entry::Message {
                    mut message,
                    numbered,
                    unknown_fields,
                })) => {
                    self.summary.unknown_fields += unknown_fields;
                    if !numbered {
                        message.sequence = number;
                        return Ok(Some(self.summary.message(number, message)));
                    }
                    let sequence = message.sequence;
                    if let Some(previous) = self.previous.replace(sequence)
                        && sequence <= previous
                    {
                        self.pending = Some((number, message));
                        return Ok(Some(self.summary.problem(LineError {
                            line: number,
                            kind: LineErrorKind::OutOfOrder,
                            message: format!("sequence number {sequence} comes after {previous}"),
                        })));
                    }
                    return Ok(Some(self.summary.message(number, message)));
                }
                Err(error) => return Ok(Some(self.summary.problem(error))),
            }
        }
        Ok(None)
    }
}

/// The entry on a line; `None` for a blank one.
fn read_line(line: &Line<'_>) -> Result<Option<Entry>, LineError> {
    let text = line.text.as_ref().map_err(Clone::clone)?;
    read_entry(text).map(Some).or_else(|error| {
        if text.trim_ascii().is_empty() {
            return Ok(None);
        }
        // An entry is refused at its first wrong field; what comes after may not be JSON at all.
        let error = match serde_json::from_str::<IgnoredAny>(text) {
            Err(syntax) if error.is_data() => syntax,
            _ => error,
        };
        Err(json_error(line.number, line.terminated, &error))
    })
}

impl<R: Read> Iterator for TraceReader<R> {
    type Item = Result<Item, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.step().transpose();
        self.summary.lines = self.lines.number();
        self.summary.bytes = self.lines.bytes();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}

impl<R: Read> MessageSource for TraceReader<R> {
    fn summary(&self) -> &ReadSummary {
        &self.summary
    }
}
