//! Metrics: what the server counts, for Prometheus. `docs/reference/server.md` has all of them.

mod counts;
pub(crate) mod engine;
mod models;
mod process;
mod store;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use proofhouse_store::Store;
use proofhouse_store::model::{ChannelState, StoreStats, TaskState};

use counts::LabelledCounters;
use counts::kinds;
use engine::EngineMetrics;
use models::ModelMetrics;
use process::ProcessCollector;
use store::StoreCollector;

/// Bounds of the times of requests, in seconds.
const SECONDS: [f64; 11] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0,
];

/// A route and what came of a request to it. The route is one of ours, never what was asked for: labels
/// must not grow with what strangers send.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// The route.
    pub route: String,
    /// The status.
    pub status: u16,
}

kinds! {
    /// What was done with a webhook.
    WebhookCount {
        Stored = "stored",
        Duplicate = "duplicate",
        Handshake = "handshake",
        // Nothing of the rest is kept.
        Unknown = "unknown",
        Signature = "signature",
        Malformed = "malformed",
        TooLarge = "too_large",
        Unsupported = "unsupported",
        Method = "method",
        Unreadable = "unreadable",
        TooMany = "too_many",
        Unavailable = "unavailable",
    }
}

kinds! {
    /// What was done about a connection beyond the limits.
    OverLimit {
        Refused = "refused",
        // An idle or a slow one was closed for it.
        MadeWay = "made_way",
        // It was let in for what is essential alone.
        Reserved = "reserved",
    }
}

/// A route of ours.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RouteLabels {
    /// The route.
    pub(crate) route: String,
}

fn request_histogram() -> Histogram {
    Histogram::new(SECONDS)
}

/// What something is doing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

/// What is counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Requests, by route and status.
    pub requests: Family<RequestLabels, Counter>,
    /// How long they took, by route.
    pub(crate) request_seconds: Family<RouteLabels, Histogram>,
    /// Connections that are open.
    pub connections: Gauge<i64>,
    /// Streams that are open.
    pub(crate) streams: Gauge,
    /// Bytes that were read for those who follow streams, and that they have not taken yet.
    pub(crate) stream_bytes: Gauge,
    /// Entries of the audit log that could not be written.
    pub(crate) audit_failures: Counter,
    /// Connections beyond the limits.
    pub(crate) over_limit: LabelledCounters<OverLimit>,
    /// Webhooks that arrived, by what was done with them.
    pub(crate) webhooks: LabelledCounters<WebhookCount>,
    /// What the engine counts.
    pub(crate) engine: EngineMetrics,
    /// What models were asked.
    pub(crate) models: ModelMetrics,
    store_up: Gauge,
    tasks: Family<StateLabels, Gauge>,
    channels: Family<StateLabels, Gauge>,
    unrouted_events: Gauge,
    pending_deliveries: Gauge,
    /// Tasks that have something to do and no agent that can do it.
    pub(crate) tasks_without_agent: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("proofhouse");
        let requests = Family::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        let request_seconds = Family::new_with_constructor(request_histogram as fn() -> Histogram);
        let help = "Seconds until requests were answered";
        registry.register("http_request_seconds", help, request_seconds.clone());
        let connections = Gauge::default();
        registry.register("http_connections", "Open connections", connections.clone());
        let streams = Gauge::default();
        registry.register("streams", "Open streams", streams.clone());
        let stream_bytes = Gauge::default();
        let help = "Bytes that wait for those who follow streams";
        registry.register("stream_bytes", help, stream_bytes.clone());
        let audit_failures = Counter::default();
        let help = "Entries of the audit log that could not be written";
        registry.register("audit_failures", help, audit_failures.clone());
        let help = "Connections beyond the limits: refused, or idle ones that made way";
        let name = "http_connections_over_limit";
        let over_limit = LabelledCounters::register(&mut registry, name, help, "outcome");
        let help = "Webhooks that arrived, by what was done with them";
        let webhooks = LabelledCounters::register(&mut registry, "webhooks", help, "outcome");
        let engine = EngineMetrics::register(&mut registry);
        let models = ModelMetrics::register(&mut registry);
        let store_up = Gauge::default();
        let help = "Whether the store could be read when this was asked for";
        registry.register("store_up", help, store_up.clone());
        let tasks = Family::default();
        registry.register("tasks", "Tasks, by what they are doing", tasks.clone());
        let channels = Family::default();
        let help = "Push channels, by how far they are";
        registry.register("channels", help, channels.clone());
        let unrouted_events = Gauge::default();
        let help = "Events that wait to be routed";
        registry.register("unrouted_events", help, unrouted_events.clone());
        let pending_deliveries = Gauge::default();
        let help = "Inputs that wait for their task";
        registry.register("pending_deliveries", help, pending_deliveries.clone());
        let tasks_without_agent = Gauge::default();
        let help = "Tasks that have something to do, and whose agent is in no manifest any more or cannot be started";
        registry.register("tasks_without_agent", help, tasks_without_agent.clone());
        Self {
            registry,
            requests,
            request_seconds,
            connections,
            streams,
            stream_bytes,
            audit_failures,
            over_limit,
            webhooks,
            engine,
            models,
            store_up,
            tasks,
            channels,
            unrouted_events,
            pending_deliveries,
            tasks_without_agent,
        }
    }
}

impl Metrics {
    /// Counts, and tells what this store counts.
    #[must_use]
    pub fn of(store: &Store) -> Self {
        let mut metrics = Self::default();
        let collector = StoreCollector(store.timings());
        metrics.registry.register_collector(Box::new(collector));
        let process = Box::new(ProcessCollector);
        metrics.registry.register_collector(process);
        metrics
    }

    /// The text that Prometheus reads.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Takes over how much there is in the store; nothing if it cannot be read. What it held before is not told then.
    pub(crate) fn observe(&self, stats: Option<&StoreStats>) {
        self.store_up.set(stats.is_some().into());
        let Some(stats) = stats else {
            self.tasks.clear();
            self.channels.clear();
            return;
        };
        let count = |counts: &std::collections::BTreeMap<String, i64>, state: &str| {
            // A state that nobody is in any more has no row.
            counts.get(state).copied().unwrap_or(0)
        };
        for state in TaskState::ALL.iter().map(|state| state.as_str()) {
            let gauge = self.tasks.get_or_create(&StateLabels { state });
            gauge.set(count(&stats.tasks, state));
        }
        for state in ChannelState::ALL.iter().map(|state| state.as_str()) {
            let gauge = self.channels.get_or_create(&StateLabels { state });
            gauge.set(count(&stats.channels, state));
        }
        self.unrouted_events.set(stats.unrouted_events);
        self.pending_deliveries.set(stats.pending_deliveries);
    }

    /// Counts a webhook.
    pub(crate) fn webhook(&self, outcome: WebhookCount) {
        self.webhooks.one(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_nobody_is_in_any_more_is_zero() {
        let metrics = Metrics::default();
        let mut stats = StoreStats::default();
        stats.tasks.insert("running".to_owned(), 3);
        metrics.observe(Some(&stats));
        assert!(metrics.text().contains("tasks{state=\"running\"} 3"));
        metrics.observe(Some(&StoreStats::default()));
        let text = metrics.text();
        assert!(text.contains("tasks{state=\"running\"} 0"), "{text}");
        assert!(text.contains("store_up 1"), "{text}");
        metrics.observe(None);
        let text = metrics.text();
        assert!(!text.contains("tasks{state="), "{text}");
        assert!(text.contains("store_up 0"), "{text}");
    }
}
