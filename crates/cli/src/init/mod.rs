//! The questions of `proofhouse init`.

pub(crate) mod ask;
