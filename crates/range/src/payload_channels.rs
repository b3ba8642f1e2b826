//! The channels of a payload: in which kinds of carriers an attack has something that its control has not.

use std::collections::{BTreeMap, BTreeSet};

use proofhouse_oatf::{Document, Mode};
use serde_json::Value;

use crate::drivers::mcp_carrier;
use crate::exposure::CarrierKind;
use crate::payload_field::PayloadField;
use crate::twin_baseline::{ShownByActor, TwinBaseline, carriers};

/// In which fields of which kinds of carriers, of which modes, the payload of a normalized document stands: where it
/// shows something that its control does not. Without a control, everything that it shows counts.
#[must_use]
pub fn payload_channels(
    attack: &Document,
    control: Option<&Document>,
) -> BTreeSet<(Mode, CarrierKind, PayloadField)> {
    payload_depths(attack, control).into_keys().collect()
}

/// The same, with how many characters of the field one has to read before all of the payload is read. Without a control, that
/// is unknown, and none.
#[must_use]
pub fn payload_depths(
    attack: &Document,
    control: Option<&Document>,
) -> BTreeMap<(Mode, CarrierKind, PayloadField), usize> {
    let baseline = control.and_then(|control| TwinBaseline::of(attack, control));
    let mut channels = BTreeMap::new();
    for actor in attack.attack.execution.actors() {
        let shown = ShownByActor::of(&actor.phases);
        for (kind, name) in shown.states.iter().flat_map(carriers) {
            for branch in shown.branches(kind, &name) {
                if !is_of_kind(&actor.mode, kind, &branch) {
                    continue;
                }
                let fields = match &baseline {
                    Some(baseline) => baseline.depths(&actor.name, kind, &name, &branch),
                    None => BTreeMap::from([(PayloadField::Text, 0)]),
                };
                for (field, depth) in fields {
                    let channel = (actor.mode.clone(), kind, field);
                    let deepest: &mut usize = channels.entry(channel).or_default();
                    *deepest = depth.max(*deepest);
                }
            }
        }
    }
    channels
}

/// Whether an attack shows anything that its control does not.
#[must_use]
pub fn has_payload(attack: &Document, control: &Document) -> bool {
    TwinBaseline::of(attack, control).is_some()
}

/// What a server says of its own accord has the kind of its method.
fn is_of_kind(mode: &Mode, kind: CarrierKind, branch: &Value) -> bool {
    let method = branch.get("method").and_then(Value::as_str);
    match method {
        Some(method) if *mode == Mode::McpServer && kind.may_be_sent() => {
            mcp_carrier(method) == kind
        }
        _ => true,
    }
}
