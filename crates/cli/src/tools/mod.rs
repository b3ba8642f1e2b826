//! What the commands on tools share: manifests, what the operator configures, arguments and work that can be interrupted.

pub(crate) mod arguments;
pub(crate) mod manifests;
pub(crate) mod options;
pub(crate) mod work;
