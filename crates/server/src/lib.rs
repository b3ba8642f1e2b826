//! Runs agents as a service: HTTP API, webhooks, events, a dashboard.

pub mod keys;
pub mod metrics;
pub mod problem;
pub mod rate;
