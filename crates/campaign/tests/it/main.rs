//! The tests of the regression gate.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod regression_gate;
