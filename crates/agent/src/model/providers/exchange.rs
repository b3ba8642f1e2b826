//! One exchange with a provider: sent with patience, repeated where that helps, errors without secrets.

use std::sync::Arc;

use jiff::Timestamp;
use proofhouse_manifest::interpolate::Secrets;
use proofhouse_wire::client::{Client, ClientError, StreamedResponse};
use proofhouse_wire::gate::{RequestGate, enter};
use proofhouse_wire::retry::{RetryAfter, RetryCause, RetryOn, chance};
use proofhouse_wire::{Bytes, Method, WireLimits};
use serde_json::Value;

use super::super::{ModelConfig, ModelError, ModelErrorKind, ModelLimits, ModelOpenError, Usage};
use super::ProviderRequest;

/// How much of what a provider says about a failure is told.
const MAX_EXCERPT_CHARS: usize = 400;

/// Events of one stream. A reply of megabytes that comes word by word has fewer.
const MAX_EVENTS: u64 = 1_000_000;

/// What a request is repeated after: nobody pays for a reply that has not begun.
const RETRY_ON: RetryOn = RetryOn::Failed;

/// Sends requests to one provider.
pub(super) struct ProviderExchange {
    client: Client,
    limits: ModelLimits,
    secrets: Secrets,
    gate: Option<Arc<dyn RequestGate>>,
}

impl ProviderExchange {
    pub(super) fn new(config: &ModelConfig) -> Result<Self, ModelOpenError> {
        let limits = &config.limits;
        let wire = WireLimits {
            max_message_bytes: limits.max_bytes,
            max_stream_bytes: limits.max_bytes as u64,
            max_events: MAX_EVENTS,
            connect_timeout: limits.connect,
            response_timeout: limits.first_byte,
            idle_timeout: limits.between_chunks,
            ..WireLimits::default()
        };
        let client = match &config.guard {
            Some(guard) => Client::guarded(wire, Arc::clone(guard)),
            None => Client::new(wire),
        };
        let mut secrets = Secrets::default();
        if let Some(key) = &config.key {
            secrets.add(key.expose());
        }
        for (_, value) in config.headers.expose() {
            secrets.add(value);
        }
        Ok(Self {
            client: client.map_err(|error| ModelOpenError::Config(error.to_string()))?,
            limits: limits.clone(),
            secrets,
            gate: config.gate.clone(),
        })
    }

    pub(super) fn limits(&self) -> &ModelLimits {
        &self.limits
    }

    /// A text without the key and whatever else must not be shown.
    pub(super) fn redact(&self, text: &str) -> String {
        self.secrets.redact(text)
    }

    /// Sends until a reply begins that is not a failure, or trying again does not help.
    pub(super) async fn send(
        &self,
        outgoing: &ProviderRequest,
    ) -> Result<StreamedResponse, ModelError> {
        let retry = &self.limits.retry;
        let body = Bytes::from(outgoing.body.to_string());
        let mut attempt = 1;
        loop {
            if let Some(gate) = &self.gate {
                enter(&**gate).await;
            }
            let (error, cause) = match self.once(outgoing, body.clone()).await {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            // Everybody else waits as well, also when this request is not sent again.
            if let Some(gate) = &self.gate
                && let Some(pause) = cause.pause(retry.back_off(attempt, 1.0))
            {
                gate.pause(pause).await;
            }
            let Some(wait) = retry.next_wait(RETRY_ON, cause, attempt, chance()) else {
                return Err(error);
            };
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    /// Tells those who count what a reply took.
    pub(super) async fn used(&self, usage: Usage) {
        if let Some(gate) = &self.gate {
            gate.used(usage.prompt, usage.completion).await;
        }
    }

    /// Sends once. Beside an error stands what it means for another attempt.
    async fn once(
        &self,
        outgoing: &ProviderRequest,
        body: Bytes,
    ) -> Result<StreamedResponse, (ModelError, RetryCause)> {
        let headers = outgoing.headers.clone();
        let sent = self
            .client
            .send(Method::POST, &outgoing.url, headers, body)
            .await;
        let response = sent.map_err(|error| (self.failure(&error), RetryCause::from(&error)))?;
        if response.status.is_success() {
            return Ok(response);
        }
        let code = response.status.as_u16();
        let retry_after =
            RetryAfter::of_provider(&response.headers).map(|asked| asked.wait(Timestamp::now()));
        let cause = RetryCause::Status { code, retry_after };
        let body = response.bytes().await.unwrap_or_default();
        let said = self.redact(&excerpt(&body));
        let (kind, what) = match code {
            401 | 403 => (ModelErrorKind::Unauthorized, "does not accept the key"),
            429 => (ModelErrorKind::RateLimited, "asks for a pause"),
            _ if RETRY_ON.covers(cause) => (ModelErrorKind::Server, "failed"),
            _ => (ModelErrorKind::Rejected, "rejects the request"),
        };
        let mut message = format!("the provider {what} (HTTP {code})");
        if !said.is_empty() {
            message = format!("{message}: {said}");
        }
        let mut error = ModelError::new(kind, message);
        error.retry_after = retry_after;
        Err((error, cause))
    }

    /// What an error of the connection means. The address is named by its host alone.
    pub(super) fn failure(&self, error: &ClientError) -> ModelError {
        let (kind, message) = match error {
            ClientError::Denied(reason) => (ModelErrorKind::Denied, reason.clone()),
            ClientError::Connect { url, reason, .. } => (
                ModelErrorKind::Unreachable,
                format!("cannot connect to {}: {reason}", host(url)),
            ),
            ClientError::Url { reason, .. } => (
                ModelErrorKind::Rejected,
                format!("the base URL is no URL: {reason}"),
            ),
            ClientError::Setup(reason) => (ModelErrorKind::Rejected, reason.clone()),
            ClientError::TooSlow => (
                ModelErrorKind::Timeout,
                "the provider was silent for too long".to_owned(),
            ),
            ClientError::Broken(reason) => (
                ModelErrorKind::Cut,
                format!("the connection to the provider broke: {reason}"),
            ),
            ClientError::TooLarge { .. }
            | ClientError::EventTooLarge(_)
            | ClientError::TooManyEvents { .. } => (
                ModelErrorKind::TooLarge,
                format!("the reply is too large: {error}"),
            ),
        };
        ModelError::new(kind, self.redact(&message))
    }

    /// An error that a provider tells in the middle of a reply.
    pub(super) fn told(&self, error: &Value) -> ModelError {
        let text = super::text;
        let word = format!(
            "{} {} {}",
            text(error, "type"),
            text(error, "status"),
            text(error, "code")
        );
        let number = super::count(error, "code");
        let kind = if number == 429 || word.contains("rate_limit") || word.contains("EXHAUSTED") {
            ModelErrorKind::RateLimited
        } else if matches!(number, 401 | 403)
            || word.contains("authentication")
            || word.contains("api_key")
            || word.contains("permission")
        {
            ModelErrorKind::Unauthorized
        } else if (400..500).contains(&number) || word.contains("invalid_request") {
            ModelErrorKind::Rejected
        } else {
            ModelErrorKind::Server
        };
        let said = self.redact(&excerpt(error.to_string().as_bytes()));
        ModelError::new(
            kind,
            format!("the provider failed in the middle of the reply: {said}"),
        )
    }
}

fn host(url: &str) -> String {
    let parsed = url::Url::parse(url).ok();
    let host = parsed.as_ref().and_then(url::Url::host_str);
    host.unwrap_or("the provider").to_owned()
}

/// What a provider says about a failure, in one line.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(64 << 10)]);
    let parsed = serde_json::from_str::<Value>(&text).unwrap_or_default();
    let inner = match &parsed {
        Value::Array(list) => list.first().unwrap_or(&Value::Null),
        other => other,
    };
    let error = inner.get("error").unwrap_or(inner);
    let said = match error {
        Value::String(said) => said.clone(),
        Value::Null => text.into_owned(),
        error => match error.get("message").and_then(Value::as_str) {
            Some(said) => said.to_owned(),
            None => error.to_string(),
        },
    };
    let mut line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(MAX_EXCERPT_CHARS) {
        line.truncate(cut);
        line.push('…');
    }
    line
}
