//! What a message carries to the subject, counted when it is handed over and taken back when it was never read.

use std::sync::{Arc, Mutex};

use proofhouse_wire::server::UnreadHook;
use proofhouse_wire::sync::lock;
use serde_json::Value;

use crate::actor::ActorContext;
use crate::exposure::{CarrierKind, CountedDelivery};
use crate::phases::PhaseView;

/// One thing that a message carries.
#[derive(Debug, Clone)]
pub(crate) struct NotedCarrier {
    pub(crate) phase: Arc<PhaseView>,
    pub(crate) kind: CarrierKind,
    pub(crate) name: String,
    /// The branch that is shown; without one, all that the state may show through the carrier.
    pub(crate) branch: Option<Value>,
}

/// What a message carries. A message that goes to several readers, or to one again, counts once, for as long as one of
/// them may have read it.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeliveryNote(Option<Arc<NoteState>>);

#[derive(Debug)]
struct NoteState {
    context: ActorContext,
    carriers: Vec<NotedCarrier>,
    /// The number of the message in the trace, where it has one of its own.
    message: Option<u64>,
    held: Mutex<HeldDeliveries>,
}

#[derive(Debug, Default)]
struct HeldDeliveries {
    /// How many copies are on their way or were read.
    copies: usize,
    counted: Vec<CountedDelivery>,
}

impl DeliveryNote {
    pub(crate) fn new(context: &ActorContext, carriers: Vec<NotedCarrier>) -> Self {
        if carriers.is_empty() {
            return Self::default();
        }
        Self(Some(Arc::new(NoteState {
            context: context.clone(),
            carriers,
            message: None,
            held: Mutex::default(),
        })))
    }

    /// The same for a message that has this number in the trace: by the time it is handed over, others may have been
    /// recorded.
    pub(crate) fn numbered(mut self, message: u64) -> Self {
        // Nobody else has a note that was made just now.
        if let Some(state) = self.0.as_mut().and_then(Arc::get_mut) {
            state.message = Some(message);
        }
        self
    }

    /// A note of one thing.
    pub(crate) fn of_branch(
        context: &ActorContext,
        phase: &Arc<PhaseView>,
        kind: CarrierKind,
        name: &str,
        branch: Value,
    ) -> Self {
        let carrier = NotedCarrier {
            phase: Arc::clone(phase),
            kind,
            name: name.to_owned(),
            branch: Some(branch),
        };
        Self::new(context, vec![carrier])
    }

    /// Everything that several messages carry, for one that has them all.
    pub(crate) fn joined(context: &ActorContext, notes: &[Self]) -> Self {
        let states = notes.iter().filter_map(|note| note.0.as_ref());
        let carriers = states.flat_map(|state| state.carriers.iter().cloned());
        Self::new(context, carriers.collect())
    }

    /// A copy of the message is handed over now: it counts, until the hook says that it was not read.
    pub(crate) fn handed_over(&self) -> UnreadHook {
        let Some(state) = &self.0 else {
            return UnreadHook::default();
        };
        state.count();
        let state = Arc::clone(state);
        UnreadHook::new(move || state.lost())
    }
}

impl NoteState {
    fn count(&self) {
        let mut held = lock(&self.held);
        if held.copies == 0 {
            held.counted = self
                .carriers
                .iter()
                .map(|carrier| self.count_one(carrier))
                .collect();
        }
        held.copies += 1;
    }

    fn count_one(&self, carrier: &NotedCarrier) -> CountedDelivery {
        let NotedCarrier {
            phase,
            kind,
            name,
            branch,
        } = carrier;
        let (context, message) = (&self.context, self.message);
        match branch {
            Some(branch) => context.counted_branch(phase, *kind, name, branch, message),
            None => context.counted_in(phase, *kind, name, message),
        }
    }

    fn lost(&self) {
        let mut held = lock(&self.held);
        held.copies = held.copies.saturating_sub(1);
        if held.copies == 0 {
            self.context.never_read(&std::mem::take(&mut held.counted));
        }
    }
}
