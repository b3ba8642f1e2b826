//! The tests of the language server that need no process: sessions of clients that mean harm, and schemas that agree with
//! what `validate` says.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod agreement;
mod hostile;
mod recognition;
