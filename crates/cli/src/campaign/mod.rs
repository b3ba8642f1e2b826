//! What `proofhouse run` shows: the progress, the reports and what a comparison can find.

pub(crate) mod meter;
pub(crate) mod power;
pub(crate) mod reports;
