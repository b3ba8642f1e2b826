//! Subjects of campaigns: simulations, agents of manifests, commands and agents that run already.

mod a2a;
mod agent;
mod options;

pub(crate) use options::SubjectOptions;
