//! Agent manifests: what an agent is told, what it may use, and the rules around that.

mod decode;
pub(super) mod fields;
mod model;
mod steps;

pub(super) use steps::StepPosition;

pub use model::{
    Agent, Binding, Capability, Grant, Guardrails, MiddlewareStep, MountScope, OnFail, StepAction,
    TaskLimits,
};
