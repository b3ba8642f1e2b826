//! The tests of the engine behind the service: events, its HTTP interface, and crashes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod audit_log;
mod bounds;
mod callers;
mod engine_crash;
mod engine_events;
mod engine_http;
mod engine_sleep;
mod engine_support;
mod fair_polls;
mod liveness;
mod push_channels;
mod repeats;
mod retention;
mod room;
mod signing_in;
mod simulation;
mod unstorable;
