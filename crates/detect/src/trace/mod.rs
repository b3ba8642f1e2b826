//! The trace: what was said on the wire, one message after the other.

mod input;
mod item;
pub(crate) mod lines;
mod message;
mod reader;
mod redact;
mod writer;

pub use item::{
    Item, LineError, LineErrorKind, MessageSource, ReadError, ReadErrorKind, ReadLimits,
    ReadSummary,
};
pub use message::{Message, TRACE_VERSION};
pub use reader::TraceReader;
pub use redact::{REDACTED, RedactError, Redactor};
pub use writer::TraceWriter;
