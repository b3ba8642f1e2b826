//! The range: runs one attack over real connections and tells what was seen.
//!
//! [`run`] takes a normalized document and the endpoints of its actors. Every server actor listens
//! before any client actor starts. Each actor has its phases, its [`Driver`] speaks the protocol, and
//! every message of both directions becomes an entry of the trace. At the end there are verdicts with evidence, and the exposure: what of the attack
//! reached the subject at all.
//!
//! The subject is hostile too: whatever it sends is recorded, answered as the protocol says, and
//! bounded.

mod actor;
mod actor_facts;
mod aliases;
mod authorization;
mod branches;
mod delivery;
mod delivery_note;
mod driver;
mod drivers;
mod exposure;
mod extractors;
mod facts;
mod payload_channels;
mod payload_clues;
mod payload_field;
mod phase_gate;
mod phases;
mod poll_pace;
mod presence;
mod recorder;
mod run;
mod twin_baseline;
mod weight;

pub use actor::{ActorContext, ActorTurn, Advance};
pub use authorization::ClientAuthorization;
pub use delivery::{DeliveryError, DeliveryModifiers};
pub use driver::{
    ActorEndpoint, ActorError, ActorErrorKind, BoxFuture, Driver, EndpointFlag, EndpointForm,
    PreparedActor,
};
pub use drivers::{BuiltInMode, OfferedCard, mcp_over, offered_cards, offered_tools};
pub use exposure::{Carrier, CarrierKind, Exposure};
pub use facts::{ActorSpeech, SeenCall, SpokenProtocol, UnseenKind, UnseenMessage};
pub use payload_channels::{has_payload, payload_channels, payload_depths};
pub use payload_field::PayloadField;
pub use phases::{PhaseEntry, PhaseView};
pub use poll_pace::PollPace;
pub use presence::OpenPresence;
pub use proofhouse_detect::UNPARSED;
pub use recorder::{RunEvent, RunObserver, TraceLimits};
pub use run::{
    ConnectError, ConnectSubject, Ending, ListeningServer, RunError, RunHandle, RunOptions,
    RunReport, run, scanner,
};
