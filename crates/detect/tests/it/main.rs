//! The tests of scanners and of the traces that they read.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod batch;
mod canary;
mod canary_key;
mod equivalence;
mod evidence;
mod hiding;
mod traces;
mod whole_messages;
