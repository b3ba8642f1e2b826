//! Runs agents: the models they can have, the tasks they do, and how others reach them.

mod clock;
pub mod model;
pub mod remote;
pub mod serve;
pub mod task;

pub use clock::SteppedClock;
