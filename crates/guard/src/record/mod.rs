//! What the guard saw, written as it happens: a trace that `scan` reads, findings as JSON Lines and as OCSF events.

mod metrics;
mod ocsf;
pub(crate) mod spans;

use std::io::Write;
use std::sync::{Arc, Mutex};

use proofhouse_detect::{TraceMessage, TraceWriter};
use proofhouse_wire::sync::lock;
use serde_json::{Map, Value, json};

use crate::finding::GuardFinding;

pub use metrics::{GuardMetrics, MetricsError, show_metrics};
pub use ocsf::to_ocsf;

/// Where something is written.
pub type RecordTarget = Box<dyn Write + Send>;

/// Hears of every finding.
pub type FindingListener = Box<dyn FnMut(&GuardFinding) + Send>;

/// Writes down what was seen.
pub struct GuardRecorder {
    trace: Option<TraceWriter<RecordTarget>>,
    findings: Option<RecordTarget>,
    ocsf: Option<RecordTarget>,
    on_finding: Option<FindingListener>,
    metrics: Option<Arc<GuardMetrics>>,
    clock: fn() -> jiff::Timestamp,
    /// The first thing that could not be written.
    failure: Option<std::io::Error>,
    sequence: u64,
}

/// A recorder that several sessions write to.
#[derive(Clone)]
pub struct SharedRecorder(Arc<Mutex<GuardRecorder>>);

impl SharedRecorder {
    /// Does something with it.
    pub fn with<T>(&self, work: impl FnOnce(&mut GuardRecorder) -> T) -> T {
        work(&mut lock(&self.0))
    }
}

impl Default for GuardRecorder {
    fn default() -> Self {
        Self {
            trace: None,
            findings: None,
            ocsf: None,
            on_finding: None,
            metrics: None,
            clock: jiff::Timestamp::now,
            failure: None,
            sequence: 0,
        }
    }
}

impl GuardRecorder {
    /// Writes every message as a trace, after a header that names the server.
    #[must_use]
    pub fn with_trace(mut self, target: RecordTarget, server: &str) -> Self {
        let mut writer = TraceWriter::new(target);
        let header = json!({"recorded_by": "proofhouse guard", "server": server});
        let none = Map::new();
        let written = writer.write_header(header.as_object().unwrap_or(&none));
        self.note(written);
        self.trace = Some(writer);
        self
    }

    /// Writes every finding as a line of JSON.
    #[must_use]
    pub fn with_findings(mut self, target: RecordTarget) -> Self {
        self.findings = Some(target);
        self
    }

    /// Writes every finding as an event of OCSF.
    #[must_use]
    pub fn with_ocsf(mut self, target: RecordTarget) -> Self {
        self.ocsf = Some(target);
        self
    }

    /// Tells somebody of every finding.
    #[must_use]
    pub fn with_listener(mut self, listener: FindingListener) -> Self {
        self.on_finding = Some(listener);
        self
    }

    /// Counts what happens.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<GuardMetrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    pub(crate) fn metrics(&self) -> Option<Arc<GuardMetrics>> {
        self.metrics.clone()
    }

    /// Takes the time from elsewhere.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> jiff::Timestamp) -> Self {
        self.clock = clock;
        self
    }

    /// The same for several sessions.
    #[must_use]
    pub fn shared(self) -> SharedRecorder {
        SharedRecorder(Arc::new(Mutex::new(self)))
    }

    /// The number of the next message.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Why something could not be written, if so; told once.
    pub fn take_failure(&mut self) -> Option<std::io::Error> {
        self.failure.take()
    }

    pub(crate) fn has_trace(&self) -> bool {
        self.trace.is_some()
    }

    pub(crate) fn now(&self) -> String {
        format!("{:.3}", (self.clock)())
    }

    pub(crate) fn message(&mut self, message: &TraceMessage) {
        if let Some(trace) = &mut self.trace {
            let written = trace.write(message).and_then(|()| trace.flush());
            self.note(written);
        }
    }

    pub(crate) fn finding(&mut self, finding: &GuardFinding) {
        if let Some(metrics) = &self.metrics {
            metrics.finding(finding);
        }
        if let Some(listener) = &mut self.on_finding {
            listener(finding);
        }
        let time = (self.clock)();
        if let Some(target) = &mut self.findings {
            let mut line = json!({"time": format!("{time:.3}")});
            if let (Value::Object(line), Ok(Value::Object(rest))) =
                (&mut line, serde_json::to_value(finding))
            {
                line.extend(rest);
            }
            let written = write_line(target, &line);
            self.note(written);
        }
        if let Some(target) = &mut self.ocsf {
            let written = write_line(target, &to_ocsf(finding, time));
            self.note(written);
        }
    }

    pub(crate) fn flush(&mut self) {
        if let Some(trace) = &mut self.trace {
            let flushed = trace.flush();
            self.note(flushed);
        }
    }

    fn note(&mut self, written: std::io::Result<()>) {
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
    }
}

fn write_line(target: &mut RecordTarget, value: &Value) -> std::io::Result<()> {
    // One write per line, so that several guards can append to one file.
    target.write_all(format!("{value}\n").as_bytes())?;
    target.flush()
}
