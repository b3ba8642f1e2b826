//! The Model Context Protocol: its revisions, and what each calls things.
//!
//! Up to 2025-11-25 a client shakes hands (`initialize`) and keeps a session. From 2026-07-28 on every request stands
//! alone: it says in `_meta` which revision it is of, and over HTTP its headers repeat what the body says.
//!
//! ```
//! use proofhouse_protocol::mcp::{McpEra, McpRevision, era_of, meta};
//! use serde_json::json;
//!
//! let request = json!({"_meta": {meta::PROTOCOL_VERSION: McpRevision::LATEST.as_str()}});
//! assert_eq!(era_of("tools/list", &request, None), McpEra::Modern);
//! assert_eq!(era_of("tools/list", &json!({}), None), McpEra::Legacy);
//! ```

mod envelope;
pub mod error;
pub mod header;
mod log_level;
pub mod meta;
mod method;
mod mirror;
mod notification;
#[cfg(test)]
mod recipe;
mod result;
mod revision;

pub use envelope::{EnvelopeError, check_meta, era_of, wrap_params};
pub use log_level::McpLogLevel;
pub use method::{McpMethod, McpParty};
pub use mirror::{
    HeaderMismatch, HeaderMismatchReason, ToolHeaders, check_argument_headers, check_headers,
    check_repeated_headers, decode_header, encode_header, header_arguments, headers_of,
};
pub use notification::{McpNotification, subscription_filter, tag_params, wants_notification};
pub use result::{answer_with_call, content_of_params, result_type};
pub use revision::{McpEra, McpRevision, newest_offered};
