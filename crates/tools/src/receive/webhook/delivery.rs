//! Which delivery it is: an id to notice repeats by, the push channel it came through, and the event value.

use std::fmt::Write as _;

use ring::digest;
use serde_json::Value;

use super::Delivery;
use super::scheme::{SCHEMES, Scheme};

/// The longest id that is kept as it is; longer ones are hashed.
const MAX_ID_BYTES: usize = 200;
/// How many headers, and how long ones, an event shows to expressions.
const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 1_024;

/// Headers that name a delivery, of platforms whose signatures are not a scheme of ours.
const OTHER_ID_HEADERS: [&str; 4] = [
    "x-gitlab-event-uuid",
    "x-shopify-webhook-id",
    "svix-id",
    "x-atlassian-webhook-identifier",
];

/// Words in the names of headers that hold a secret or a signature, which no expression and no record needs.
const HIDDEN_WORDS: [&str; 14] = [
    "apikey",
    "auth",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "hmac",
    "passwd",
    "password",
    "secret",
    "sig",
    "sign",
    "signature",
    "token",
];

/// Whether a header, named in lower case, holds a secret or a signature. A key alone is none: platforms name events so.
fn is_hidden(name: &str) -> bool {
    name.contains("signature")
        || name.ends_with("api-key")
        || name
            .split(['-', '_'])
            .any(|word| HIDDEN_WORDS.contains(&word))
}

/// By what a delivery is told from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryIdentity {
    /// The platform's id of the delivery, with what it is, else the hash of the body. The same key within
    /// seven days is the same delivery.
    pub key: String,
    /// Whether the key is the platform's id.
    pub is_platform_id: bool,
}

/// The push channel a delivery came through, as the platform says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// The id of the channel: ours where the platform keeps it, else the platform's.
    pub id: String,
    /// The token that was given when the channel was opened and comes back with every delivery.
    pub token: Option<String>,
}

/// Says which delivery it is. `payload` is its body, where it could be read; `signed` is the id that its signature covers
/// ([`Verdict::id`](super::Verdict::id)), which no other can stand against.
#[must_use]
pub fn identify(
    delivery: &Delivery<'_>,
    payload: Option<&Value>,
    signed: Option<&str>,
) -> DeliveryIdentity {
    let sha256 = |bytes: &[u8]| hex(digest::digest(&digest::SHA256, bytes).as_ref());
    let named = signed.map(str::to_owned);
    let named = named.or_else(|| platform_id(delivery, payload));
    let key = match &named {
        Some(id) if id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic()) => {
            id.clone()
        }
        Some(id) => format!("sha256-of-id:{}", sha256(id.as_bytes())),
        None => format!("sha256:{}", sha256(delivery.body)),
    };
    DeliveryIdentity {
        key,
        is_platform_id: named.is_some(),
    }
}

fn platform_id(delivery: &Delivery<'_>, payload: Option<&Value>) -> Option<String> {
    let of_schemes = SCHEMES.iter().filter_map(Scheme::delivery_header);
    for header in of_schemes.chain(OTHER_ID_HEADERS) {
        if let Some(id) = delivery.header(header).filter(|id| !id.is_empty()) {
            return Some(format!("{header}:{id}"));
        }
    }
    if let (Some(channel), Some(number)) = (
        delivery.header("x-goog-channel-id"),
        delivery.header("x-goog-message-number"),
    ) {
        return Some(format!("google:{channel}:{number}"));
    }
    let payload = payload?;
    // Slack's events have an id each.
    if let Some(id) = text(payload.get("event_id")) {
        return Some(format!("event_id:{id}"));
    }
    // Microsoft Graph sends notifications in a list; those that have ids have all of them.
    let notifications = payload.get("value").and_then(Value::as_array)?;
    let mut key = "graph".to_owned();
    for notification in notifications {
        let subscription = text(notification.get("subscriptionId"))?;
        let id = text(notification.get("id"))?;
        let _ = write!(key, ":{subscription}:{id}");
    }
    (!notifications.is_empty()).then_some(key)
}

/// A text that is there.
fn text(value: Option<&Value>) -> Option<&str> {
    let text = value.and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

/// The push channels a delivery says it came through: Google's headers, Graph's notifications.
#[must_use]
pub fn channels(delivery: &Delivery<'_>, payload: Option<&Value>) -> Vec<Channel> {
    if let Some(id) = delivery.header("x-goog-channel-id") {
        let token = delivery.header("x-goog-channel-token").map(str::to_owned);
        let id = id.to_owned();
        return vec![Channel { id, token }];
    }
    let notifications = payload.and_then(|payload| payload.get("value")?.as_array());
    let channels = notifications
        .into_iter()
        .flatten()
        .filter_map(|notification| {
            let text = |key: &str| Some(notification.get(key)?.as_str()?.to_owned());
            Some(Channel {
                id: text("subscriptionId")?,
                token: text("clientState"),
            })
        });
    channels.collect()
}

/// What `event.headers` is in filters and assertions: names in lower case, with their values. Headers with credentials
/// and signatures are left out.
pub fn shown_headers<'a>(delivery: &Delivery<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let delivery = *delivery;
    let names = delivery.headers.keys().take(MAX_HEADERS);
    names.filter_map(move |name| {
        let value = delivery.header(name)?;
        let is_shown = value.len() <= MAX_HEADER_BYTES && !is_hidden(name.as_str());
        is_shown.then_some((name.as_str(), value))
    })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
