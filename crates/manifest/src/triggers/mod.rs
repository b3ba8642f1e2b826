//! Manifests of triggers and schedules: what starts a task by itself.

mod check;
mod decode;
pub(super) mod fields;
mod model;

pub use model::{EventTrigger, Schedule, TriggerSource};
