//! The error codes of MCP beside the five of JSON-RPC.

/// There is no such resource; up to 2025-11-25 only. See
/// [`McpEra::resource_not_found_code`](super::McpEra::resource_not_found_code).
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// The user must visit a URL first; up to 2025-11-25 only.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// The user of the client rejected a sampling request.
pub const SAMPLING_REJECTED: i64 = -1;
/// A header does not say what the body says.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client did not declare a capability that the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The version is not supported; `data` says which are.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// Whether only servers of the stateless revisions answer with this code.
///
/// ```
/// use proofhouse_protocol::mcp::error::{is_modern, HEADER_MISMATCH, RESOURCE_NOT_FOUND};
///
/// assert!(is_modern(HEADER_MISMATCH) && !is_modern(RESOURCE_NOT_FOUND));
/// ```
#[must_use]
pub const fn is_modern(code: i64) -> bool {
    matches!(
        code,
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION
    )
}
