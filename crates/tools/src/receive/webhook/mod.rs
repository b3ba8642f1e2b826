//! Webhooks: whether a delivery is genuine by the keys of a tool, which one it is, what it holds, and what to answer.

mod keys;

pub use keys::{Verdict, WebhookKeys};
pub use proofhouse_wire::webhook::{
    Channel, DedupeBy, DedupeChoice, Delivery, DeliveryIdentity, Encoding, Handshake, Hash,
    ID_WINDOW, PayloadError, PayloadLimits, REPLAY_WINDOW, Refusal, SCHEMES, Scheme, SchemeError,
    SignatureKind, TOLERANCE, TimestampFormat, Verification, channels, greet, greet_signed,
    identify, read_payload, shown_headers,
};
