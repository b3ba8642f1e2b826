//! HTTP for runtimes: one client with one egress policy, one way to repeat and one way to fail.

mod client;
mod egress;
mod encoding;
mod request;

pub use client::{HttpClient, ToolResponse};
pub use egress::{EgressDenied, EgressPolicy};
pub use request::ToolRequest;
pub(crate) use request::references;
