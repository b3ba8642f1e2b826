//! Sessions: each adds up numbers, and ends when it is told to or was not used for long enough.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{MAX_KEPT, fresh_name};

/// All sessions that have not ended.
#[derive(Debug)]
pub(super) struct DemoSessions {
    lifetime: Duration,
    open: BTreeMap<String, DemoSession>,
}

#[derive(Debug)]
struct DemoSession {
    total: f64,
    used: Instant,
}

impl DemoSessions {
    pub(super) fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            open: BTreeMap::new(),
        }
    }

    pub(super) fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Opens a session; nothing if there are too many.
    pub(super) fn open(&mut self) -> Option<String> {
        self.end_expired();
        if self.open.len() >= MAX_KEPT {
            return None;
        }
        let id = fresh_name();
        let session = DemoSession {
            total: 0.0,
            used: Instant::now(),
        };
        self.open.insert(id.clone(), session);
        Some(id)
    }

    /// Adds to the total of a session, which is used by that.
    pub(super) fn add(&mut self, id: &str, number: f64) -> Option<f64> {
        self.end_expired();
        let session = self.open.get_mut(id)?;
        session.total += number;
        session.used = Instant::now();
        Some(session.total)
    }

    pub(super) fn close(&mut self, id: &str) -> bool {
        self.end_expired();
        self.open.remove(id).is_some()
    }

    pub(super) fn count(&mut self) -> usize {
        self.end_expired();
        self.open.len()
    }

    fn end_expired(&mut self) {
        let lifetime = self.lifetime;
        self.open
            .retain(|_, session| session.used.elapsed() < lifetime);
    }
}
