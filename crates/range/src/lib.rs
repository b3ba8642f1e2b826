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
mod aliases;
mod delivery;
mod driver;
mod drivers;
mod exposure;
mod extractors;
mod innocence;
mod phases;
mod recorder;
mod run;

pub use actor::{ActorContext, Advance, Turn};
pub use delivery::{Delivery, DeliveryError};
pub use driver::{ActorError, ActorErrorKind, BoxFuture, Driver, Endpoint, Prepared};
pub use drivers::{DRIVERS, mcp_over};
pub use exposure::{Carrier, CarrierKind, Exposure};
pub use phases::{Entry, PhaseView};
pub use recorder::{Observer, RunEvent, TraceLimits};
pub use run::{
    ConnectSubject, Ending, Listening, RunError, RunHandle, RunOptions, RunReport, run, scanner,
};
