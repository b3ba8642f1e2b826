//! The demo service: a small local service that the examples of tools run against.
//!
//! It has what the backends of tools need: plain HTTP, sessions that expire, an OpenAPI description of
//! itself, tokens, and an MCP server. Its keys are no secrets; it guards nothing.

mod mcp;
mod notes;
mod openapi;
mod router;
mod sessions;
mod tokens;
mod weather;

pub use mcp::serve_stdio;

use std::sync::Mutex;
use std::time::Duration;

use notes::DemoNotes;
use proofhouse_wire::sync::lock;
use sessions::DemoSessions;
use tokens::Tokens;

/// What the weather asks for.
pub const API_KEY: &str = "demo-key";
/// Who may ask for tokens.
pub const CLIENT: (&str, &str) = ("demo-client", "demo-secret");

/// How many notes, sessions and tokens there may be; nobody needs more of a demonstration.
const MAX_KEPT: usize = 1_000;
/// How long a note may be, in bytes.
const MAX_NOTE_BYTES: usize = 10_000;

/// The service and all it remembers.
pub struct DemoApi {
    /// Where it is reached, without a slash at the end.
    origin: String,
    notes: Mutex<DemoNotes>,
    sessions: Mutex<DemoSessions>,
    tokens: Mutex<Tokens>,
}

impl DemoApi {
    /// A service that is reached at an address and ends sessions that were not used for so long.
    #[must_use]
    pub fn new(origin: String, session_lifetime: Duration) -> Self {
        Self {
            origin,
            notes: Mutex::default(),
            sessions: Mutex::new(DemoSessions::new(session_lifetime)),
            tokens: Mutex::default(),
        }
    }
}

/// A name that nobody guesses by accident.
fn fresh_name() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    format!("{:016x}", RandomState::new().build_hasher().finish())
}
