//! What both A2A drivers share: how cards are served, what is filled in, where notifications go. Methods, values and the
//! translation between 0.3 and 1.0 are those of `proofhouse_protocol::a2a`.
//!
//! Documents, triggers and indicators speak 0.3. The wire speaks what the peer speaks.

pub(super) mod complete;
pub(super) mod hybrid;
pub(super) mod push;
pub(super) mod url;

#[cfg(test)]
mod properties;

use proofhouse_oatf::Extensions;
use serde_json::Value;

/// Keys that keep something as the document has it, whatever the peer speaks.
const VERBATIM_KEYS: [&str; 2] = ["verbatim", "x-verbatim"];

/// Whether a state, an action or a payload asks to be sent as it is written.
pub(super) fn is_verbatim(value: &Value) -> bool {
    VERBATIM_KEYS
        .iter()
        .any(|key| value.get(key) == Some(&Value::Bool(true)))
}

/// Whether the further fields of an entry ask for it.
pub(super) fn asks_verbatim(fields: &Extensions) -> bool {
    VERBATIM_KEYS
        .iter()
        .any(|key| fields.get(*key) == Some(&Value::Bool(true)))
}
