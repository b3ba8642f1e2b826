//! The tests of the guard that use only its public interface, by theme.
#![allow(clippy::panic, reason = "a test that cannot go on fails")]

mod calls;
mod faults;
mod fields;
mod http;
mod indicators;
mod install;
mod learn;
mod pins;
mod pins_random;
mod record;
mod results;
mod support;
mod taint;
