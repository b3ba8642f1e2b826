//! The Agent2Agent protocol: 0.3 and 1.0, and each seen as the other.
//!
//! The translations keep what they do not know, and give back what is in the wanted form already, so that a mixture
//! of both generations is no problem. Traces and threat documents speak 0.3.

pub mod card;
mod error;
mod method;
mod params;
mod results;
mod role;
mod shape;
mod task_state;
pub mod values;
mod version;

#[cfg(test)]
mod properties;

pub use error::A2aError;
pub use method::A2aMethod;
pub use params::translate_params;
pub use results::translate_result;
pub use role::A2aRole;
pub use shape::{A2aShape, translate_item};
pub use task_state::A2aTaskState;
pub use version::A2aVersion;

/// The header that tells the version; absent means 0.3.
pub const VERSION_HEADER: &str = "a2a-version";
/// The header that tells which extensions are asked for.
pub const EXTENSIONS_HEADER: &str = "a2a-extensions";
/// The header of a push notification with the token that its receiver gave.
pub const NOTIFICATION_TOKEN_HEADER: &str = "x-a2a-notification-token";

/// The event of fetching the card, which is no method.
pub const CARD_EVENT: &str = "agent_card/get";
/// The event of a status update on a stream.
pub const STATUS_EVENT: &str = "task/status";
/// The event of an artifact update on a stream.
pub const ARTIFACT_EVENT: &str = "task/artifact";
