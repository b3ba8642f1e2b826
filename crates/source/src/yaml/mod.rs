//! YAML: a bounded reader that keeps places, and a canonical writer.

pub(crate) mod comments;
pub(crate) mod emit;
mod help;
pub(crate) mod plain;
pub(crate) mod read;
pub(crate) mod scalar;
