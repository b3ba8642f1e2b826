//! What both A2A drivers share: methods, values and cards of 0.3 and 1.0, each seen as the other.
//!
//! Documents, triggers and indicators speak 0.3. The wire speaks what the peer speaks. Everything
//! here is pure but [`push`], keeps what it does not know, and gives back what is in the wanted form
//! already, so that a mixture of both is no problem.

pub(super) mod card;
pub(super) mod complete;
pub(super) mod content;
pub(super) mod methods;
pub(super) mod params;
pub(super) mod problems;
pub(super) mod push;
pub(super) mod results;
pub(super) mod url;
pub(super) mod values;

#[cfg(test)]
mod properties;

use proofhouse_oatf::Extensions;
use serde_json::Value;

/// The header that tells the version; absent means 0.3.
pub(super) const VERSION_HEADER: &str = "a2a-version";
/// The header that tells which extensions are asked for.
pub(super) const EXTENSIONS_HEADER: &str = "a2a-extensions";

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
