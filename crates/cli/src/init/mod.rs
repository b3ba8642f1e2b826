//! What `proofhouse init` is made of: what is found in a directory and on this machine, the questions, and
//! the file that comes of it.

pub(crate) mod ask;
pub(crate) mod detect;
pub(crate) mod packages;
pub(crate) mod probe;
pub(crate) mod write;
