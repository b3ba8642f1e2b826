//! Removes campaigns that are old, and traces that no campaign needs any more.

use std::collections::HashMap;
use std::time::Duration;

use proofhouse_store::Store;

use crate::FleetError;
use crate::traces::{TraceStore, TraceStoreError};

/// Campaigns that are removed in one transaction.
const CAMPAIGNS: usize = 5;
/// Traces that are forgotten in one transaction.
const TRACES: usize = 500;

/// What was removed.
#[derive(Debug, Default)]
pub struct Pruned {
    /// How many campaigns.
    pub campaigns: u64,
    /// How many traces.
    pub traces: u64,
    /// Traces that could not be removed; the store names them no longer.
    pub problems: Vec<String>,
}

/// Removes campaigns that were over this long ago, with their traces; or their traces only.
///
/// # Errors
///
/// Returns an error when the store says no.
pub async fn prune(
    store: &Store,
    older_than: Duration,
    traces_only: bool,
    open: &dyn Fn(&str) -> Result<TraceStore, TraceStoreError>,
) -> Result<Pruned, FleetError> {
    let age = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
    let mut pruned = Pruned::default();
    let mut places: HashMap<String, Result<TraceStore, TraceStoreError>> = HashMap::new();
    loop {
        let (changed, traces) = if traces_only {
            store.prune_campaign_traces(age, TRACES).await?
        } else {
            let removed = store.prune_campaigns(age, CAMPAIGNS).await?;
            pruned.campaigns += removed.campaigns;
            (removed.campaigns, removed.traces)
        };
        if changed == 0 {
            return Ok(pruned);
        }
        for (place, digest) in traces {
            let opened = places.entry(place).or_insert_with_key(|place| open(place));
            let removed = match opened {
                Ok(traces) => traces.remove(&digest).await,
                Err(error) => Err(error.clone()),
            };
            match removed {
                Ok(()) => pruned.traces += 1,
                Err(error) => pruned.problems.push(format!("trace {digest}: {error}")),
            }
        }
    }
}
