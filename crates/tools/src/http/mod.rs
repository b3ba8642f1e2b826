//! HTTP for runtimes: one client with one egress policy, one way to repeat and one way to fail.

mod client;
mod egress;
mod encoding;
mod request;

pub use client::{Answer, HttpClient};
pub use egress::{EgressDenied, EgressPolicy};
pub use request::Request;
pub(crate) use request::references;
