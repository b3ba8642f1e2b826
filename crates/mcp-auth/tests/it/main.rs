//! Authorization against servers on the loopback address.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod consent;
mod flow;
mod grants;
mod support;
mod tokens;
