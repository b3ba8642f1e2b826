//! The tests of the engine behind the service: events, its HTTP interface, and crashes.

mod engine_crash;
mod engine_events;
mod engine_http;
mod engine_support;
