//! The tests of the store: one contract on every engine, and what each does by itself.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod contract;
mod killed;
mod sqlite;
