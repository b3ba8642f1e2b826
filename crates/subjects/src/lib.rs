//! Subjects of campaigns: simulations, agents of manifests, bare models, commands and agents that run already.

mod agent;
mod command;
mod digest;
mod endpoint;
mod mcp_config;
pub(crate) mod open;
mod options;
pub(crate) mod placeholders;
pub(crate) mod spec;
mod user;

pub(crate) use options::SubjectOptions;
