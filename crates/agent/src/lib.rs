//! Runs one agent: so far the models it can have.

pub mod model;
pub mod task;
