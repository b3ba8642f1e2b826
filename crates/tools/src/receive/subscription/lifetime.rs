//! How long a platform grants a channel, as its answer says.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// The fields that say when a channel ends, as platforms call them.
const ENDS: [&str; 12] = [
    "expiration",
    "expires_at",
    "expiresAt",
    "expires_at_ms",
    "expirationDateTime",
    "expiration_time",
    "expirationTime",
    "expire_time",
    "expireTime",
    "expires",
    "expiry",
    "expires_on",
];
/// The fields that say how many seconds are left.
const SECONDS: [&str; 5] = [
    "expires_in",
    "expiresIn",
    "lease_seconds",
    "leaseSeconds",
    "ttl",
];
/// Where platforms put what they made.
const WITHIN: [&str; 5] = ["data", "result", "subscription", "channel", "webhook"];
/// A channel that lives longer is renewed anyway; a time beyond this is no time.
const LONGEST: SignedDuration = SignedDuration::from_hours(10 * 366 * 24);
/// Numbers from here on are milliseconds: in seconds, it is the year 5138.
const MILLISECONDS: i64 = 100_000_000_000;

/// When the channel ends, if the answer says so and it makes sense.
pub(super) fn end(response: &Value, now: Timestamp) -> Option<Timestamp> {
    let inner = WITHIN.iter().filter_map(|key| response.get(key));
    let places = std::iter::once(response).chain(inner);
    let ends = places.flat_map(|place| {
        let ends = ENDS.iter().filter_map(|key| instant(place.get(key)?));
        let left = SECONDS.iter().filter_map(|key| {
            let seconds = number(place.get(key)?)?;
            now.checked_add(SignedDuration::from_secs(seconds)).ok()
        });
        ends.chain(left).collect::<Vec<_>>()
    });
    let makes_sense = |end: &Timestamp| {
        let life = end.duration_since(now);
        life.is_positive() && life <= LONGEST
    };
    ends.into_iter().find(makes_sense)
}

/// An instant as milliseconds, as seconds, or in the form of RFC 3339.
fn instant(value: &Value) -> Option<Timestamp> {
    match number(value) {
        Some(number) if number >= MILLISECONDS => Timestamp::from_millisecond(number).ok(),
        Some(number) => Timestamp::from_second(number).ok(),
        None => {
            let text = value.as_str().filter(|text| text.len() <= 64)?;
            let parsed = text.parse().ok();
            // Microsoft leaves the zone out where it means UTC.
            parsed.or_else(|| format!("{text}Z").parse().ok())
        }
    }
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64().filter(|float| float.abs() < 1e15)?;
            Some(float as i64)
        }),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ends_are_read_as_platforms_write_them() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let tomorrow = "2026-01-02T00:00:00Z";
        for response in [
            json!({"expiration": "1767312000000"}),
            json!({"expiration": 1_767_312_000_000_i64}),
            json!({"expires_at": 1_767_312_000}),
            json!({"expires": 1_767_312_000.5}),
            json!({"expirationDateTime": "2026-01-02T00:00:00.0000000Z"}),
            json!({"expirationDateTime": "2026-01-02T00:00:00"}),
            json!({"expireTime": "2026-01-02T01:00:00+01:00"}),
            json!({"expires_in": 86_400}),
            json!({"data": {"lease_seconds": "86400"}}),
            json!({"expiration": "soon", "expires_in": 86_400}),
            json!({"expires_at": 0, "ttl": 86_400}),
        ] {
            let end = end(&response, now).map(|end| end.to_string());
            assert_eq!(end.as_deref(), Some(tomorrow), "{response}");
        }
        for response in [
            json!(null),
            json!({"id": "x"}),
            json!({"expires_at": 1_700_000_000}),
            json!({"expiration": "never"}),
            json!({"expiration": i64::MAX}),
            json!({"expires_in": -5}),
            json!({"expires_in": i64::MAX}),
            json!([{"expires_in": 5}]),
        ] {
            assert_eq!(end(&response, now), None, "{response}");
        }
    }
}
