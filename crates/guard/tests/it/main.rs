//! The tests of the guard that use only its public interface, by theme.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails; it reads what it wrote itself"
)]

mod agents;
mod ambiguous;
mod calls;
mod faults;
mod fields;
mod http;
mod indicators;
mod install;
mod learn;
mod memory;
mod orders;
mod pack;
mod pin_asks;
mod pins;
mod pins_random;
mod record;
mod results;
mod share;
mod sign_in;
mod support;
mod taint;
