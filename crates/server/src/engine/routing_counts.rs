//! What was decided about an event, in numbers, for the metrics. It is counted once it is kept.

use proofhouse_store::StoreError;
use proofhouse_store::model::EventRouting;

use crate::metrics::engine::{DiscardLabel, EngineMetrics, RoutingOutcome, TaskStarter};

/// The numbers of one event.
#[derive(Debug)]
pub(super) struct RoutingCounts {
    reached: bool,
    begun: u64,
    /// How many tasks did not get it, by the reason; nothing where all who listen did.
    discards: Vec<(DiscardLabel, u64)>,
}

impl RoutingCounts {
    pub(super) fn of(routing: &EventRouting) -> Self {
        let because = routing.outcome["discarded"]["because"].as_object();
        let discards = because
            .into_iter()
            .flatten()
            .filter_map(|(word, count)| Some((DiscardLabel::named(word)?, count.as_u64()?)));
        Self {
            reached: !routing.deliveries.is_empty() || !routing.tasks.is_empty(),
            begun: routing.tasks.len() as u64,
            discards: discards.collect(),
        }
    }

    /// Counts it by what came of the attempt to keep it. As many triggers could not begin a task as `failures` says.
    pub(super) fn count<T>(
        self,
        counts: &EngineMetrics,
        outcome: &Result<T, StoreError>,
        failures: usize,
    ) {
        counts.routed.one(match outcome {
            Ok(_) if self.reached => RoutingOutcome::Delivered,
            Ok(_) if self.discards.is_empty() => RoutingOutcome::Unwanted,
            Ok(_) => RoutingOutcome::Discarded,
            // Another process has decided about it.
            Err(StoreError::Fenced(_) | StoreError::Conflict(_)) => RoutingOutcome::Elsewhere,
            Err(_) => RoutingOutcome::Failed,
        });
        if outcome.is_ok() {
            counts.begun.add(TaskStarter::Trigger, self.begun);
            let failures = failures as u64;
            counts.start_failures.add(TaskStarter::Trigger, failures);
            for (reason, count) in self.discards {
                counts.discards.add(reason, count);
            }
        }
    }
}
