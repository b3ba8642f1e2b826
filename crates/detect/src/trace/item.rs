//! What every source of messages yields: messages, remarks on lines, and errors that end it.

use std::fmt;

use super::message::TraceMessage;

/// How much a reader takes before it refuses.
///
/// ```
/// use proofhouse_detect::TraceReadLimits;
///
/// let limits = TraceReadLimits { max_line_bytes: 1 << 20, ..TraceReadLimits::default() };
/// assert_eq!(limits.max_bytes, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceReadLimits {
    /// Size of one line; a longer one is skipped without being held.
    pub max_line_bytes: usize,
    /// Size of all lines together, after decompression; more ends the reading.
    pub max_bytes: Option<u64>,
    /// The window a zstd stream may ask for, which is memory it then takes.
    pub max_zstd_window_bytes: u64,
    /// Size of an OTLP document that fills a whole file or one line of it.
    pub max_document_bytes: usize,
    /// Requests of a JSON-RPC log that wait for their response; the oldest is forgotten first.
    pub max_open_requests: usize,
    /// Size of the parameters that are kept of those requests.
    pub max_open_request_bytes: usize,
}

impl Default for TraceReadLimits {
    /// Lines of 16 MiB, no limit for the whole, zstd windows of 32 MiB, documents of 256 MiB,
    /// 65,536 open requests with 8 MiB of parameters.
    fn default() -> Self {
        Self {
            max_line_bytes: 16 << 20,
            max_bytes: None,
            max_zstd_window_bytes: 32 << 20,
            max_document_bytes: 256 << 20,
            max_open_requests: 65_536,
            max_open_request_bytes: 8 << 20,
        }
    }
}

/// One thing a source found.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are messages, and a box would cost each an allocation"
)]
pub enum TraceItem {
    /// A message, and the line it came from.
    Message {
        /// The line, from 1; of a document over several lines, the first.
        line: u64,
        /// The message.
        message: TraceMessage,
        /// Whether it is another reading of the message that follows, in which keys come twice. It is judged by
        /// itself and is never a piece of a longer one.
        is_reading: bool,
    },
    /// Something about a line. Unless it [is a warning](LineErrorKind::is_warning), what stood on
    /// the line was skipped; a warning comes right before the message it is about.
    Problem(LineError),
}

/// What is wrong with a line. The neighbours of a bad line are never touched by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineError {
    /// The line, from 1.
    pub line: u64,
    /// The class.
    pub kind: LineErrorKind,
    /// What is wrong, without repeating the line.
    pub message: String,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for LineError {}

/// The classes of [`LineError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LineErrorKind {
    /// Longer than [`TraceReadLimits::max_line_bytes`].
    TooLong,
    /// Not UTF-8, and no message with the bad bytes replaced either.
    NotUtf8,
    /// Not JSON.
    NotJson,
    /// JSON, but not what the format has.
    NotAMessage,
    /// The last line, cut off in the middle.
    Truncated,
    /// Warning: the sequence number is not larger than the one before.
    OutOfOrder,
    /// Warning: a response whose request was not seen, so that its operation is a guess.
    Unrequested,
    /// Warning: not quite JSON; it was mended so that the message could be judged.
    Repaired,
    /// Warning: a key comes twice in one object; each reading of the message was judged.
    DuplicateKey,
    /// Warning: of messages that came in pieces there was more than is held, so that one was judged in parts.
    InParts,
    /// Warning: sequence numbers are missing, so that messages are.
    Gap,
    /// Warning: another recording begins in the same file; both were judged as one run.
    Joined,
}

impl LineErrorKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::TooLong,
        Self::NotUtf8,
        Self::NotJson,
        Self::NotAMessage,
        Self::Truncated,
        Self::OutOfOrder,
        Self::Unrequested,
        Self::Repaired,
        Self::DuplicateKey,
        Self::InParts,
        Self::Gap,
        Self::Joined,
    ];

    /// Whether the message was kept.
    #[must_use]
    pub fn is_warning(self) -> bool {
        matches!(
            self,
            Self::OutOfOrder
                | Self::Unrequested
                | Self::Repaired
                | Self::DuplicateKey
                | Self::InParts
                | Self::Gap
                | Self::Joined
        )
    }

    /// Whether it shows that a trace is not the whole of one run.
    #[must_use]
    pub fn breaks_run(self) -> bool {
        matches!(self, Self::Gap | Self::Joined)
    }

    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::NotUtf8 => "not_utf8",
            Self::NotJson => "not_json",
            Self::NotAMessage => "not_a_message",
            Self::Truncated => "truncated",
            Self::OutOfOrder => "out_of_order",
            Self::Unrequested => "unrequested",
            Self::Repaired => "repaired",
            Self::DuplicateKey => "duplicate_key",
            Self::InParts => "in_parts",
            Self::Gap => "gap",
            Self::Joined => "joined",
        }
    }
}

/// Why reading ended before the end. Everything before it was yielded.
#[derive(Debug, thiserror::Error)]
#[error("{message} (after line {line})")]
#[non_exhaustive]
pub struct TraceReadError {
    /// The last line that was read whole.
    pub line: u64,
    /// The class.
    pub kind: TraceReadErrorKind,
    /// What happened.
    pub message: String,
    /// The error of the system or the decompressor.
    #[source]
    pub source: Option<std::io::Error>,
}

/// The classes of [`TraceReadError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceReadErrorKind {
    /// The input could not be read.
    Io,
    /// The compressed stream is damaged or cut off.
    Compression,
    /// More than [`TraceReadLimits::max_bytes`].
    TooLarge,
    /// The header names a version of the format that is not known.
    UnsupportedVersion,
}

/// What was read so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadSummary {
    /// Lines, of every kind.
    pub lines: u64,
    /// Bytes of them, after decompression.
    pub bytes: u64,
    /// Messages that were yielded.
    pub messages: u64,
    /// Fields that no version of the format knows; they were ignored.
    pub unknown_fields: u64,
    /// Requests that were forgotten before their response came, to keep memory flat.
    pub forgotten_requests: u64,
    /// Parts of documents that hold no messages, such as spans of other libraries.
    pub ignored: u64,
    /// Calls of tools whose arguments were not recorded, or cannot be read.
    pub without_arguments: u64,
    problems: [u64; LineErrorKind::ALL.len()],
}

impl ReadSummary {
    /// Problems of one kind.
    #[must_use]
    pub fn count(&self, kind: LineErrorKind) -> u64 {
        self.problems[kind as usize]
    }

    /// Problems that cost what stood on the line.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.sum(false)
    }

    /// Problems that cost nothing.
    #[must_use]
    pub fn warnings(&self) -> u64 {
        self.sum(true)
    }

    fn sum(&self, warnings: bool) -> u64 {
        let kinds = LineErrorKind::ALL.iter();
        kinds
            .filter(|kind| kind.is_warning() == warnings)
            .map(|kind| self.count(*kind))
            .sum()
    }

    /// Adds what was read elsewhere of the same input.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            lines,
            bytes,
            messages,
            unknown_fields,
            forgotten_requests,
            ignored,
            without_arguments,
            problems,
        } = other;
        self.lines += lines;
        self.bytes += bytes;
        self.messages += messages;
        self.unknown_fields += unknown_fields;
        self.forgotten_requests += forgotten_requests;
        self.ignored += ignored;
        self.without_arguments += without_arguments;
        for (ours, theirs) in self.problems.iter_mut().zip(problems) {
            *ours += theirs;
        }
    }

    /// Counts a problem on its way out.
    pub(crate) fn problem(&mut self, error: LineError) -> TraceItem {
        self.problems[error.kind as usize] += 1;
        TraceItem::Problem(error)
    }

    /// Counts messages that were judged in parts, which no reader knows of.
    pub(crate) fn count_in_parts(&mut self, count: u64) {
        self.problems[LineErrorKind::InParts as usize] += count;
    }

    /// Counts a message on its way out.
    pub(crate) fn message(&mut self, line: u64, message: TraceMessage) -> TraceItem {
        self.messages += 1;
        TraceItem::Message {
            line,
            message,
            is_reading: false,
        }
    }

    /// Counts another reading of a message on its way out.
    pub(crate) fn reading(&mut self, line: u64, message: TraceMessage) -> TraceItem {
        self.messages += 1;
        TraceItem::Message {
            line,
            message,
            is_reading: true,
        }
    }
}

/// A stream of messages: a trace, or another format seen as one.
///
/// After an error the stream ends.
pub trait MessageSource: Iterator<Item = Result<TraceItem, TraceReadError>> {
    /// What was read so far.
    fn summary(&self) -> &ReadSummary;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_counted_by_their_place() {
        for (index, kind) in LineErrorKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
        }
    }
}
