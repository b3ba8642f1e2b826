//! What the store counts, as Prometheus reads it.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use proofhouse_store::{BOUNDS, Timing, Timings};

/// Tells the times and the failures of a store's transactions.
#[derive(Debug)]
pub(super) struct StoreCollector(pub(super) Arc<Timings>);

impl StoreCollector {
    fn kinds(&self) -> [(&'static str, &Timing); 2] {
        [("read", &self.0.reads), ("write", &self.0.writes)]
    }
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Seconds until transactions of the store were done, durably where they write";
        let kind = MetricType::Histogram;
        let mut times = encoder.encode_descriptor("store_seconds", help, None, kind)?;
        for (mode, timing) in self.kinds() {
            let counts = timing.counts();
            let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
            let (sum, count) = (timing.total().as_secs_f64(), counts.iter().sum());
            let labels = [("mode", mode)];
            let mut times = times.encode_family(&labels)?;
            times.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        let help = "Transactions that failed because the database could not be used";
        let kind = MetricType::Counter;
        let mut failures = encoder.encode_descriptor("store_failures", help, None, kind)?;
        for (mode, timing) in self.kinds() {
            let labels = [("mode", mode)];
            let failures = failures.encode_family(&labels)?;
            ConstCounter::new(timing.failures()).encode(failures)?;
        }
        Ok(())
    }
}
