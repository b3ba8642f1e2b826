//! What `proofhouse run` is made of: the documents, the progress, the conditions of failure, the reports.

pub(crate) mod documents;
pub(crate) mod fail_on;
pub(crate) mod filters;
pub(crate) mod meter;
pub(crate) mod reports;
