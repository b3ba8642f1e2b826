//! What tests of several crates share. Only tests depend on it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a part of tests: one that cannot go on should say so"
)]

#[cfg(feature = "proptest")]
pub mod a2a_values;
pub mod alone;
pub mod browser;
#[cfg(feature = "campaign")]
pub mod campaign_result;
pub mod http;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod loopback;
pub mod peers;
pub mod postgres;
pub mod process;
pub mod wait;
pub mod workspace;
