//! Ingest: a webhook is genuine or refused, stored before it is answered, and stored once.

use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use proofhouse_manifest::{Receive, ToolEvent};
use proofhouse_store::StoreError;
use proofhouse_store::model::{
    ChannelRecord, ChannelState, EventKind, JsonText, Millis, NewEvent, ReceiveOutcome, RepeatRule,
    ToolRef,
};
use proofhouse_tools::receive::webhook::{
    self, Channel, Delivery, Handshake, PayloadError, Verification,
};
use proofhouse_wire::HeaderMap;
use proofhouse_wire::trace::TraceParent;
use serde_json::Value;

use super::Engine;
use super::manifests::{ManifestSnapshot, full_name};
use super::pushed;
use super::signatures::{ShownHeaders, Signatures, StoredHeaders};

/// What a form says it is; everything else that can be read is JSON.
const FORM: &str = "application/x-www-form-urlencoded";
/// The longest name in an address.
const MAX_TOOL_NAME: usize = 200;
/// The longest callback in an address.
const MAX_CALLBACK: usize = 200;
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

/// The address of a tool, or of a source of triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolAddress<'a> {
    /// Its namespace, if the address says one.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub tool: &'a str,
}

impl ToolAddress<'_> {
    /// Whether what is in a namespace is meant.
    pub(super) fn has(self, namespace: &str) -> bool {
        self.namespace.is_none_or(|own| own == namespace)
    }

    fn is_short(self) -> bool {
        let namespace = self.namespace.unwrap_or_default();
        self.tool.len() <= MAX_TOOL_NAME && namespace.len() <= MAX_TOOL_NAME
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
    /// Several namespaces would hear of it, and nothing says which is meant.
    #[error(
        "several namespaces listen here: post to `/v1/webhooks/events/NAMESPACE/TOOL`, or sign with the secret of one of them"
    )]
    Ambiguous,
    /// The signature is missing or wrong.
    #[error("{0}")]
    Signature(String),
    /// The tool is only told through push channels, and the address is that of none.
    #[error(
        "this tool is told through push channels: the address of a channel is what `{{runtime.api_root}}` is in `subscribe`"
    )]
    NoChannel,
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
    pub fn greet_at(
        &self,
        address: ToolAddress<'_>,
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
        let is_known = address.is_short() && listens(&snapshot, address);
        webhook::greet(&delivery).filter(|_| is_known)
    }

    /// The same for the callback address of a push channel.
    pub async fn greet_push(
        &self,
        callback: &str,
        headers: &HeaderMap,
        query: Option<&str>,
        body: &[u8],
    ) -> Option<Handshake> {
        let delivery = Delivery {
            headers,
            query,
            body,
            received_at: self.inner.options.now(),
        };
        let handshake = webhook::greet(&delivery)?;
        self.channel_at(callback).await.ok().map(|_| handshake)
    }

    /// Takes a webhook that was posted to an address without a namespace.
    pub async fn accept(
        &self,
        tool: &str,
        headers: &HeaderMap,
        query: Option<&str>,
        body: &[u8],
    ) -> WebhookOutcome {
        let address = ToolAddress {
            namespace: None,
            tool,
        };
        self.accept_at(address, headers, query, body).await
    }

    /// Takes a webhook that was posted to the address of a tool or of a source of triggers. Where the address says no namespace
    /// and several would hear of it, those do whose own secret it is signed with, or all if a key of the operator says so.
    pub async fn accept_at(
        &self,
        address: ToolAddress<'_>,
        headers: &HeaderMap,
        query: Option<&str>,
        body: &[u8],
    ) -> WebhookOutcome {
        let inner = &self.inner;
        let tool = address.tool;
        let received_at: Timestamp = inner.options.now();
        let snapshot = inner.manifests.current();
        let is_known = address.is_short() && listens(&snapshot, address);
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
        // Signatures first: whoever cannot sign learns nothing about what is read.
        let signed = Signatures::check(&snapshot, address, &delivery);
        let said = signed.best();
        let payload = match self.genuine(&delivery, said, inner.options.strict) {
            Ok(payload) => payload,
            Err(answer) => return answer,
        };
        let verified = signed.verified_in();
        let namespace = address.namespace.or(verified.first().map(String::as_str));
        let name = namespace.map_or_else(|| tool.to_owned(), |one| full_name(one, tool));
        let identity = self.identity(&name, &delivery, &payload, &signed);
        let channels = webhook::channels(&delivery, Some(&payload));
        let targets = match self.targets(channels).await {
            Ok(targets) if targets.is_empty() && !takes_webhooks(&snapshot, address) => {
                return WebhookOutcome::Refused(WebhookRefusal::NoChannel);
            }
            Ok(targets) => targets,
            Err(answer) => return answer,
        };
        let (headers, stored) = match kept(&delivery, &payload, &signed) {
            Ok(kept) => kept,
            Err(answer) => return answer,
        };
        let meant = match address.namespace {
            Some(namespace) => vec![namespace.to_owned()],
            None if !targets.is_empty() => vec![String::new()],
            None => match meant(&snapshot, address, &signed) {
                Some(meant) => meant,
                None => return WebhookOutcome::Refused(WebhookRefusal::Ambiguous),
            },
        };
        let one = |namespace: &str, target: Option<&ChannelRecord>| NewEvent {
            source: match namespace {
                "" => format!("webhook:{tool}"),
                namespace => format!("webhook:{namespace}/{tool}"),
            },
            tool: target.map_or_else(
                || ToolRef::new(namespace, tool),
                |target| target.tool.clone(),
            ),
            name: target.map(|target| target.event.clone()),
            kind: match target {
                Some(_) => EventKind::Subscription,
                None => EventKind::Webhook,
            },
            dedupe_key: identity.as_ref().map(|(key, _)| match target {
                Some(target) => format!("{key}@{}", target.id),
                None => key.clone(),
            }),
            repeats: match &identity {
                Some((_, window)) => RepeatRule::Within(*window),
                None => RepeatRule::Kept,
            },
            headers: headers.clone(),
            payload: stored.clone(),
            target_task: target.map(|target| target.task.clone()),
        };
        let events: Vec<NewEvent> = if targets.is_empty() {
            meant.iter().map(|namespace| one(namespace, None)).collect()
        } else {
            let targets = targets
                .iter()
                .filter(|target| address.has(&target.tool.namespace));
            targets.map(|target| one("", Some(target))).collect()
        };
        if events.is_empty() {
            return WebhookOutcome::Refused(WebhookRefusal::ChannelGone);
        }
        self.keep(events).await
    }

    /// Takes what was posted to the callback address of a push channel. Only the platform knows the address, so it is
    /// taken without a signature, unless the tool has a key that the operator configured.
    pub async fn accept_push(
        &self,
        callback: &str,
        headers: &HeaderMap,
        query: Option<&str>,
        body: &[u8],
    ) -> WebhookOutcome {
        let inner = &self.inner;
        let channel = match self.channel_at(callback).await {
            Ok(channel) => channel,
            Err(answer) => return answer,
        };
        let delivery = Delivery {
            headers,
            query,
            body,
            received_at: inner.options.now(),
        };
        if let Some(handshake) = webhook::greet(&delivery) {
            return WebhookOutcome::Handshake(handshake);
        }
        let snapshot = inner.manifests.current();
        let (tool, event) = (&channel.tool, &channel.event);
        let (signed, said) = Signatures::of_event(&snapshot, tool, event, &delivery);
        let payload = match self.genuine(&delivery, &said, false) {
            Ok(payload) => payload,
            Err(answer) => return answer,
        };
        let (headers, stored) = match kept(&delivery, &payload, &signed) {
            Ok(kept) => kept,
            Err(answer) => return answer,
        };
        // What is signed says what is the same again, in whichever channel of the task; else only a successor doubles.
        let name = full_name(&tool.namespace, &tool.name);
        let identity = self.identity(&name, &delivery, &payload, &signed);
        let (source, dedupe_key, repeats) = match identity {
            Some((key, window)) => (
                format!("channels:{}:{}", channel.task, channel.event),
                Some(key),
                RepeatRule::Within(window),
            ),
            None => (
                format!("channel:{}", channel.id),
                None,
                RepeatRule::AcrossChannels {
                    digest: pushed::digest(&channel, &delivery, payload),
                    channel: channel.id.clone(),
                },
            ),
        };
        let event = NewEvent {
            source,
            tool: channel.tool.clone(),
            name: Some(channel.event.clone()),
            kind: EventKind::Subscription,
            dedupe_key,
            repeats,
            headers,
            payload: stored,
            target_task: Some(channel.task),
        };
        self.keep(vec![event]).await
    }

    /// By what a delivery is told from others, and for how many milliseconds, if it is.
    fn identity(
        &self,
        name: &str,
        delivery: &Delivery<'_>,
        payload: &Value,
        signed: &Signatures<'_>,
    ) -> Option<(String, Millis)> {
        let configured = self.inner.options.webhook_source(name);
        let choice = configured.map(|source| source.dedupe).unwrap_or_default();
        let found = webhook::identify(delivery, payload, signed.scheme(), choice)?;
        let window = Millis::try_from(found.window.as_millis()).unwrap_or(Millis::MAX);
        Some((found.key, window))
    }

    /// The open channel of a callback address.
    async fn channel_at(&self, callback: &str) -> Result<ChannelRecord, WebhookOutcome> {
        let gone = WebhookOutcome::Refused(WebhookRefusal::ChannelGone);
        if callback.is_empty() || callback.len() > MAX_CALLBACK {
            return Err(gone);
        }
        match self.inner.store.channel_at(callback).await {
            Ok(channel) if is_open(&channel) => Ok(channel),
            Ok(_) | Err(StoreError::NotFound(_)) => Err(gone),
            Err(error) => {
                self.inner
                    .log_store_error("a channel cannot be read", &error);
                Err(WebhookOutcome::Unavailable)
            }
        }
    }

    /// The payload of a delivery whose signature is worth this, else the answer.
    fn genuine(
        &self,
        delivery: &Delivery<'_>,
        said: &Verification,
        strict: bool,
    ) -> Result<Value, WebhookOutcome> {
        let limits = &self.inner.options.payload;
        if delivery.body.len() > limits.max_bytes {
            let why = format!("the body has more than {} bytes", limits.max_bytes);
            return Err(WebhookOutcome::Refused(WebhookRefusal::TooLarge(why)));
        }
        if !said.is_accepted(strict) {
            let reason = match said {
                Verification::Refused { reason } => reason.to_string(),
                Verification::Verified { .. } | Verification::Unsigned => {
                    "only signed webhooks are accepted".to_owned()
                }
            };
            return Err(WebhookOutcome::Refused(WebhookRefusal::Signature(reason)));
        }
        let payload = webhook::read_payload(delivery, limits)
            .map_err(|error| WebhookOutcome::Refused(error.into()))?;
        match webhook::greet_signed(&payload, said, strict) {
            Some(handshake) => Err(WebhookOutcome::Handshake(handshake)),
            None => Ok(payload),
        }
    }

    /// Stores events before they are answered.
    async fn keep(&self, events: Vec<NewEvent>) -> WebhookOutcome {
        let inner = &self.inner;
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
    async fn targets(&self, channels: Vec<Channel>) -> Result<Vec<ChannelRecord>, WebhookOutcome> {
        if channels.is_empty() {
            return Ok(Vec::new());
        }
        let mut targets: Vec<ChannelRecord> = Vec::new();
        let count = channels.len();
        for channel in channels.into_iter().take(MAX_CHANNELS) {
            // Platforms that name channels themselves send our name along as a token.
            for id in [Some(channel.id), channel.token].into_iter().flatten() {
                match self.inner.store.channel(&id).await {
                    Ok(found) => {
                        let is_new = targets.iter().all(|known| known.id != found.id);
                        if is_open(&found) && is_new {
                            targets.push(found);
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

/// Whether events come through a channel.
fn is_open(channel: &ChannelRecord) -> bool {
    match channel.state {
        ChannelState::Subscribing | ChannelState::Active | ChannelState::Replaced => true,
        ChannelState::Closing | ChannelState::Closed | ChannelState::Lost => false,
    }
}

/// The headers and the payload as they are kept.
fn kept(
    delivery: &Delivery<'_>,
    payload: &Value,
    signed: &Signatures<'_>,
) -> Result<(JsonText, Vec<u8>), WebhookOutcome> {
    let Some(stored) = kept_payload(delivery, payload) else {
        return Err(malformed("the body cannot be kept"));
    };
    let headers = StoredHeaders {
        headers: ShownHeaders(delivery),
        signature: signed,
        trace: TraceParent::current().map(|parent| parent.to_string()),
    };
    match JsonText::of(&headers) {
        Ok(headers) => Ok((headers, stored)),
        Err(_) => Err(malformed("the headers cannot be kept")),
    }
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

/// Whether anything listens at an address: a tool that is sent events and does not only ask for them, or a trigger. What nobody
/// listens to would only fill the disk.
fn listens(snapshot: &ManifestSnapshot, address: ToolAddress<'_>) -> bool {
    let mut tools = snapshot.named(address);
    tools.any(|compiled| compiled.is_sent_events()) || snapshot.has_trigger(address)
}

/// The namespaces that hear of what is posted to an address without one: empty for all of them, `None` where nothing says which.
fn meant(
    snapshot: &ManifestSnapshot,
    address: ToolAddress<'_>,
    signed: &Signatures<'_>,
) -> Option<Vec<String>> {
    let is_for_all = signed.is_verified_by_operator() || snapshot.namespaces_at(address).len() <= 1;
    let meant = if is_for_all {
        vec![String::new()]
    } else {
        signed.verified_in().into_iter().collect()
    };
    Some(meant).filter(|meant| !meant.is_empty())
}

/// Whether somebody is told what is posted to the address of a tool itself: an event that is a webhook, or a trigger.
fn takes_webhooks(snapshot: &ManifestSnapshot, address: ToolAddress<'_>) -> bool {
    let is_webhook = |event: &ToolEvent| matches!(event.receive, Receive::Webhook(_));
    let mut tools = snapshot.named(address);
    tools.any(|compiled| compiled.tool.events.iter().any(is_webhook))
        || snapshot.has_trigger(address)
}
