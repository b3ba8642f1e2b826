//! Metrics: what the server counts, for Prometheus.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use proofhouse_store::model::Stats;

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

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabels {
    /// One word of ours.
    pub outcome: &'static str,
}

/// What something is doing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: String,
}

/// What is counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Requests, by route and status.
    pub requests: Family<RequestLabels, Counter>,
    /// How long they took.
    pub request_seconds: Histogram,
    /// Webhooks that arrived, by what was done with them.
    pub webhooks: Family<OutcomeLabels, Counter>,
    /// Connections that are open.
    pub connections: Gauge<i64>,
    over_limit: Family<OutcomeLabels, Counter>,
    /// Problems in the manifests as they are now.
    pub manifest_problems: Gauge<u64, AtomicU64>,
    tasks: Family<StateLabels, Gauge>,
    unrouted_events: Gauge,
    pending_deliveries: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("proofhouse");
        let requests = Family::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        let request_seconds = Histogram::new(SECONDS);
        let help = "Seconds until requests were answered";
        registry.register("http_request_seconds", help, request_seconds.clone());
        let webhooks = Family::default();
        let help = "Webhooks that arrived, by what was done with them";
        registry.register("webhooks", help, webhooks.clone());
        let connections = Gauge::default();
        registry.register("http_connections", "Open connections", connections.clone());
        let over_limit = Family::default();
        let help = "Connections beyond the limits: refused, or idle ones that made way";
        registry.register("http_connections_over_limit", help, over_limit.clone());
        let manifest_problems = Gauge::default();
        let help = "Problems in the manifests";
        registry.register("manifest_problems", help, manifest_problems.clone());
        let tasks = Family::default();
        registry.register("tasks", "Tasks, by what they are doing", tasks.clone());
        let unrouted_events = Gauge::default();
        let help = "Events that wait to be routed";
        registry.register("unrouted_events", help, unrouted_events.clone());
        let pending_deliveries = Gauge::default();
        let help = "Inputs that wait for their task";
        registry.register("pending_deliveries", help, pending_deliveries.clone());
        Self {
            registry,
            requests,
            request_seconds,
            webhooks,
            connections,
            over_limit,
            manifest_problems,
            tasks,
            unrouted_events,
            pending_deliveries,
        }
    }
}

impl Metrics {
    /// The text that Prometheus reads.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Takes over what the store counts.
    pub(crate) fn observe(&self, stats: &Stats) {
        for (state, count) in &stats.tasks {
            let state = state.clone();
            self.tasks.get_or_create(&StateLabels { state }).set(*count);
        }
        self.unrouted_events.set(stats.unrouted_events);
        self.pending_deliveries.set(stats.pending_deliveries);
    }

    /// Counts a connection that was one too many.
    pub(crate) fn over_limit(&self, outcome: &'static str) {
        self.over_limit
            .get_or_create(&OutcomeLabels { outcome })
            .inc();
    }

    /// Counts a webhook.
    pub fn webhook(&self, outcome: &'static str) {
        self.webhooks
            .get_or_create(&OutcomeLabels { outcome })
            .inc();
    }
}
