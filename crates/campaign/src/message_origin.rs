//! Who said a message of a recording: the subject, or an actor of the document.

use proofhouse_detect::TraceMessage;
use proofhouse_oatf::{Direction, Mode};

use crate::result::DocumentInfo;

/// Whether the subject said it; `None` when the message does not tell which way it went. A client asks the
/// subject; of a server, the subject asks.
#[must_use]
pub fn is_by_subject(document: &DocumentInfo, message: &TraceMessage) -> Option<bool> {
    let direction = message.direction?;
    Some(is_clients(document, message) == (direction == Direction::Response))
}

/// Whether the actor of a message is a client. Results that do not tell their actors still have the modes, of
/// which one has the protocol of the message.
fn is_clients(document: &DocumentInfo, message: &TraceMessage) -> bool {
    let mut actors = document.actors.iter();
    let actor = actors.find(|actor| Some(actor.name.as_str()) == message.actor.as_deref());
    let mode = actor.map(|actor| &actor.mode).or_else(|| {
        let mut modes = document.modes.iter();
        modes.find(|mode| mode.protocol() == message.protocol)
    });
    mode.is_some_and(Mode::is_client)
}
