//! What the commands on agents share: manifests, models, MCP servers, and what is shown of a task.

pub(crate) mod bundles;
pub(crate) mod ending;
pub(crate) mod lines;
pub(crate) mod models;
pub(crate) mod options;
pub(crate) mod servers;
pub(crate) mod show;
