//! What tests of several crates share. Only tests depend on it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a part of tests: one that cannot go on should say so"
)]

pub mod alone;
pub mod peers;
