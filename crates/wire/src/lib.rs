//! Bytes and frames: server-sent events, stdio and HTTP.
//!
//! The other end is hostile by assumption. Every size, count and time that it could choose is
//! bounded by [`WireLimits`], and what it sends wrong becomes a value, never a panic. The sending side
//! is free: a caller may write any bytes, also those that no library would send.

mod blocking;
mod circuit_breaker;
pub mod client;
mod connect;
pub mod connection_limiter;
mod egress;
pub mod encoding;
mod exchange;
pub mod files;
pub mod fnv;
mod forwarded;
pub mod gate;
mod guard;
mod limits;
mod lines;
mod listen_address;
mod open_files;
pub mod origin;
mod orphan_processes;
pub mod peer;
mod process;
mod prompt_lines;
mod proxy;
pub mod repository;
pub mod retry;
pub mod run_files;
pub mod server;
mod slow_client;
pub mod sse;
pub mod sync;
mod timers;
pub mod trace;
pub mod webhook;
pub mod write_files;

pub use blocking::Blocking;
pub use bytes::Bytes;
pub use circuit_breaker::{CircuitBreaker, CircuitOpen, CircuitPass};
pub use egress::{EgressDenied, EgressPolicy, NotACertificate};
pub use exchange::HttpResponse;
pub use forwarded::TrustedProxies;
pub use guard::{AddressDenied, AddressGuard};
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
pub use limits::WireLimits;
pub use lines::{LineReader, WireLine};
pub use listen_address::{NotAnAddress, listen_address};
pub use open_files::allow_open_files;
pub use orphan_processes::{adopt_orphans, count_marked, end_orphans, kill_marked};
pub use process::{Child, ProcessError, Spawn};
pub use prompt_lines::{PromptLineError, prompt_lines};
pub use proxy::{ProxySettings, is_this_machine};
pub use tokio_util::sync::{CancellationToken, DropGuard};
pub use url::Url;
