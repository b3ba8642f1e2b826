//! The trace: what was said on the wire, one message after the other.

mod message;

pub use message::Message;
