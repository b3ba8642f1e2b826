//! The channels of a payload: in which kinds of carriers an attack has something that its control has not.

use std::collections::BTreeSet;

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
    let baseline = control.and_then(|control| TwinBaseline::of(attack, control));
    let mut channels = BTreeSet::new();
    for actor in attack.attack.execution.actors() {
        let shown = ShownByActor::of(&actor.phases);
        for (kind, name) in shown.states.iter().flat_map(carriers) {
            for branch in shown.branches(kind, &name) {
                if !is_of_kind(&actor.mode, kind, &branch) {
                    continue;
                }
                let fields = match &baseline {
                    Some(baseline) => {
                        baseline.payload(&actor.name, kind, &name, &branch, Value::clone)
                    }
                    None => BTreeSet::from([PayloadField::Text]),
                };
                channels.extend(
                    fields
                        .into_iter()
                        .map(|field| (actor.mode.clone(), kind, field)),
                );
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
