//! Subjects of campaigns: simulations, agents of manifests, commands and agents that run already.

mod agent;
mod command;
mod endpoint;
mod options;
mod user;

pub(crate) use options::SubjectOptions;
