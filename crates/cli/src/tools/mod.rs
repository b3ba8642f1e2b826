//! What the commands on tools share: manifests, what the operator configures, arguments and traces.

pub(crate) mod arguments;
pub(crate) mod manifests;
pub(crate) mod options;
pub(crate) mod trace;
pub(crate) mod work;
