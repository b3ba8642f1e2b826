//! Names of operations in a document, as the drivers call them: a protocol may have renamed what
//! documents speak of.

use std::sync::Arc;

use proofhouse_oatf::{Document, Surface};

use crate::driver::Driver;
use crate::drivers::driver_of;

/// Renames the events of triggers and the surfaces of indicators, where a driver knows another
/// name for them.
pub(crate) fn resolve(document: &mut Document, drivers: &[Arc<dyn Driver>]) {
    let mut speakers = Vec::new();
    for actor in document.attack.execution.actors.iter_mut().flatten() {
        let Some(driver) = driver_of(&actor.mode, drivers) else {
            continue;
        };
        speakers.push((actor.mode.protocol(), driver));
        let triggers = actor.phases.iter_mut().flat_map(|phase| &mut phase.trigger);
        for event in triggers.flat_map(|trigger| &mut trigger.event) {
            *event = driver.operation(event).to_owned();
        }
    }
    for indicator in document.attack.indicators.iter_mut().flatten() {
        let speaker = speakers
            .iter()
            .find(|(protocol, _)| Some(protocol) == indicator.protocol.as_ref());
        if let (Some((_, driver)), Some(surface)) = (speaker, &mut indicator.surface) {
            *surface = Surface::from(driver.operation(surface.as_str()));
        }
    }
}
