//! Runs agents as a service: HTTP API, webhooks, events, a dashboard.

pub mod api;
pub mod audit;
mod collector;
mod dashboard;
pub mod engine;
pub mod key_change;
pub mod keys;
pub mod listen;
pub mod metrics;
pub mod oidc;
pub mod otel_bridge;
pub mod problem;
pub mod rate;
mod received_body;

pub use collector::OtlpCollector;
