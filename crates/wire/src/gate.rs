//! Requests that count together with those of others: whoever sends one asks before, and tells of the pauses that the other side
//! asks for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use crate::sync::{read, write};

/// What a gate does, which takes time.
pub type GateFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Stands before the requests to one provider, for all who send some.
pub trait RequestGate: fmt::Debug + Send + Sync {
    /// Waits until a request may be sent, and counts it.
    fn enter(&self) -> GateFuture<'_>;

    /// The other side asks for a pause: everybody waits from now on for this long.
    fn pause(&self, wait: Duration) -> GateFuture<'_>;

    /// A reply came, with so many tokens of the question and of the reply.
    fn used(&self, input: u64, output: u64) -> GateFuture<'_>;
}

/// A gate that is put in place after those who go through it were made. Until then, everybody passes.
#[derive(Debug, Clone, Default)]
pub struct LateGate(Arc<RwLock<Option<Arc<dyn RequestGate>>>>);

impl LateGate {
    /// Puts the gate in place.
    pub fn set(&self, gate: Arc<dyn RequestGate>) {
        *write(&self.0) = Some(gate);
    }

    fn gate(&self) -> Option<Arc<dyn RequestGate>> {
        read(&self.0).clone()
    }
}

impl RequestGate for LateGate {
    fn enter(&self) -> GateFuture<'_> {
        Box::pin(async {
            if let Some(gate) = self.gate() {
                gate.enter().await;
            }
        })
    }

    fn pause(&self, wait: Duration) -> GateFuture<'_> {
        Box::pin(async move {
            if let Some(gate) = self.gate() {
                gate.pause(wait).await;
            }
        })
    }

    fn used(&self, input: u64, output: u64) -> GateFuture<'_> {
        Box::pin(async move {
            if let Some(gate) = self.gate() {
                gate.used(input, output).await;
            }
        })
    }
}
