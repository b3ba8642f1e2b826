//! Delivery modifiers: how messages are sent while a phase holds, when a document asks for it.
//!
//! `x-delivery` on an actor or a phase (the phase's wins whole). Each is bounded here, whatever the
//! document says, and off unless asked for.

use std::time::Duration;

use proofhouse_oatf::{Durations, Extensions};
use serde_json::Value;

const KEY: &str = "x-delivery";

const MAX_DELAY: Duration = Duration::from_secs(60);
const MAX_PADDING: u64 = 64 << 20;
const MAX_DEPTH: u64 = 100_000;
const MAX_FLOOD: u64 = 10_000;

/// How messages are delivered. The default is: at once, whole, and once.
///
/// ```
/// use proofhouse_range::DeliveryModifiers;
/// use serde_json::json;
///
/// let delivery = DeliveryModifiers::from_value(&json!({"delay": "2s", "duplicate_ids": true})).unwrap();
/// assert!(delivery.duplicate_ids && delivery.delay.is_some());
/// assert!(DeliveryModifiers::from_value(&json!({"dealy": "2s"})).is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryModifiers {
    /// `delay`: how long to wait before every reply.
    pub delay: Option<Duration>,
    /// `slow_stream`: how long to wait between pieces of a reply, which is then sent in pieces of
    /// 16 bytes (at most 1,000 pieces; the rest goes at once).
    pub slow_stream: Option<Duration>,
    /// `oversized`: so many bytes of padding go into every reply.
    pub oversized: Option<usize>,
    /// `deep_nesting`: every reply holds a list nested so deep.
    pub deep_nesting: Option<usize>,
    /// `duplicate_ids`: every reply is sent twice.
    pub duplicate_ids: bool,
    /// `notification_flood`: so many notifications go before every reply.
    pub notification_flood: Option<usize>,
    /// `abrupt_close`: the connection is cut in the middle of every reply.
    pub abrupt_close: bool,
}

/// What is wrong with an `x-delivery`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("x-delivery: {0}")]
pub struct DeliveryError(String);

impl DeliveryModifiers {
    pub(crate) fn of(actor: &Extensions, phase: &Extensions) -> Result<Self, DeliveryError> {
        match phase.get(KEY).or_else(|| actor.get(KEY)) {
            Some(value) => Self::from_value(value),
            None => Ok(Self::default()),
        }
    }

    /// Reads the modifiers.
    ///
    /// # Errors
    ///
    /// Returns an error for a key that is not known or a value out of its bounds.
    pub fn from_value(value: &Value) -> Result<Self, DeliveryError> {
        let Value::Object(map) = value else {
            return Err(DeliveryError("it is not a mapping".to_owned()));
        };
        let mut delivery = Self::default();
        for (key, value) in map {
            match key.as_str() {
                "delay" => delivery.delay = Some(duration(key, value)?),
                "slow_stream" => delivery.slow_stream = Some(duration(key, value)?),
                "oversized" => delivery.oversized = Some(count(key, value, MAX_PADDING)?),
                "deep_nesting" => delivery.deep_nesting = Some(count(key, value, MAX_DEPTH)?),
                "duplicate_ids" => delivery.duplicate_ids = flag(key, value)?,
                "notification_flood" => {
                    delivery.notification_flood = Some(count(key, value, MAX_FLOOD)?);
                }
                "abrupt_close" => delivery.abrupt_close = flag(key, value)?,
                _ => return Err(DeliveryError(format!("there is no `{key}`"))),
            }
        }
        Ok(delivery)
    }

    /// Whether anything was asked for.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The text of a reply with padding and nesting worked in: as further members of the object
    /// named `result`, or of the whole.
    #[must_use]
    pub fn shape(&self, text: String) -> String {
        let mut extra = String::new();
        if let Some(bytes) = self.oversized {
            extra.push_str(&format!("\"x-padding\":\"{}\",", "x".repeat(bytes)));
        }
        if let Some(depth) = self.deep_nesting {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            extra.push_str(&format!("\"x-nesting\":{open}{close},"));
        }
        if extra.is_empty() {
            return text;
        }
        let at = text
            .find("\"result\":{")
            .map(|found| found + "\"result\":{".len())
            .or_else(|| text.find('{').map(|found| found + 1));
        let Some(at) = at else { return text };
        if text[at..].trim_start().starts_with('}') {
            extra.pop();
        }
        format!("{}{extra}{}", &text[..at], &text[at..])
    }
}

fn duration(key: &str, value: &Value) -> Result<Duration, DeliveryError> {
    value
        .as_str()
        .and_then(|text| Durations::MILLISECONDS.parse(text).ok())
        .filter(|duration| *duration <= MAX_DELAY)
        .ok_or_else(|| {
            DeliveryError(format!(
                "`{key}` is a duration of at most 60s, such as 2s or 250ms"
            ))
        })
}

fn count(key: &str, value: &Value, max: u64) -> Result<usize, DeliveryError> {
    value
        .as_u64()
        .filter(|number| (1..=max).contains(number))
        .and_then(|number| usize::try_from(number).ok())
        .ok_or_else(|| DeliveryError(format!("`{key}` is a number from 1 to {max}")))
}

fn flag(key: &str, value: &Value) -> Result<bool, DeliveryError> {
    value
        .as_bool()
        .ok_or_else(|| DeliveryError(format!("`{key}` is true or false")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bounds_hold_whatever_a_document_asks() {
        for wrong in [
            json!([]),
            json!({"delay": "2h"}),
            json!({"delay": 3}),
            json!({"oversized": 0}),
            json!({"oversized": 1e12}),
            json!({"deep_nesting": -1}),
            json!({"notification_flood": 1_000_000}),
            json!({"abrupt_close": "yes"}),
        ] {
            assert!(DeliveryModifiers::from_value(&wrong).is_err(), "{wrong}");
        }
        let right =
            DeliveryModifiers::from_value(&json!({"slow_stream": "250ms", "abrupt_close": true}));
        assert_eq!(right.unwrap().slow_stream, Some(Duration::from_millis(250)));
    }

    #[test]
    fn padding_and_nesting_go_into_the_result_and_stay_json() {
        let delivery =
            DeliveryModifiers::from_value(&json!({"oversized": 10, "deep_nesting": 3})).unwrap();
        for text in [
            json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
            json!({"name": "card"}),
            json!({}),
        ] {
            let shaped: Value = serde_json::from_str(&delivery.shape(text.to_string())).unwrap();
            let place = shaped.get("result").unwrap_or(&shaped);
            assert_eq!(place["x-padding"], "xxxxxxxxxx");
            assert_eq!(place["x-nesting"], json!([[[]]]));
        }
        assert_eq!(delivery.shape("text".to_owned()), "text");
    }
}
