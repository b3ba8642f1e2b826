//! What the soak has counted: requests, and how often each cap was met.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use proofhouse_wire::sync::lock;

/// Every cap that must be met at least once.
pub(crate) const CAPS: [&str; 23] = [
    "a2a_tasks",
    "background_calls",
    "batch",
    "body_size",
    "body_time",
    "bytes_in_flight",
    "connections",
    "depth",
    "expected_size",
    "header_size",
    "header_time",
    "headers",
    "hosts",
    "kept_events",
    "kept_messages",
    "kept_warnings",
    "listeners",
    "questions",
    "reader_time",
    "rounds",
    "running_ids",
    "sessions",
    "subscriptions",
];

/// The words of a warning that tell that a cap was met.
const WARNINGS: [(&str, &str); 5] = [
    ("there is no room for the body", "bytes_in_flight"),
    ("too many sessions", "sessions"),
    ("too many clients listen", "listeners"),
    ("too many requests unanswered", "questions"),
    ("of a call that still runs", "running_ids"),
];

#[derive(Debug, Default)]
pub(crate) struct Tally {
    requests: AtomicU64,
    caps: Mutex<BTreeMap<&'static str, u64>>,
    panics: Mutex<Vec<String>>,
    warnings: AtomicU64,
}

impl Tally {
    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn met(&self, cap: &'static str) {
        let mut caps = lock(&self.caps);
        *caps.entry(cap).or_default() += 1;
    }

    pub(crate) fn has_met(&self, cap: &str) -> bool {
        let caps = lock(&self.caps);
        caps.contains_key(cap)
    }

    /// A line of the server's error output.
    pub(crate) fn heard(&self, line: &str) {
        if line.starts_with("warning: ") {
            self.warnings.fetch_add(1, Ordering::Relaxed);
        } else {
            let mut panics = lock(&self.panics);
            if panics.len() < 20 {
                panics.push(line.to_owned());
            }
        }
        for (words, cap) in WARNINGS {
            if line.contains(words) {
                self.met(cap);
            }
        }
    }

    /// How often the server warned.
    pub(crate) fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Relaxed)
    }

    /// What the server wrote that is no warning of its own: it should be nothing.
    pub(crate) fn panics(&self) -> Vec<String> {
        let panics = lock(&self.panics);
        panics.clone()
    }

    /// The caps and how often they were met, as one word.
    pub(crate) fn caps(&self) -> String {
        let caps = lock(&self.caps);
        let told: Vec<String> = caps
            .iter()
            .map(|(cap, times)| format!("{cap}:{times}"))
            .collect();
        told.join(",")
    }
}
