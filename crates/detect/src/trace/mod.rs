//! The trace: what was said on the wire, one message after the other.

mod input;
mod item;
pub(crate) mod lenient;
pub(crate) mod lines;
pub(crate) mod message;
pub(crate) mod reader;
pub(crate) mod reading;
mod redact;
pub(crate) mod repair;
pub(crate) mod stream;
pub(crate) mod value;
pub(crate) mod whole;
mod writer;

pub use item::{
    LineError, LineErrorKind, MessageSource, ReadSummary, TraceItem, TraceReadError,
    TraceReadErrorKind, TraceReadLimits,
};
pub use lenient::read_lenient;
pub use message::{TRACE_VERSION, TraceMessage, UNPARSED};
pub use reader::TraceReader;
pub use redact::{REDACTED, RedactError, Redactor};
pub use stream::MessageReader;
pub use whole::{MessageAssembler, MessagePieces, WholeMessage};
pub use writer::TraceWriter;
