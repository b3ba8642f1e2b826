//! Which delivery it is: an id to notice repeats by, the push channel it came through, and the event value.

use std::fmt::Write as _;
use std::time::Duration;

use data_encoding::HEXLOWER;
use ring::digest;
use serde_json::Value;

use super::Delivery;
use super::scheme::{SCHEMES, Scheme, SignatureKind};

/// The longest id that is kept as it is; longer ones are hashed.
const MAX_ID_BYTES: usize = 200;
/// How many headers, and how long ones, an event shows to expressions.
const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 1_024;

/// A header that names a delivery, of a platform whose signatures are not a scheme of ours.
const ATLASSIAN_ID: &str = "x-atlassian-webhook-identifier";
/// How long a body that is the same counts as the same delivery: a signed time may be off this much, in both directions
/// together, and who captured a signature that has no time has no longer to use it unnoticed.
pub const REPLAY_WINDOW: Duration = Duration::from_secs(10 * 60);
/// How long an id counts: as long as the keys of events are kept.
pub const ID_WINDOW: Duration = Duration::from_secs(7 * 24 * 3600);

/// By what a repeat is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DedupeBy {
    /// The platform's id.
    Id,
    /// The body.
    Body,
    /// Nothing: every delivery is a new event.
    Nothing,
}

/// What the operator chose for a source. What is absent is as the signature allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DedupeChoice {
    /// By what a repeat is noticed.
    pub by: Option<DedupeBy>,
    /// For how long.
    pub window: Option<Duration>,
}

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
    /// The platform's id of the delivery, with what it is, else the hash of the body.
    pub key: String,
    /// How long a second one with this key is the same delivery.
    pub window: Duration,
}

/// The push channel a delivery came through, as the platform says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// The id of the channel: ours where the platform keeps it, else the platform's.
    pub id: String,
    /// The token that was given when the channel was opened and comes back with every delivery.
    pub token: Option<String>,
}

/// Says which delivery it is, or nothing if every one is a new event. `scheme` is the one by which it is genuine
/// (that whose key fits): an id that is not signed identifies nothing, unless the operator chose
/// to go by it.
#[must_use]
pub fn identify(
    delivery: &Delivery<'_>,
    payload: &Value,
    scheme: Option<&Scheme>,
    choice: DedupeChoice,
) -> Option<DeliveryIdentity> {
    let signed = scheme.and_then(|scheme| scheme.signed_id(delivery, payload));
    // A token says who sends and nothing about what.
    let signs = scheme.is_some_and(|scheme| scheme.kind == SignatureKind::Hmac);
    let by = choice.by.unwrap_or(match &signed {
        Some(_) => DedupeBy::Id,
        None if signs => DedupeBy::Body,
        None => DedupeBy::Nothing,
    });
    let id = match by {
        DedupeBy::Id => signed.or_else(|| match scheme {
            Some(scheme) => header_id(delivery, scheme.delivery_header()?),
            None => platform_id(delivery, payload),
        }),
        DedupeBy::Body => None,
        DedupeBy::Nothing => return None,
    };
    let sha256 = |bytes: &[u8]| HEXLOWER.encode(digest::digest(&digest::SHA256, bytes).as_ref());
    let (key, window) = match id {
        Some(id) if id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic()) => {
            (id, ID_WINDOW)
        }
        Some(id) => (format!("sha256-of-id:{}", sha256(id.as_bytes())), ID_WINDOW),
        None => (format!("sha256:{}", sha256(delivery.body)), REPLAY_WINDOW),
    };
    Some(DeliveryIdentity {
        key,
        window: choice.window.unwrap_or(window),
    })
}

fn header_id(delivery: &Delivery<'_>, header: &str) -> Option<String> {
    let id = delivery.header(header).filter(|id| !id.is_empty())?;
    Some(format!("{header}:{id}"))
}

fn platform_id(delivery: &Delivery<'_>, payload: &Value) -> Option<String> {
    let of_schemes = SCHEMES.iter().filter_map(Scheme::delivery_header);
    let mut headers = of_schemes.chain([ATLASSIAN_ID]);
    if let Some(id) = headers.find_map(|header| header_id(delivery, header)) {
        return Some(id);
    }
    if let (Some(channel), Some(number)) = (
        delivery.header("x-goog-channel-id"),
        delivery.header("x-goog-message-number"),
    ) {
        return Some(format!("google:{channel}:{number}"));
    }
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
