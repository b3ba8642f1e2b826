//! Lines of a byte stream, in flat memory however long they are.

use std::io::Read;
use std::ops::Range;

use super::input::TraceInput;
use super::item::{LineError, LineErrorKind, TraceReadError, TraceReadErrorKind, TraceReadLimits};

const CHUNK: usize = 64 << 10;

/// The capacity a buffer keeps after a long line.
const KEPT: usize = 1 << 20;

/// Splits an input into lines. A line that lies within one chunk is not copied.
pub struct LineSplitter<R: Read> {
    input: TraceInput<R>,
    chunk: Box<[u8]>,
    /// What of the chunk is not yet given out.
    ready: Range<usize>,
    /// The line that did not fit into one chunk.
    spill: Vec<u8>,
    /// The line that was not UTF-8, with its bad bytes replaced.
    mended: String,
    max_line: usize,
    number: u64,
    bytes: u64,
    ended: bool,
    /// What ended the input while only its beginning was looked at; told when the lines before it
    /// are used up.
    failed: Option<TraceReadError>,
}

/// A line, or what is wrong with it.
#[derive(Debug)]
pub(crate) struct InputLine<'a> {
    pub(crate) number: u64,
    pub(crate) text: Result<&'a str, LineError>,
    /// Where the first bytes were replaced because they are not UTF-8.
    pub(crate) damage: Option<Damage>,
    /// Whether a line feed ended it.
    pub(crate) terminated: bool,
}

/// That a line was not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The first bad byte, from 1.
    pub(crate) byte: usize,
    /// Whether a character was cut off by the end of the input.
    cut_off: bool,
}

impl Damage {
    /// What to say when the line is of no use even with the bytes replaced.
    pub(crate) fn error(self, line: u64) -> LineError {
        LineError {
            line,
            kind: if self.cut_off {
                LineErrorKind::Truncated
            } else {
                LineErrorKind::NotUtf8
            },
            message: format!("not UTF-8 at byte {}", self.byte),
        }
    }
}

/// Where the bytes of a line are.
enum LineBytes {
    Chunk(Range<usize>),
    Spill,
    /// Nowhere: so many bytes were passed over.
    Skipped(u64),
}

impl<R: Read> LineSplitter<R> {
    pub(crate) fn new(inner: R, limits: &TraceReadLimits, max_line: usize) -> Self {
        Self {
            input: TraceInput::new(inner, limits),
            chunk: vec![0; CHUNK].into_boxed_slice(),
            ready: 0..0,
            spill: Vec::new(),
            mended: String::new(),
            max_line,
            number: 0,
            bytes: 0,
            ended: false,
            failed: None,
        }
    }

    /// Lines given out so far.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes given out so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A line may be longer from now on.
    pub(crate) fn set_max_line(&mut self, max_line: usize) {
        self.max_line = max_line;
    }

    /// The beginning of the input, without taking it: more and more of it until `enough` says so,
    /// up to one chunk. To be called before the first line is taken.
    pub(crate) fn peek(&mut self, enough: impl Fn(&[u8]) -> bool) -> &[u8] {
        while !self.ended && self.ready.end < CHUNK && !enough(&self.chunk[self.ready.clone()]) {
            match self.read_at(self.ready.end) {
                Ok(count) => {
                    self.ready.end += count;
                    self.ended = count == 0;
                }
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        &self.chunk[self.ready.clone()]
    }

    /// The next line without its end; `None` when there is no more.
    pub(crate) fn next_line(&mut self) -> Result<Option<InputLine<'_>>, TraceReadError> {
        self.spill.clear();
        self.spill.shrink_to(KEPT);
        self.mended = String::new();
        let mut skipped: Option<u64> = None;
        let (place, terminated) = loop {
            let ready = self.ready.clone();
            if let Some(length) = memchr::memchr(b'\n', &self.chunk[ready.clone()]) {
                self.ready.start += length + 1;
                let part = ready.start..ready.start + length;
                break (self.finish(part, skipped), true);
            }
            skipped = self.set_aside(ready, skipped);
            self.ready = 0..0;
            if let Some(mut error) = self.failed.take() {
                error.line = self.number;
                return Err(error);
            }
            if !self.ended {
                let count = self.read_at(0)?;
                self.ended = count == 0;
                self.ready = 0..count;
            }
            if self.ended {
                if self.spill.is_empty() && skipped.is_none() {
                    return Ok(None);
                }
                break (self.finish(0..0, skipped), false);
            }
        };
        self.number += 1;
        let number = self.number;
        let bytes = match &place {
            LineBytes::Skipped(length) => {
                self.bytes += length + u64::from(terminated);
                let error = LineError {
                    line: number,
                    kind: LineErrorKind::TooLong,
                    message: format!("{length} bytes, more than the limit of {}", self.max_line),
                };
                return Ok(Some(InputLine {
                    number,
                    text: Err(error),
                    damage: None,
                    terminated,
                }));
            }
            LineBytes::Chunk(range) => &self.chunk[range.clone()],
            LineBytes::Spill => &self.spill[..],
        };
        self.bytes += bytes.len() as u64 + u64::from(terminated);
        let (mut text, damage) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let damage = Damage {
                    byte: error.valid_up_to() + 1,
                    // A character that is cut off by the end of the input was cut off with its line.
                    cut_off: error.error_len().is_none() && !terminated,
                };
                self.mended = String::from_utf8_lossy(bytes).into_owned();
                (self.mended.as_str(), Some(damage))
            }
        };
        // Editors of some systems put a byte order mark at the beginning of a file.
        if number == 1 {
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        Ok(Some(InputLine {
            number,
            text: Ok(text),
            damage,
            terminated,
        }))
    }

    /// Keeps a part of a line that goes on, unless the line is too long already.
    fn set_aside(&mut self, part: Range<usize>, skipped: Option<u64>) -> Option<u64> {
        let length = part.len();
        match skipped {
            Some(before) => Some(before + length as u64),
            None if self.spill.len() + length > self.max_line => {
                let held = self.spill.len() + length;
                self.spill.clear();
                Some(held as u64)
            }
            None => {
                self.spill.extend_from_slice(&self.chunk[part]);
                None
            }
        }
    }

    /// Adds the last part of a line.
    fn finish(&mut self, part: Range<usize>, skipped: Option<u64>) -> LineBytes {
        if skipped.is_none() && self.spill.is_empty() && part.len() <= self.max_line {
            return LineBytes::Chunk(part);
        }
        self.set_aside(part, skipped)
            .map_or(LineBytes::Spill, LineBytes::Skipped)
    }

    fn read_at(&mut self, start: usize) -> Result<usize, TraceReadError> {
        self.input
            .read(&mut self.chunk[start..])
            .map_err(|(kind, source)| TraceReadError {
                line: self.number,
                kind,
                message: match kind {
                    TraceReadErrorKind::Compression => format!("cannot decompress: {source}"),
                    TraceReadErrorKind::TooLarge => source.to_string(),
                    TraceReadErrorKind::Io | TraceReadErrorKind::UnsupportedVersion => {
                        format!("cannot read: {source}")
                    }
                },
                source: Some(source),
            })
    }
}

/// The message of a JSON error without the line number, which would be 1 whatever the line.
pub(crate) fn json_error(line: u64, terminated: bool, error: &serde_json::Error) -> LineError {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let (kind, what) = if error.is_data() {
        (LineErrorKind::NotAMessage, "not a message: ")
    } else if error.is_eof() && !terminated {
        (LineErrorKind::Truncated, "cut off: ")
    } else {
        (LineErrorKind::NotJson, "not JSON: ")
    };
    let message = match (error.line(), error.column()) {
        (_, 0) => format!("{what}{text}"),
        (0 | 1, column) => format!("{what}{text} at column {column}"),
        (down, column) => format!("{what}{text} {} lines down at column {column}", down - 1),
    };
    LineError {
        line,
        kind,
        message,
    }
}
