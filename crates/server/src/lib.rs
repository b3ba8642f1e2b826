//! Runs agents as a service: HTTP API, webhooks, events, a dashboard.

pub mod api;
mod connection_limiter;
mod dashboard;
pub mod engine;
pub mod keys;
pub mod listen;
pub mod metrics;
mod peer;
pub mod problem;
pub mod rate;
