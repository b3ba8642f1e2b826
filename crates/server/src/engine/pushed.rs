//! What is the same about an event in a channel and in its successor.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use proofhouse_store::model::ChannelRecord;
use proofhouse_tools::receive::webhook::Delivery;
use ring::digest;
use serde_json::Value;

/// Texts of the answer to `subscribe` that are shorter may stand in a payload by chance.
const MIN_NAME: usize = 8;
/// Headers that say what happened, of platforms that say nothing in the body.
const TELLING_HEADERS: [&str; 3] = [
    "x-goog-resource-state",
    "x-goog-resource-id",
    "x-goog-changed",
];

/// The digest of a delivery without what names the channel: its id, its callback, and the texts that the platform answered
/// when it was opened, such as an id of its own and the end.
pub(super) fn digest(
    channel: &ChannelRecord,
    delivery: &Delivery<'_>,
    mut payload: Value,
) -> String {
    let mut names: Vec<&str> = vec![&channel.id];
    names.extend(channel.callback.as_deref());
    collect(channel.response.as_ref(), &mut names);
    blank(&mut payload, &names);
    let mut text = payload.to_string();
    for header in TELLING_HEADERS {
        let value = delivery.headers.get(header);
        let value = value.and_then(|value| value.to_str().ok());
        let value = value.filter(|value| !names.contains(value));
        let _ = write!(text, "\n{}", value.unwrap_or_default());
    }
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    HEXLOWER.encode(digest.as_ref())
}

fn collect<'v>(value: Option<&'v Value>, names: &mut Vec<&'v str>) {
    match value {
        Some(Value::String(text)) if text.len() >= MIN_NAME => names.push(text),
        Some(Value::Array(values)) => values.iter().for_each(|value| collect(Some(value), names)),
        Some(Value::Object(fields)) => {
            for value in fields.values() {
                collect(Some(value), names);
            }
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
    }
}

fn blank(value: &mut Value, names: &[&str]) {
    match value {
        Value::String(text) if names.contains(&text.as_str()) => *value = Value::Null,
        Value::Array(values) => values.iter_mut().for_each(|value| blank(value, names)),
        Value::Object(fields) => fields.values_mut().for_each(|value| blank(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
