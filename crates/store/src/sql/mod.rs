//! The store as statements, which are the same for both databases.

pub(crate) mod attempts;
pub(crate) mod audit;
pub(crate) mod campaign_work;
pub(crate) mod campaigns;
pub(crate) mod channels;
pub(crate) mod deliveries;
pub(crate) mod dialect;
pub(crate) mod events;
pub(crate) mod interests;
pub(crate) mod keys;
pub(crate) mod leases;
pub(crate) mod polls;
pub(crate) mod records;
pub(crate) mod retention;
pub(crate) mod row;
pub(crate) mod sessions;
pub(crate) mod task_search;
pub(crate) mod tasks;
pub(crate) mod transaction;
pub(crate) mod triggers;
pub(crate) mod turns;
pub(crate) mod upkeep;

use crate::model::limits::MAX_PAGE;

/// How many rows a page has, whatever was asked for.
fn page(limit: usize) -> usize {
    limit.min(MAX_PAGE)
}
