//! Bytes and frames: server-sent events, stdio and HTTP.
//!
//! The other end is hostile by assumption. Every size, count and time that it could choose is
//! bounded by [`Limits`], and what it sends wrong becomes a value, never a panic. The sending side
//! is free: a caller may write any bytes, also those that no library would send.

pub mod client;
mod connect;
mod exchange;
mod guard;
mod leftovers;
mod limits;
mod lines;
pub mod origin;
mod patient;
mod process;
pub mod server;
pub mod sse;
mod timers;

pub use bytes::Bytes;
pub use exchange::Whole;
pub use guard::AddressGuard;
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
pub use leftovers::{adopt_orphans, end_orphans, kill_marked};
pub use limits::Limits;
pub use lines::{Line, LineReader};
pub use process::{Child, ProcessError, Spawn};
pub use tokio_util::sync::CancellationToken;
pub use url::Url;
