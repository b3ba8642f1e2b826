//! The vocabulary of MCP, A2A and AG-UI, each fact once: revisions, methods, keys, headers, error codes and
//! envelopes, as plain values.
//!
//! Nothing here reads files, opens sockets or waits. Messages are [`serde_json::Value`]s, headers are looked up
//! through a function of the caller, and whatever a peer sends wrong becomes a value, never a panic.
//!
//! | module | what it knows |
//! |---|---|
//! | [`rpc`] | JSON-RPC 2.0, which MCP and A2A are written in |
//! | [`mcp`] | revisions of MCP, its methods, `_meta` keys, headers, error codes, and the mirroring of 2026-07-28 |
//! | [`a2a`] | A2A 0.3 and 1.0, and each seen as the other |
//! | [`ag_ui`] | the events of AG-UI and the input of a run |
//! | [`assembly`] | which messages are pieces of a longer one, and how they are put together |
//! | [`text`] | which fields of a message hold text |
//! | [`base64`] | the encodings that the protocols use |
//!
//! ```
//! use proofhouse_protocol::a2a::{A2aMethod, A2aVersion};
//! use proofhouse_protocol::ag_ui::AgUiEventType;
//! use proofhouse_protocol::mcp::{McpMethod, McpRevision};
//!
//! let asked = McpRevision::parse("2026-07-28").unwrap();
//! assert!(asked.is_stateless() && McpMethod::Initialize.exists_in(McpRevision::LATEST_WITH_SESSIONS));
//! assert!(!McpMethod::Initialize.exists_in(asked));
//!
//! let (method, version) = A2aMethod::parse("SendMessage").unwrap();
//! assert_eq!((method.as_str(A2aVersion::V0_3), version), ("message/send", A2aVersion::V1_0));
//!
//! assert_eq!(AgUiEventType::RunStarted.as_str(), "RUN_STARTED");
//! ```

#[macro_use]
mod names;

mod exact_id;

pub mod a2a;
pub mod ag_ui;
pub mod assembly;
pub mod base64;
pub mod mcp;
pub mod rpc;
pub mod text;

/// The content type of JSON.
pub const JSON: &str = "application/json";
/// The content type of server-sent events.
pub const EVENT_STREAM: &str = "text/event-stream";
/// What a client of MCP or A2A accepts: JSON, and events where an answer is streamed.
pub const ACCEPT_JSON_OR_EVENTS: &str = "application/json, text/event-stream";
