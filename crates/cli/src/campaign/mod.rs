//! What `proofhouse run` shows: the preflight, the progress, the reports and what a comparison can find; and where it keeps
//! what it finds.

pub(crate) mod listing;
pub(crate) mod meter;
pub(crate) mod power;
pub(crate) mod preflight;
pub(crate) mod reports;
pub(crate) mod results;
