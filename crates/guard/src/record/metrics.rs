//! What a guard counts, for Prometheus. `docs/reference/guard.md` has all of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use proofhouse_wire::server::{BoundServer, Handler, Reply, ReplyBody, Request};
use proofhouse_wire::{CancellationToken, Method, StatusCode, WireLimits, origin};

use crate::finding::GuardFinding;

/// Bounds of the times that judging takes, in seconds.
const SECONDS: [f64; 9] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.025, 0.1, 1.0,
];

/// Where they are.
const PATH: &str = "/metrics";

/// Two labels, whose values are all words of ours: they must not grow with what strangers send.
type TwoWords = [(&'static str, &'static str); 2];

/// What is counted.
#[derive(Debug)]
pub struct GuardMetrics {
    registry: Registry,
    messages: Family<TwoWords, Counter>,
    findings: Family<TwoWords, Counter>,
    judging: Histogram,
    sessions: Counter,
}

impl Default for GuardMetrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("proofhouse_guard");
        let messages = Family::default();
        let help = "Messages, by who sent them and whether they passed as they were";
        registry.register("messages", help, messages.clone());
        let findings = Family::default();
        let help = "Findings, by their code and what became of the message";
        registry.register("findings", help, findings.clone());
        let judging = Histogram::new(SECONDS);
        let help = "Seconds that judging a message took";
        registry.register("judge_seconds", help, judging.clone());
        let sessions = Counter::default();
        registry.register("sessions", "Sessions that were begun", sessions.clone());
        Self {
            registry,
            messages,
            findings,
            judging,
            sessions,
        }
    }
}

impl GuardMetrics {
    /// A session began.
    pub(crate) fn session(&self) {
        self.sessions.inc();
    }

    /// A message was judged.
    pub(crate) fn judged(&self, from: &'static str, passed: bool, time: Duration) {
        let outcome = if passed { "passed" } else { "changed" };
        let labels = [("from", from), ("outcome", outcome)];
        self.messages.get_or_create(&labels).inc();
        self.judging.observe(time.as_secs_f64());
    }

    /// Something was found.
    pub(crate) fn finding(&self, finding: &GuardFinding) {
        let labels = [
            ("code", finding.code.as_str()),
            ("decision", finding.decision.as_str()),
        ];
        self.findings.get_or_create(&labels).inc();
    }

    /// The text that Prometheus reads.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Why metrics cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// Others could read them.
    #[error("{0}: metrics are shown on a loopback address only, such as 127.0.0.1:9464")]
    NotLoopback(SocketAddr),
    /// The address cannot be used.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
}

/// Shows metrics at an address of this machine, until it is cancelled. Returns the address of the page.
///
/// # Errors
///
/// Returns an error when the address cannot be used.
pub async fn show_metrics(
    metrics: Arc<GuardMetrics>,
    address: SocketAddr,
    cancel: CancellationToken,
) -> Result<String, MetricsError> {
    if !address.ip().is_loopback() {
        return Err(MetricsError::NotLoopback(address));
    }
    let bound = BoundServer::new(address).await;
    let bound = bound.map_err(|error| MetricsError::Listen { address, error })?;
    let address = bound.address();
    let page = Arc::new(MetricsPage { metrics, address });
    tokio::spawn(bound.serve(page, WireLimits::default(), cancel));
    Ok(format!("http://{address}{PATH}"))
}

struct MetricsPage {
    metrics: Arc<GuardMetrics>,
    address: SocketAddr,
}

impl Handler for MetricsPage {
    async fn handle(&self, request: Request) -> Reply {
        if !origin::is_allowed(&request.headers, self.address) {
            return Reply::empty(StatusCode::FORBIDDEN);
        }
        if request.path != PATH {
            return Reply::empty(StatusCode::NOT_FOUND);
        }
        if request.method != Method::GET {
            return Reply::empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        let form = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        Reply::empty(StatusCode::OK)
            .with_header("content-type", form)
            .with_body(ReplyBody::Whole(self.metrics.text().into()))
    }
}
