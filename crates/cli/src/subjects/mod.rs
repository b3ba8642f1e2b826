//! Subjects of campaigns: simulations, agents of manifests, commands and agents that run already.

mod agent;
mod options;

pub(crate) use options::SubjectOptions;
