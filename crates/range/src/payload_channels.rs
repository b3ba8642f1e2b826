//! The channels of a payload: in which kinds of carriers an attack has something that its control has not.

use std::collections::BTreeSet;

use proofhouse_oatf::{Document, Mode};

use crate::exposure::CarrierKind;
use crate::twin_baseline::{TwinBaseline, carriers, states};

/// In which kinds of carriers, of which modes, the payload of a normalized document stands: where it shows something
/// that its control does not. Without a control, everything that it shows counts.
#[must_use]
pub fn payload_channels(
    attack: &Document,
    control: Option<&Document>,
) -> BTreeSet<(Mode, CarrierKind)> {
    let baseline = control.and_then(|control| TwinBaseline::of(attack, control));
    let states = states(attack);
    let mut channels = BTreeSet::new();
    for actor in attack.attack.execution.actors() {
        for state in states.get(&actor.name).into_iter().flatten() {
            for (kind, name) in carriers(state) {
                let is_shown = baseline
                    .as_ref()
                    .is_some_and(|baseline| baseline.shows(&actor.name, state, kind, &name));
                if !is_shown {
                    channels.insert((actor.mode.clone(), kind));
                }
            }
        }
    }
    channels
}
