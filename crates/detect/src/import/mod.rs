//! Other formats seen as traces: one table of them, told by content or by name.

mod a2a;
pub(crate) mod detect;
mod gen_ai;
mod json_rpc;
mod methods;
mod open_requests;
mod otlp;
mod otlp_walk;
#[cfg(test)]
mod tests;
mod wrapper;

use std::fmt;
use std::io::Read;
use std::str::FromStr;

use proofhouse_oatf::Protocol;

use crate::trace::lines::LineSplitter;
use crate::trace::reader::TraceLines;
use crate::trace::stream::LineFormat;
use crate::trace::{MessageReader, MessageSource, TraceReadLimits};

/// What a format says of itself. It is implemented by the type that makes items of the format's lines.
pub(crate) trait TraceFormat: LineFormat + Send {
    /// Its name on the command line.
    const NAME: &'static str;
    /// What it is, in a few words.
    const SUMMARY: &'static str;

    /// Whether an object with these keys clearly belongs to it.
    fn recognises(keys: &[detect::ObjectKey<'_>]) -> bool;

    /// A reader that has seen no line yet.
    fn new(options: &ImportOptions) -> Self;
}

/// Declares the formats: a name for each, and the type that reads its lines.
macro_rules! formats {
    ($( $(#[$doc:meta])+ $format:ident => $lines:ty; )+) => {
        /// A format messages can be read from.
        ///
        /// ```
        /// use proofhouse_detect::Format;
        ///
        /// assert_eq!("otlp".parse(), Ok(Format::Otlp));
        /// assert_eq!(Format::detect(br#"{"jsonrpc": "2.0", "method": "ping"}"#), Some(Format::JsonRpc));
        /// assert_eq!(Format::detect(b"hello"), None);
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $( $(#[$doc])+ $format, )+
        }

        /// Every format. The first that recognises a line has it.
        pub const FORMATS: &[TraceFormatInfo] = &[$( TraceFormatInfo {
            format: Format::$format,
            name: <$lines as TraceFormat>::NAME,
            summary: <$lines as TraceFormat>::SUMMARY,
            recognises: <$lines as TraceFormat>::recognises,
        }, )+];

        /// The messages on lines of a format.
        pub(crate) fn source<'a, R: Read + Send + 'a>(
            lines: LineSplitter<R>,
            format: Format,
            options: &ImportOptions,
        ) -> Box<dyn MessageSource + Send + 'a> {
            match format {
                $( Format::$format => {
                    Box::new(MessageReader::over(lines, <$lines as TraceFormat>::new(options)))
                } )+
            }
        }
    };
}

// The one table of formats. Where two recognise a line, the one that is harder to be taken for comes first.
formats! {
    /// Our own JSON Lines.
    Trace => TraceLines;
    /// OpenTelemetry spans.
    Otlp => otlp::OtlpLines;
    /// JSON-RPC messages.
    JsonRpc => json_rpc::JsonRpcLines;
}

/// One row of the table of formats.
#[derive(Debug)]
#[non_exhaustive]
pub struct TraceFormatInfo {
    /// The format.
    pub format: Format,
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Whether an object with these keys clearly belongs to it.
    recognises: fn(&[detect::ObjectKey<'_>]) -> bool,
}

impl Format {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        let row = FORMATS.iter().find(|row| row.format == self);
        row.map_or("", |row| row.name)
    }

    /// The format of most lines of an input that starts like this, decompressed, among those that
    /// clearly are of one; `None` when none is.
    #[must_use]
    pub fn detect(start: &[u8]) -> Option<Self> {
        detect::detect(start)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no format's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no such format; there are {}", names())]
pub struct UnknownFormat;

fn names() -> String {
    let names: Vec<_> = FORMATS.iter().map(|row| row.name).collect();
    names.join(", ")
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let row = FORMATS.iter().find(|row| row.name == name);
        row.map(|row| row.format).ok_or(UnknownFormat)
    }
}

/// How to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportOptions {
    /// How much is read.
    pub limits: TraceReadLimits,
    /// The protocol of all messages, instead of what the messages suggest. A trace says it itself.
    pub protocol: Option<Protocol>,
    /// The actor of all messages, for indicators that ask for one. A trace says it itself.
    pub actor: Option<String>,
    /// Whether responses to `tools/call` and `prompts/get` of MCP get the parameters of their
    /// request, as the specification says of client actors; keys the result has are kept.
    pub enrich: bool,
}

impl Default for ImportOptions {
    /// Usual limits, the protocol by method, no actor, enriched.
    fn default() -> Self {
        Self {
            limits: TraceReadLimits::default(),
            protocol: None,
            actor: None,
            enrich: true,
        }
    }
}

/// Opens an input of any format, compressed or not. Without a `format` it is told by the content;
/// what is not recognised is read as a trace, so that every line is reported for what it is.
///
/// Opening does not fail: an input that cannot be read is an error in its place among the items.
///
/// ```
/// use proofhouse_detect::{Format, ImportOptions, TraceItem, open};
///
/// let log = r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#;
/// let (format, messages) = open(log.as_bytes(), None, &ImportOptions::default());
/// assert_eq!(format, Format::JsonRpc);
/// for item in messages {
///     let TraceItem::Message { line, message, .. } = item.unwrap() else { panic!() };
///     assert_eq!((line, &*message.operation), (1, "notifications/initialized"));
/// }
/// ```
pub fn open<'a, R: Read + Send + 'a>(
    input: R,
    format: Option<Format>,
    options: &ImportOptions,
) -> (Format, Box<dyn MessageSource + Send + 'a>) {
    let (format, lines) = open_lines(input, format, options);
    (format, source(lines, format, options))
}

/// The lines of an input, none of them taken, and its format.
pub(crate) fn open_lines<R: Read>(
    input: R,
    format: Option<Format>,
    options: &ImportOptions,
) -> (Format, LineSplitter<R>) {
    let mut lines = LineSplitter::new(input, &options.limits, options.limits.max_line_bytes);
    let format = format.unwrap_or_else(|| {
        let start = lines.peek(detect::is_enough);
        Format::detect(start).unwrap_or(Format::Trace)
    });
    (format, lines)
}
