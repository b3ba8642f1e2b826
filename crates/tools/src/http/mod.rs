//! HTTP for runtimes: one client with one egress policy, one way to repeat and one way to fail.

mod client;
mod request;

pub use client::HttpClient;
pub use proofhouse_wire::{EgressDenied, EgressPolicy, HttpResponse};
pub use request::ToolRequest;
pub(crate) use request::references;
