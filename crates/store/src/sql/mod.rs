//! The store as statements, which are the same for both engines.

mod channels;
mod deliveries;
pub(crate) mod dialect;
mod events;
mod interests;
mod leases;
mod polls;
mod records;
pub(crate) mod row;
pub(crate) mod session;
mod starts;
mod store;
mod tasks;
mod turns;
mod upkeep;

pub use store::SqlStore;

use crate::model::limits::MAX_PAGE;

/// How many rows a page has, whatever was asked for.
fn page(limit: usize) -> usize {
    limit.min(MAX_PAGE)
}
