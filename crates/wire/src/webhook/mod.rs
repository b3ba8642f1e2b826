//! Webhooks as platforms send them: signatures, identities, handshakes and payloads. Whose keys count, others say.

mod delivery;
mod handshake;
mod payload;
mod scheme;
mod verification;

use http::HeaderMap;
use http::header::AsHeaderName;
use jiff::Timestamp;

pub use delivery::{
    Channel, DedupeBy, DedupeChoice, DeliveryIdentity, ID_WINDOW, REPLAY_WINDOW, channels,
    identify, shown_headers,
};
pub use handshake::{Handshake, greet, greet_signed};
pub use payload::{PayloadError, PayloadLimits, read_payload};
pub use scheme::{
    Encoding, Hash, SCHEMES, Scheme, SchemeError, SignatureKind, TOLERANCE, TimestampFormat,
};
pub use verification::{Refusal, Verification};

/// One request that a platform sent, as it came.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// What stands behind the `?` of the address.
    pub query: Option<&'a str>,
    /// The raw bytes of the body; signatures are over these.
    pub body: &'a [u8],
    /// When it came.
    pub received_at: Timestamp,
}

impl<'a> Delivery<'a> {
    /// The one value of a header, if it is there once and is text.
    pub fn header(&self, name: impl AsHeaderName) -> Option<&'a str> {
        let mut values = self.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    }
}
