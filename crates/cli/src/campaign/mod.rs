//! What `proofhouse run` shows: the progress and the reports; and where it keeps what it finds.

pub(crate) mod meter;
pub(crate) mod on_kubernetes;
pub(crate) mod reports;
pub(crate) mod results;
