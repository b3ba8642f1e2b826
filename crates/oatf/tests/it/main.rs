//! The tests of the threat format: its rules, what they let pass, and what they judge.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod bad_input;
mod construction;
mod differential;
mod differential_table;
mod differential_wide;
mod doubtful;
mod evaluation;
mod package;
mod properties;
mod rules;
mod schema_agreement;
mod seeds;
mod vectors;
