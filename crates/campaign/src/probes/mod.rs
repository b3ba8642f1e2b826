//! Channel probes: proof that the model of a subject reads the field in which an attack puts its payload.
//!
//! A payload that nobody reads is resisted by nobody. So before its runs in a campaign, every subject is asked for a
//! harmless code that stands where the payloads of the planned documents stand: in the description of a tool, in a
//! result, in the context of a frontend. Who can say it reads the channel. The code has two halves, and the subject is
//! asked to join them: whatever only repeats or logs what it was sent never says the joined code.
//!
//! The documents of the probes are in `templates/`. What became of the probes stands in the result, and
//! [`ProvenChannels`] answers from it.

mod channels;
mod nonce;
mod play;
mod summary;
mod templates;
mod watch;

use proofhouse_oatf::Mode;
use proofhouse_range::{CarrierKind, PayloadField};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use channels::ProvenChannels;
pub(crate) use play::{ChannelProbe, PlannedProbes, ProbeSetup};
pub use play::{NeededChannel, needed};
pub use summary::{ChannelLine, channel_lines};
pub(crate) use watch::NonceWatch;

/// The directory of the traces of probes in that of a campaign.
pub(crate) const DIRECTORY: &str = "probes";

/// What became of the probe of one channel of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRecord {
    /// The name of the subject.
    pub subject: String,
    /// The mode of the actor that carries something to it, such as `mcp_server`.
    #[schemars(with = "String")]
    pub mode: Mode,
    /// What carries it, such as `tool_listed`.
    #[schemars(with = "String")]
    pub kind: CarrierKind,
    /// In which field of it, such as `input_schema`; `text` is the one that it is for.
    #[serde(default, skip_serializing_if = "PayloadField::is_text")]
    #[schemars(with = "String")]
    pub field: PayloadField,
    /// Behind how many characters of other text the code stood: at least as many as it takes to read the deepest payload.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: usize,
    /// Whether the subject's model reads it.
    #[serde(flatten)]
    pub state: ChannelState,
    /// How often it was asked.
    pub attempts: u32,
    /// How long that took.
    pub milliseconds: u64,
    /// Tokens of the subject's model, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The recordings, relative to the result's directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<String>,
}

/// Whether the model of a subject reads a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ChannelState {
    /// It does: it said the code.
    Read {
        /// Where, and in which form.
        form: String,
    },
    /// It was sent the code, and answered without it.
    NotRead {
        /// What it did instead.
        why: String,
    },
    /// It was asked, and nobody knows all the same.
    NotProved {
        /// What happened instead.
        why: String,
    },
    /// Nobody knows.
    NotTried {
        /// Why it was not asked.
        why: String,
    },
}

/// What people call a channel, of actors of this mode.
#[must_use]
pub fn channel_name(mode: Option<&Mode>, kind: CarrierKind, field: PayloadField) -> String {
    let of = |field| mode.and_then(|mode| templates::channel_name(mode, kind, field));
    match of(field) {
        Some(known) => known.to_owned(),
        None => {
            let carrier = of(PayloadField::Text).map(str::to_owned);
            let carrier = carrier.unwrap_or_else(|| word(&kind).replace('_', " "));
            if field.is_text() {
                carrier
            } else {
                format!("{carrier} ({})", word(&field).replace('_', " "))
            }
        }
    }
}

fn is_zero(depth: &usize) -> bool {
    *depth == 0
}

/// The name of a kind or a field in files.
fn word(value: &impl Serialize) -> String {
    let name = serde_json::to_value(value).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}
