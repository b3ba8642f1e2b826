//! Runs agents: the models they can have, the tasks they do, and how others reach them.

pub mod model;
pub mod remote;
pub mod serve;
pub mod task;
