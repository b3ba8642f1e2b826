//! Runs one agent: the models it can have, and its tasks.

mod clock;
pub mod model;
pub mod task;

pub use clock::SteppedClock;
