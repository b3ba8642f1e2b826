//! What a session holds in memory, counted: it must stay flat, however many calls there are.

use super::GuardSession;
use crate::taint::TaintFootprint;

/// What a session holds. Everything else in it has a fixed size, or that of the server's definitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionFootprint {
    /// Values that are followed.
    pub taint: TaintFootprint,
    /// Requests that wait for an answer, of both sides.
    pub open: usize,
    /// Calls that somebody is asked about.
    pub asks: usize,
    /// Tasks that were begun.
    pub tasks: usize,
    /// Names of tools that were called.
    pub tools: usize,
    /// Bytes of values that arguments had.
    pub used_values: usize,
}

impl GuardSession {
    /// What it holds now.
    #[must_use]
    pub fn footprint(&self) -> SessionFootprint {
        SessionFootprint {
            taint: self.taint.footprint(),
            open: self.open.len() + self.asked_by_server.len(),
            asks: self.asks.len(),
            tasks: self.tasks.len(),
            tools: self.history.tools(),
            used_values: self.used_values.as_ref().map_or(0, |used| used.bytes()),
        }
    }
}
