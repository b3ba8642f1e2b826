//! The tests of reports: their golden files, their schemas, and a browser that opens them.

mod browser;
mod report_schemas;
mod reports;
mod support;
