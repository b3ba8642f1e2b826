//! Subscriptions: opening a push channel at a platform, and closing it.
//!
//! A channel is renewed by opening a new one, with a new id, before the old one is closed. The id, the asked
//! time and the answer of the platform are plain data: stored, they are enough to close the channel after a
//! restart.

mod lifetime;

use std::time::Duration;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::EventListener;
use crate::http::HttpClient;
use crate::runtime::{ActionError, ActionFailure, Environment};
use proofhouse_manifest::Subscription;
use proofhouse_manifest::interpolate::Root;

/// How long a channel is asked for when nobody says. Every platform grants a day, or less.
pub const DEFAULT_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// A channel is renewed when this part of its life is over.
const RENEW_AT: f64 = 0.8;
/// The soonest renewal: a platform that grants an instant must not make us ask without end.
const MIN_RENEWAL: Duration = Duration::from_secs(10);
/// How much of the platform's answer is kept. What `unsubscribe` needs are ids.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// The path of callback addresses, below which each channel has its own. It is what `{runtime.api_root}` is, with the
/// address of the server before it and [`ChannelRequest::callback`] behind it: whatever path a manifest writes after it,
/// the platform posts to this channel.
pub const CALLBACK_PATH: &str = "/v1/webhooks/channels";

/// A channel that is asked for. It is stored before the call is made, so that a channel whose answer never came
/// is known, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelRequest {
    /// What `{subscription.id}` names; no other channel has it.
    pub id: String,
    /// What its callback address is told by: a secret that only the platform is given.
    pub callback: String,
    /// What `{subscription.expires_at_ms}` names: the end that is asked for.
    pub expires_at: Timestamp,
}

/// A channel that is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Active {
    /// What `{subscribe.name}` names, without the operator's secrets.
    pub response: Value,
    /// When the platform ends it.
    pub expires_at: Timestamp,
    /// When to open the next one.
    pub renew_at: Timestamp,
}

/// What came of opening a channel.
#[derive(Debug, Clone, PartialEq)]
pub enum Subscribed {
    /// It is open.
    Active(Active),
    /// It is not open. `error.is_recoverable()` says whether another try makes sense.
    Failed {
        /// Why.
        error: ActionError,
    },
    /// It may be open at the platform: nobody knows what became of the request. It must be closed, as far
    /// as that can be done without an answer, before or after another is opened.
    Unknown {
        /// Why.
        error: ActionError,
    },
}

/// What came of closing a channel.
#[derive(Debug, Clone, PartialEq)]
pub enum Unsubscribed {
    /// It is closed, or was gone already, or the manifest says of no way to close it.
    Gone,
    /// It may still be open; try again.
    Failed {
        /// Why.
        error: ActionError,
    },
    /// It cannot be closed, such as when its answer never came and `unsubscribe` names a part of it. It ends
    /// by itself.
    Impossible {
        /// Why.
        error: ActionError,
    },
}

impl ChannelRequest {
    /// A channel with a new id that is asked for this long.
    ///
    /// # Errors
    ///
    /// Returns an error when the system gives no random numbers.
    pub fn new(now: Timestamp, lifetime: Duration) -> Result<Self, ActionError> {
        let mut random = [0_u8; 48];
        SystemRandom::new().fill(&mut random).map_err(|_| {
            ActionError::new(ActionFailure::Token, "the system gives no random numbers")
        })?;
        let (bytes, secret) = random.split_at_mut(16);
        // A UUID of version 4, since some platforms want one.
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let callback = HEXLOWER.encode(secret);
        let hex = HEXLOWER.encode(bytes);
        let id = format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        );
        Ok(Self {
            id,
            callback,
            expires_at: now.checked_add(lifetime).unwrap_or(Timestamp::MAX),
        })
    }
}

/// Opens a channel.
pub async fn subscribe(
    client: &HttpClient,
    subscription: &Subscription,
    listener: &EventListener,
    opening: &ChannelRequest,
    now: Timestamp,
) -> Subscribed {
    let environment = environment(listener, opening, None);
    let call = &subscription.subscribe;
    let exchanged = match listener.send(client, call, &environment).await {
        Ok(exchanged) => exchanged,
        // Whatever is wrong with an answer, the platform gave one, and so it did something.
        Err(error) => match error.failure {
            ActionFailure::TooLarge
            | ActionFailure::Response
            | ActionFailure::Broken
            | ActionFailure::Timeout => {
                return Subscribed::Unknown { error };
            }
            _ if error.outcome_unknown => return Subscribed::Unknown { error },
            _ => return Subscribed::Failed { error },
        },
    };
    let status = exchanged.answer.status;
    match exchanged.result(call) {
        Ok(response) => Subscribed::Active(active(response, opening, now)),
        // The channel is open, and nothing is known of it.
        Err(_) if status.is_success() => Subscribed::Active(active(Value::Null, opening, now)),
        // A server that broke, or one in between, may have passed the request on.
        Err(error) if matches!(status.as_u16(), 500 | 502 | 504) => Subscribed::Unknown { error },
        Err(error) => Subscribed::Failed { error },
    }
}

/// Closes a channel. `response` is that of its [`Active`], or null where no answer came.
pub async fn unsubscribe(
    client: &HttpClient,
    subscription: &Subscription,
    listener: &EventListener,
    opening: &ChannelRequest,
    response: &Value,
) -> Unsubscribed {
    let Some(call) = &subscription.unsubscribe else {
        return Unsubscribed::Gone;
    };
    let environment = environment(listener, opening, Some(response));
    let error = match listener.send(client, call, &environment).await {
        Ok(exchanged) => match exchanged.answer.status.as_u16() {
            404 | 410 => return Unsubscribed::Gone,
            _ => match exchanged.result(call) {
                Ok(_) => return Unsubscribed::Gone,
                Err(_) if exchanged.answer.status.is_success() => return Unsubscribed::Gone,
                Err(error) => error,
            },
        },
        Err(error) => error,
    };
    match error.failure {
        ActionFailure::Arguments | ActionFailure::Manifest => Unsubscribed::Impossible { error },
        _ => Unsubscribed::Failed { error },
    }
}

fn environment(
    listener: &EventListener,
    opening: &ChannelRequest,
    response: Option<&Value>,
) -> Environment {
    let expires_at_ms = opening.expires_at.as_millisecond();
    let channel = json!({"id": opening.id, "expires_at_ms": expires_at_ms});
    let environment = listener.environment.clone();
    let mut runtime = environment.root(Root::Runtime).cloned().unwrap_or_default();
    if let Some(Value::String(api_root)) = runtime.get_mut("api_root") {
        *api_root = format!("{api_root}{CALLBACK_PATH}/{}", opening.callback);
    }
    let environment = environment.with(Root::Runtime, runtime);
    let environment = environment.with(Root::Subscription, channel);
    match response {
        Some(response) => environment.with(Root::Subscribe, response.clone()),
        None => environment,
    }
}

fn active(response: Value, opening: &ChannelRequest, now: Timestamp) -> Active {
    let expires_at = lifetime::end(&response, now).unwrap_or(opening.expires_at);
    let life = Duration::try_from(expires_at.duration_since(now)).unwrap_or_default();
    let wait = life.mul_f64(RENEW_AT).max(MIN_RENEWAL);
    Active {
        response: bounded(response),
        expires_at,
        renew_at: now.checked_add(wait).unwrap_or(Timestamp::MAX),
    }
}

/// The answer, if it is short; else those of its fields that are.
fn bounded(response: Value) -> Value {
    if response.to_string().len() <= MAX_RESPONSE_BYTES {
        return response;
    }
    let mut left = MAX_RESPONSE_BYTES;
    let fields = response.as_object().into_iter().flatten();
    let short = fields.filter(|(name, value)| {
        let length = name.len() + value.as_str().map_or(32, str::len);
        let fits = !value.is_array() && !value.is_object() && length <= left;
        if fits {
            left -= length;
        }
        fits
    });
    let fields = short.map(|(name, value)| (name.clone(), value.clone()));
    Value::Object(fields.collect())
}
