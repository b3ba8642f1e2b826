//! Ingest: a webhook is genuine or refused, stored before it is answered, and stored once.

use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use proofhouse_manifest::{Receive, ToolEvent};
use proofhouse_store::StoreError;
use proofhouse_store::model::{
    ChannelState, EventKind, JsonText, NewEvent, ReceiveOutcome, ToolRef,
};
use proofhouse_tools::receive::webhook::{
    self, Channel, Delivery, Handshake, PayloadError, Verification,
};
use proofhouse_wire::HeaderMap;
use serde_json::Value;

use super::Engine;
use super::manifests::ManifestSnapshot;
use super::signatures::{ShownHeaders, Signatures, StoredHeaders};

/// What a form says it is; everything else that can be read is JSON.
const FORM: &str = "application/x-www-form-urlencoded";
/// The longest name in an address.
const MAX_TOOL_NAME: usize = 200;
/// Push channels that one delivery may come through.
const MAX_CHANNELS: usize = 100;

/// Webhooks that are being stored.
#[derive(Debug, Default)]
pub(super) struct PendingWebhooks(AtomicUsize);

impl PendingWebhooks {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one for as long as this lives, also when the sender hangs up.
    fn one_more(&self) -> impl Drop {
        struct AcceptedEvent<'a>(&'a AtomicUsize);
        impl Drop for AcceptedEvent<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        AcceptedEvent(&self.0)
    }
}

/// What became of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookOutcome {
    /// It is stored durably, under these ids.
    Stored(Vec<i64>),
    /// It was stored before.
    Duplicate(Vec<i64>),
    /// It is no event; this is the answer.
    Handshake(Handshake),
    /// It is not taken.
    Refused(WebhookRefusal),
    /// It cannot be stored now; the sender should try again.
    Unavailable,
}

/// Why a webhook is not taken, without anything that would help to forge one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookRefusal {
    /// Nothing listens at the address.
    #[error("no tool of this name takes webhooks")]
    NobodyListens,
    /// The signature is missing or wrong.
    #[error("{0}")]
    Signature(String),
    /// It came through push channels, and none of them is open any more.
    #[error("there is no such channel any more")]
    ChannelGone,
    /// It is more than is taken.
    #[error("{0}")]
    TooLarge(String),
    /// It is in a form that is not read here.
    #[error("{0}")]
    Unsupported(String),
    /// It cannot be read.
    #[error("{0}")]
    Malformed(String),
}

impl From<PayloadError> for WebhookRefusal {
    fn from(error: PayloadError) -> Self {
        let why = error.to_string();
        match error {
            PayloadError::TooLarge { .. } => Self::TooLarge(why),
            PayloadError::Type { .. } | PayloadError::Compressed => Self::Unsupported(why),
            PayloadError::TooDeep { .. }
            | PayloadError::Json { .. }
            | PayloadError::Form { .. } => Self::Malformed(why),
        }
    }
}

impl Engine {
    /// What a platform that asks whether somebody is there wants to hear. Nothing is kept.
    #[must_use]
    pub fn greet(
        &self,
        tool: &str,
        headers: &HeaderMap,
        query: Option<&str>,
        body: &[u8],
    ) -> Option<Handshake> {
        let snapshot = self.inner.manifests.current();
        let delivery = Delivery {
            headers,
            query,
            body,
            received_at: self.inner.options.now(),
        };
        let is_known = tool.len() <= MAX_TOOL_NAME && listens(&snapshot, tool);
        webhook::greet(&delivery).filter(|_| is_known)
    }

    /// Takes a webhook that was posted to the address of a tool or of a source of triggers.
    pub async fn accept(
        &self,
        tool: &str,
        headers: &HeaderMap,
        query: Option<&str>,
        body: &[u8],
    ) -> WebhookOutcome {
        let inner = &self.inner;
        let received_at: Timestamp = inner.options.now();
        let snapshot = inner.manifests.current();
        let is_known = tool.len() <= MAX_TOOL_NAME && listens(&snapshot, tool);
        if !is_known {
            return WebhookOutcome::Refused(WebhookRefusal::NobodyListens);
        }
        let delivery = Delivery {
            headers,
            query,
            body,
            received_at,
        };
        if let Some(handshake) = webhook::greet(&delivery) {
            return WebhookOutcome::Handshake(handshake);
        }
        let limits = &inner.options.payload;
        if body.len() > limits.max_bytes {
            let why = format!("the body has more than {} bytes", limits.max_bytes);
            return WebhookOutcome::Refused(WebhookRefusal::TooLarge(why));
        }
        // Signatures first: whoever cannot sign learns nothing about what is read.
        let signed = Signatures::check(&snapshot, tool, &delivery);
        if !signed.best().is_accepted(inner.options.strict) {
            let reason = match signed.best() {
                Verification::Refused { reason } => reason.to_string(),
                _ => "only signed webhooks are accepted".to_owned(),
            };
            return WebhookOutcome::Refused(WebhookRefusal::Signature(reason));
        }
        let payload = match webhook::read_payload(&delivery, limits) {
            Ok(payload) => payload,
            Err(error) => return WebhookOutcome::Refused(error.into()),
        };
        if let Some(handshake) =
            webhook::greet_signed(&payload, signed.best(), inner.options.strict)
        {
            return WebhookOutcome::Handshake(handshake);
        }
        let identity = webhook::identify(&delivery, Some(&payload), signed.id());
        let channels = webhook::channels(&delivery, Some(&payload));
        let targets = match self.targets(channels).await {
            Ok(targets) => targets,
            Err(answer) => return answer,
        };
        let Some(stored) = kept_payload(&delivery, &payload) else {
            return malformed("the body cannot be kept");
        };
        let headers = StoredHeaders {
            headers: ShownHeaders(&delivery),
            signature: &signed,
        };
        let Ok(headers) = JsonText::of(&headers) else {
            return malformed("the headers cannot be kept");
        };
        let events = events(tool, identity.key, &targets, headers, stored);
        let arriving = inner.arriving.one_more();
        let received = inner.store.receive(events.into()).await;
        drop(arriving);
        match received {
            Ok(received) => {
                let ids = received.iter().map(|received| received.id()).collect();
                let is_new = |one: &ReceiveOutcome| matches!(one, ReceiveOutcome::Stored(_));
                if received.iter().any(is_new) {
                    inner.wake_router.notify_one();
                    WebhookOutcome::Stored(ids)
                } else {
                    WebhookOutcome::Duplicate(ids)
                }
            }
            Err(error @ (StoreError::TooLarge { .. } | StoreError::Invalid(_))) => {
                WebhookOutcome::Refused(WebhookRefusal::TooLarge(error.to_string()))
            }
            Err(error) => {
                inner.log_store_error("a webhook cannot be stored", &error);
                WebhookOutcome::Unavailable
            }
        }
    }

    /// The tasks whose channels a delivery came through.
    async fn targets(&self, channels: Vec<Channel>) -> Result<Vec<DeliveryTarget>, WebhookOutcome> {
        if channels.is_empty() {
            return Ok(Vec::new());
        }
        let mut targets: Vec<DeliveryTarget> = Vec::new();
        let count = channels.len();
        for channel in channels.into_iter().take(MAX_CHANNELS) {
            // Platforms that name channels themselves send our name along as a token.
            for id in [Some(channel.id), channel.token].into_iter().flatten() {
                match self.inner.store.channel(&id).await {
                    Ok(found) => {
                        let is_open = matches!(
                            found.state,
                            ChannelState::Subscribing
                                | ChannelState::Active
                                | ChannelState::Replaced
                        );
                        let is_new = targets.iter().all(|known| known.channel != found.id);
                        if is_open && is_new {
                            targets.push(DeliveryTarget {
                                channel: found.id,
                                task: found.task,
                                tool: found.tool,
                                event: found.event,
                            });
                        }
                        break;
                    }
                    Err(
                        StoreError::NotFound(_)
                        | StoreError::Invalid(_)
                        | StoreError::TooLarge { .. },
                    ) => {}
                    Err(error) => {
                        self.inner
                            .log_store_error("a channel cannot be read", &error);
                        return Err(WebhookOutcome::Unavailable);
                    }
                }
            }
        }
        if targets.is_empty() && count > 0 {
            return Err(WebhookOutcome::Refused(WebhookRefusal::ChannelGone));
        }
        Ok(targets)
    }
}

fn malformed(why: &str) -> WebhookOutcome {
    WebhookOutcome::Refused(WebhookRefusal::Malformed(why.to_owned()))
}

/// The event that is stored: one for each task that the delivery is for, or one for whoever listens.
fn events(
    tool: &str,
    key: String,
    targets: &[DeliveryTarget],
    headers: JsonText,
    payload: Vec<u8>,
) -> Vec<NewEvent> {
    let source = format!("webhook:{tool}");
    if targets.is_empty() {
        return vec![NewEvent {
            source,
            tool: ToolRef::new("", tool),
            name: None,
            kind: EventKind::Webhook,
            dedupe_key: Some(key),
            headers,
            payload,
            target_task: None,
        }];
    }
    let each = targets.iter().map(|target| NewEvent {
        source: source.clone(),
        tool: target.tool.clone(),
        name: Some(target.event.clone()),
        kind: EventKind::Subscription,
        dedupe_key: Some(format!("{key}@{}", target.channel)),
        headers: headers.clone(),
        payload: payload.clone(),
        target_task: Some(target.task.clone()),
    });
    each.collect()
}

/// The payload as it is kept: JSON as it was sent, which costs nothing, else what was read written as JSON.
fn kept_payload(delivery: &Delivery<'_>, payload: &Value) -> Option<Vec<u8>> {
    let kind = delivery.headers.get("content-type");
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_form = kind.trim().to_ascii_lowercase().starts_with(FORM);
    let is_blank = delivery.body.iter().all(u8::is_ascii_whitespace);
    if is_form || is_blank {
        serde_json::to_vec(payload).ok()
    } else {
        Some(delivery.body.to_vec())
    }
}

/// A task that a delivery is for, by the channel it came through.
struct DeliveryTarget {
    channel: String,
    task: String,
    tool: ToolRef,
    event: String,
}

/// Whether anything listens at an address: a tool of that name, in any namespace, that is sent events and does not only ask
/// for them, or a trigger. What nobody listens to would only fill the disk.
fn listens(snapshot: &ManifestSnapshot, name: &str) -> bool {
    let is_sent = |event: &ToolEvent| !matches!(event.receive, Receive::Poll(_));
    let mut tools = snapshot.named(name);
    tools.any(|compiled| compiled.tool.events.iter().any(is_sent))
        || snapshot.sources.contains_key(name)
}
