//! What all connections of a process may hold and do at a time.

use std::sync::Arc;

use super::fair_gate::{FairGate, GatePermit};
use crate::WireLimits;

/// The room for large messages, to be shared by all servers of a process that belong together: bytes that are held, and
/// requests that are worked on. Small messages are never counted and never wait; what all of them hold is bounded by
/// the number of connections.
#[derive(Debug)]
pub struct TrafficBudget {
    pub(super) bytes: Arc<FairGate>,
    pub(super) work: Arc<FairGate>,
}

impl TrafficBudget {
    /// The budget that these limits set.
    #[must_use]
    pub fn new(limits: &WireLimits) -> Arc<Self> {
        Arc::new(Self {
            bytes: FairGate::new(limits.max_bytes_in_flight),
            work: FairGate::new(limits.max_large_requests),
        })
    }

    /// Bytes of large messages that are held now.
    #[must_use]
    pub fn bytes_in_flight(&self) -> usize {
        self.bytes.used().0
    }

    /// The most bytes of large messages that ever were held.
    #[must_use]
    pub fn peak_bytes(&self) -> usize {
        self.bytes.used().1
    }
}

/// The room that the body of a request takes, until the last copy of this is dropped. Who keeps what was in the body
/// keeps this beside it.
#[derive(Debug, Clone, Default)]
pub struct BodyPermit {
    _room: Option<Arc<GatePermit>>,
}

impl BodyPermit {
    pub(super) fn new(room: Option<GatePermit>) -> Self {
        Self {
            _room: room.map(Arc::new),
        }
    }
}
