//! The tests of CEL expressions and their limits.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod documentation;
mod hostile;
mod properties;
mod sets;
mod table;
