//! What `proofhouse run` shows: the progress and the reports.

pub(crate) mod meter;
pub(crate) mod reports;
