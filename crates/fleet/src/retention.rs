//! Removes campaigns that are old, and traces that no campaign needs any more.

use std::collections::HashMap;
use std::time::Duration;

use proofhouse_store::Store;

use crate::FleetError;
use crate::traces::{TraceStore, TraceStoreError};

/// Results, runs or traces that are removed in one transaction: few, so that workers of other campaigns do not wait for it.
const BATCH: usize = 500;

/// What was removed.
#[derive(Debug, Default)]
pub struct Pruned {
    /// The campaigns, as `NAME@NUMBER`.
    pub campaigns: Vec<String>,
    /// How many results.
    pub results: u64,
    /// How many traces.
    pub traces: u64,
    /// Traces that could not be removed; the store names them no longer.
    pub problems: Vec<String>,
}

impl Pruned {
    /// What people are told, and what a log keeps of it.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let of_each = self.campaigns.iter();
        let of_each = of_each.map(|campaign| format!("Removed campaign {campaign}."));
        let count = self.campaigns.len();
        let plural = if count == 1 { "" } else { "s" };
        let (results, traces) = (self.results, self.traces);
        let all =
            format!("Removed {count} campaign{plural} ({results} results) and {traces} traces.");
        of_each.chain([all]).collect()
    }
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
        let (is_more, traces) = if traces_only {
            let (changed, traces) = store.prune_campaign_traces(age, BATCH).await?;
            (changed > 0, traces)
        } else {
            let step = store.prune_campaigns(age, BATCH).await?;
            let names = step.campaigns.iter();
            let names = names.map(|(name, number)| format!("{name}@{number}"));
            pruned.campaigns.extend(names);
            pruned.results += step.results;
            (step.is_more, step.traces)
        };
        if !is_more {
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
