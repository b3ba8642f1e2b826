//! The tests of frames, processes and HTTP.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod exchange;
mod guard;
mod hostile_clients;
mod http;
mod processes;
