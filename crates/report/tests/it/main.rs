//! The tests of reports: their golden files, their schemas, and a browser that opens them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod browser;
mod report_schemas;
mod reports;
mod support;
