//! Campaigns in a store, worked off by several workers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may, like the tests themselves"
)]

mod away;
mod caps;
mod grants;
mod lost;
mod object_store;
mod support;
mod work;
