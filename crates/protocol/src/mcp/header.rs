//! The headers of MCP over HTTP, in the lower case that HTTP libraries want, and how they are looked up.

use std::borrow::Cow;

/// The revision; since 2025-06-18 on every request after the handshake.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The session; up to 2025-11-25.
pub const SESSION_ID: &str = "mcp-session-id";
/// Where a stream is taken up again; up to 2025-11-25.
pub const LAST_EVENT_ID: &str = "last-event-id";
/// The method, as the body says it; from 2026-07-28.
pub const METHOD: &str = "mcp-method";
/// What the method is about, as the body says it; from 2026-07-28.
pub const NAME: &str = "mcp-name";
/// What the name of a header begins with that repeats an argument of a tool.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// The keyword in a tool's schema that has an argument repeated in a header.
pub const SCHEMA_KEYWORD: &str = "x-mcp-header";

/// Looks up a header of a request by its name in lower case, whichever library holds it.
pub type Lookup<'h> = dyn Fn(&str) -> Option<Cow<'h, str>> + 'h;

/// The header that repeats an argument, from the name in the tool's schema.
///
/// ```
/// assert_eq!(proofhouse_protocol::mcp::header::of_argument("Region"), "mcp-param-region");
/// ```
#[must_use]
pub fn of_argument(name: &str) -> String {
    format!("{PARAM_PREFIX}{}", name.to_ascii_lowercase())
}
