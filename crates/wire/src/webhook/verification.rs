//! What a check of a signature says.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a check of a delivery's signature says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "signature", rename_all = "snake_case")]
pub enum Verification {
    /// It is genuine.
    Verified {
        /// The scheme of the signature.
        scheme: String,
    },
    /// No secret is configured, so nothing could be checked. Worth a warning; refused in strict mode.
    Unsigned,
    /// It is not genuine, or cannot be shown to be.
    Refused {
        /// Why.
        reason: Refusal,
    },
}

/// Why a signature is refused. It never says which secret or which signature was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The secret of the event is a setting that is not configured, or that cannot be a secret.
    Unconfigured,
    /// A header of the scheme is not there.
    Missing,
    /// A header is there and cannot be read.
    Malformed,
    /// The signature is not ours.
    Mismatch,
    /// The signature is right, and its time is too far from ours: a replay, or a clock that is off.
    Stale,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unconfigured => "the secret of the event is not configured",
            Self::Missing => "a header of the signature is missing",
            Self::Malformed => "a header of the signature cannot be read",
            Self::Mismatch => "the signature does not fit the body and any secret",
            Self::Stale => "the signed time is too far from ours",
        })
    }
}

impl Verification {
    /// Whether the delivery may go on. In strict mode, unsigned ones may not.
    #[must_use]
    pub fn is_accepted(&self, strict: bool) -> bool {
        match self {
            Self::Verified { .. } => true,
            Self::Unsigned => !strict,
            Self::Refused { .. } => false,
        }
    }

    /// How good it is; of two, the better one speaks for the delivery.
    #[must_use]
    pub fn rank(&self) -> u8 {
        match self {
            Self::Verified { .. } => 7,
            Self::Unsigned => 6,
            Self::Refused { reason } => *reason as u8,
        }
    }
}
