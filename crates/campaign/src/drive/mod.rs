//! Driving attacks from a host program, such as pytest or vitest, whose agent runs in its own process.
//!
//! [`serve`] speaks lines of JSON: the host selects documents and asks for runs; it is handed each prompt with the
//! addresses of the servers, lets its agent work, and hands back the answer; in the end it gets the outcome, the reason and
//! the evidence. An attack is judged as in a campaign: the control run comes first, and channel probes are made
//! once per agent. `protocol.rs` has the messages, docs/reference/drive.md the page about them.

mod protocol;
mod serve;
mod session;
mod verdict;

pub use protocol::PROTOCOL;
pub use serve::{DriveError, serve};
pub use session::DriveSettings;
