//! What the commands on agents share: models, and what is shown of a task.

pub(crate) mod ending;
pub(crate) mod models;
pub(crate) mod options;
pub(crate) mod show;
