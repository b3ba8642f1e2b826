//! What a client does next: it enters phases as they begin, and ends when none can follow.

use proofhouse_oatf::ActionKind;
use tokio::sync::mpsc;

use crate::actor::ActorContext;
use crate::phases::{PhaseEntry, PhaseView};
use std::sync::Arc;

/// The phases of a client, as they are entered.
pub(crate) struct ClientScript {
    context: ActorContext,
    entries: mpsc::UnboundedReceiver<PhaseEntry>,
    /// The phase that was entered last.
    last: Option<Arc<PhaseView>>,
}

/// A phase that begins: its entry actions, templates resolved.
pub(crate) struct Scene {
    pub(crate) phase: Arc<PhaseView>,
    pub(crate) actions: Vec<ActionKind>,
}

impl ClientScript {
    pub(crate) fn new(context: &ActorContext) -> Self {
        Self {
            context: context.clone(),
            entries: context.entries(),
            last: None,
        }
    }

    /// The next phase, if it has begun already.
    pub(crate) fn ready(&mut self) -> Option<Scene> {
        let entry = self.entries.try_recv().ok()?;
        Some(self.enter(&entry))
    }

    /// Waits for the next phase. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<Scene> {
        let entry = self.entries.recv().await?;
        Some(self.enter(&entry))
    }

    /// Whether the last phase was entered: what it asks for is the last that is done.
    pub(crate) fn is_at_end(&self) -> bool {
        self.last.as_ref().is_some_and(|phase| phase.is_terminal())
    }

    /// Whether the next phase begins even if nothing happens.
    pub(crate) fn ends_with_time(&self) -> bool {
        let last = self.last.as_ref();
        last.is_none_or(|phase| phase.ends_with_time())
    }

    /// Tells that the phase waits for something that cannot come any more.
    pub(crate) fn warn_stuck(&self) {
        if let Some(phase) = &self.last {
            let warning = format!(
                "the phase `{}` is the last: what its trigger waits for did not happen",
                phase.name
            );
            self.context.warn(&warning);
        }
    }

    fn enter(&mut self, entry: &PhaseEntry) -> Scene {
        self.last = Some(Arc::clone(&entry.phase));
        Scene {
            phase: Arc::clone(&entry.phase),
            actions: self.context.enter(entry),
        }
    }
}
