//! Handshakes: deliveries that are no events but ask whether we are there.

use serde_json::Value;

use super::{Delivery, Verification};

/// The longest text that is echoed. Platforms send some hundred characters.
const MAX_ECHO_BYTES: usize = 2_048;

/// What to answer to a handshake; the status is 200. Nothing of it is stored as an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handshake {
    /// This body, with this type and `X-Content-Type-Options: nosniff`.
    Echo {
        /// The value of `Content-Type`; nothing that a browser would run.
        content_type: &'static str,
        /// The body.
        body: String,
    },
    /// An empty body: the platform says that a channel is open.
    Empty,
}

/// The handshakes that come without a signature: Microsoft Graph's `validationToken`, which is echoed as
/// plain text, and Google's `sync`, which says that a channel is open.
#[must_use]
pub fn greet(delivery: &Delivery<'_>) -> Option<Handshake> {
    if delivery.header("x-goog-resource-state") == Some("sync") {
        return Some(Handshake::Empty);
    }
    let query = delivery.query?;
    // A request with a body is an event, whatever its address says.
    if query.len() > 4 * MAX_ECHO_BYTES || !delivery.body.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let mut pairs = url::form_urlencoded::parse(query.as_bytes()).take(16);
    let (_, token) = pairs.find(|(name, _)| name == "validationToken")?;
    echo(&token)
}

/// The handshake that is only answered where the signature is right, or where there is none to check: Slack's
/// `url_verification`.
#[must_use]
pub fn greet_signed(
    payload: &Value,
    verification: &Verification,
    strict: bool,
) -> Option<Handshake> {
    if payload.get("type")?.as_str()? != "url_verification" || !verification.is_accepted(strict) {
        return None;
    }
    echo(payload.get("challenge")?.as_str()?)
}

fn echo(text: &str) -> Option<Handshake> {
    let fits =
        !text.is_empty() && text.len() <= MAX_ECHO_BYTES && !text.chars().any(|c| c.is_control());
    fits.then(|| Handshake::Echo {
        content_type: "text/plain; charset=utf-8",
        body: text.to_owned(),
    })
}
