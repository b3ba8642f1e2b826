//! What was called in a session, for rules.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

/// How many of the last calls are known by name.
const RECENT: usize = 20;

/// How many names are counted.
const MAX_NAMES: usize = 1000;

/// How long a name may be that is counted; no tool is called by a longer one.
const MAX_NAME: usize = 1024;

/// The calls that passed.
#[derive(Debug, Default)]
pub(super) struct GuardHistory {
    calls: u64,
    blocked: u64,
    counts: BTreeMap<String, u64>,
    recent: VecDeque<String>,
}

impl GuardHistory {
    pub(super) fn passed(&mut self, tool: &str) {
        self.calls += 1;
        if tool.len() > MAX_NAME {
            return;
        }
        if self.counts.len() < MAX_NAMES || self.counts.contains_key(tool) {
            *self.counts.entry(tool.to_owned()).or_default() += 1;
        }
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(tool.to_owned());
    }

    pub(super) fn refused(&mut self) {
        self.blocked += 1;
    }

    /// How many names are known.
    pub(super) fn tools(&self) -> usize {
        self.counts.len()
    }

    /// As expressions see it.
    pub(super) fn value(&self, untrusted: bool, secret: bool) -> Value {
        json!({
            "calls": self.calls,
            "blocked": self.blocked,
            "tools": self.counts,
            "recent": self.recent,
            "untrusted": untrusted,
            "secret": secret,
        })
    }
}
