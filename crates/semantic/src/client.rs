//! Asks the endpoint over HTTP: bounded in time, size and number, and careful with the key.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use proofhouse_wire::client::{Client as HttpClient, ClientError, Roots, StreamedResponse};
use proofhouse_wire::gate::{GateFuture, RequestGate};
use proofhouse_wire::retry::{Jitter, RetryAfter, RetryCause, RetryOn, RetryPolicy};
use proofhouse_wire::sync::lock;
use proofhouse_wire::{Blocking, Bytes, HeaderMap, HeaderValue, Method, WireLimits};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{Config, ConfigError};
use crate::failure::SemanticFailure;

/// The first wait before a retry, doubled each time, when the endpoint names none.
const BASE_WAIT: Duration = Duration::from_millis(250);
/// What a question is repeated after.
const RETRY_ON: RetryOn = RetryOn::ServerError;
/// A longer time limit than this is no limit.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// How much of an answer that says no is read.
const MAX_REFUSAL_BYTES: usize = 4096;
/// How much of it is shown.
const MAX_REFUSAL_CHARACTERS: usize = 200;

/// An endpoint that answers questions in JSON.
#[derive(Debug)]
pub(crate) struct ModelClient {
    config: Config,
    http: HttpClient,
    /// The traits of semantic evaluation block, so this does too.
    blocking: Blocking,
    host: String,
    headers: HeaderMap,
    requests: AtomicU64,
    trouble: Mutex<Trouble>,
}

/// How the endpoint failed lately.
#[derive(Debug, Default)]
struct Trouble {
    in_a_row: u32,
    last: String,
}

/// A failed attempt.
struct FailedAttempt {
    failure: SemanticFailure,
    /// What it means for another attempt.
    cause: RetryCause,
}

impl From<SemanticFailure> for FailedAttempt {
    fn from(failure: SemanticFailure) -> Self {
        Self {
            failure,
            cause: RetryCause::Final,
        }
    }
}

impl ModelClient {
    pub(crate) fn new(config: Config) -> Result<Self, ConfigError> {
        let host = config.check()?;
        let json = HeaderValue::from_static("application/json");
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
        if let Some(key) = &config.api_key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
                .map_err(|_| ConfigError::BadKey)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        // The times of a request are those that one question has left, so only connecting has its own.
        let limits = WireLimits {
            max_message_bytes: usize::try_from(config.max_response_bytes).unwrap_or(usize::MAX),
            connect_timeout: config.connect_timeout,
            response_timeout: MAX_TIMEOUT,
            idle_timeout: MAX_TIMEOUT,
            ..WireLimits::default()
        };
        let setup = |error: ClientError| ConfigError::Setup(error.to_string());
        // It follows no redirect, which could lead the text and the key to somebody else.
        let http = HttpClient::proxied(limits, config.proxies.clone(), Roots::Bundled);
        Ok(Self {
            config,
            http: http.map_err(setup)?,
            blocking: Blocking::new().map_err(setup)?,
            host,
            headers,
            requests: AtomicU64::new(0),
            trouble: Mutex::default(),
        })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// How many requests were made.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
            .load(Ordering::Relaxed)
            .min(self.config.max_requests)
    }

    /// Posts a question to `path` below the base address and reads the answer.
    pub(crate) fn ask<A: DeserializeOwned>(
        &self,
        path: &str,
        question: &Value,
    ) -> Result<A, SemanticFailure> {
        {
            let trouble = self.trouble();
            if trouble.in_a_row >= self.config.max_failures {
                return Err(SemanticFailure::GivenUp {
                    times: trouble.in_a_row,
                    last: trouble.last.clone(),
                });
            }
        }
        let answer = self.ask_until_answered(path, &Bytes::from(question.to_string()));
        let mut trouble = self.trouble();
        match &answer {
            Err(failure) if is_trouble(failure) => {
                trouble.in_a_row = trouble.in_a_row.saturating_add(1);
                trouble.last = failure.to_string();
            }
            Err(SemanticFailure::RequestsSpent { .. }) => {}
            _ => trouble.in_a_row = 0,
        }
        drop(trouble);
        serde_json::from_slice(&answer?).map_err(|error| {
            // The message of a parse error may quote the answer.
            SemanticFailure::bad_answer(self.presentable(&error.to_string()))
        })
    }

    fn ask_until_answered(&self, path: &str, question: &Bytes) -> Result<Bytes, SemanticFailure> {
        let mut deadline = Instant::now() + self.config.timeout.min(MAX_TIMEOUT);
        let policy = self.policy();
        let mut attempt = 1;
        loop {
            // Others are the reason for this wait, so it is not the endpoint's time.
            deadline += self.pass(|gate| gate.enter());
            let refused = match self.attempt(path, question, deadline) {
                Ok(answer) => return Ok(answer),
                Err(refused) => refused,
            };
            if let Some(pause) = refused.cause.pause(policy.back_off(attempt, 1.0)) {
                deadline += self.pass(move |gate| gate.pause(pause));
            }
            // One question is asked at a time, so its waits need no chance to spread them.
            let wait = policy.next_wait(RETRY_ON, refused.cause, attempt, 1.0);
            let remaining = deadline.saturating_duration_since(Instant::now());
            let Some(wait) = wait.filter(|wait| *wait < remaining) else {
                return Err(refused.failure);
            };
            thread::sleep(wait);
            attempt += 1;
        }
    }

    /// Does something at the gate, if there is one, and says how long it took.
    fn pass(
        &self,
        step: impl for<'g> Fn(&'g dyn RequestGate) -> GateFuture<'g> + Send + 'static,
    ) -> Duration {
        let Some(gate) = self.config.gate.clone() else {
            return Duration::ZERO;
        };
        let begun = Instant::now();
        let passing = async move {
            step(gate.as_ref()).await;
            Ok(())
        };
        // Nobody waits for longer than a day.
        let _ = self.blocking.wait(MAX_TIMEOUT, passing);
        begun.elapsed()
    }

    fn policy(&self) -> RetryPolicy {
        RetryPolicy {
            attempts: self.config.retries.saturating_add(1),
            base: BASE_WAIT,
            cap: self.config.max_wait,
            max_retry_after: self.config.max_wait,
            jitter: Jitter::None,
        }
    }

    fn attempt(
        &self,
        path: &str,
        question: &Bytes,
        deadline: Instant,
    ) -> Result<Bytes, FailedAttempt> {
        let remaining = || deadline.saturating_duration_since(Instant::now());
        if remaining().is_zero() {
            return Err(self.timeout().into());
        }
        let limit = self.config.max_requests;
        if self.requests.fetch_add(1, Ordering::Relaxed) >= limit {
            return Err(SemanticFailure::RequestsSpent { limit }.into());
        }
        let url = format!("{}{path}", self.config.base_url.trim_end_matches('/'));
        let (http, headers, body) = (self.http.clone(), self.headers.clone(), question.clone());
        let asking = async move { http.send(Method::POST, &url, headers, body).await };
        let response = self.blocking.wait(remaining(), asking);
        let response = response.map_err(|error| self.broken(error))?;
        let status = response.status;
        if status.is_success() {
            let answer = self.blocking.wait(remaining(), response.bytes());
            return Ok(answer.map_err(|error| self.broken(error))?);
        }
        let code = status.as_u16();
        // The other form, a date, is left aside: it depends on two clocks.
        let retry_after = RetryAfter::of(&response.headers).and_then(RetryAfter::delay);
        let cause = RetryCause::Status { code, retry_after };
        let words = self.refusal(response, remaining());
        let wish = match retry_after.filter(|_| RETRY_ON.covers(cause)) {
            Some(wait) => format!("; it wants to be asked again in {} s", wait.as_secs()),
            None => String::new(),
        };
        Err(FailedAttempt {
            failure: SemanticFailure::Status {
                host: self.host.clone(),
                status: code,
                words: words + &wish,
            },
            cause,
        })
    }

    /// What a refusal says, with a separator before it; or nothing.
    fn refusal(&self, response: StreamedResponse, time: Duration) -> String {
        if response.status.is_redirection() {
            let place = response.headers.get(LOCATION);
            let place = place
                .and_then(|place| place.to_str().ok())
                .unwrap_or("nowhere");
            return format!(
                ": it points to {}, which is not followed",
                self.presentable(place)
            );
        }
        // A refusal is one, whether or not all of its words can be read.
        let reading = async move { Ok(response.beginning(MAX_REFUSAL_BYTES, time).await) };
        let start = self.blocking.wait(MAX_TIMEOUT, reading).unwrap_or_default();
        let text = match serde_json::from_slice::<Value>(&start) {
            Ok(answer) => {
                let error = answer.get("error").unwrap_or(&answer);
                let message = error.get("message").unwrap_or(error);
                match message {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                }
            }
            Err(_) => String::from_utf8_lossy(&start).into_owned(),
        };
        let text = self.presentable(text.trim());
        if text.is_empty() {
            text
        } else {
            format!(": {text}")
        }
    }

    /// A text of the endpoint as it may be shown: without the key, on one line, short.
    fn presentable(&self, text: &str) -> String {
        let text = match &self.config.api_key {
            Some(key) => key.mask(text),
            None => text.to_owned(),
        };
        let mut short: String = text
            .chars()
            .take(MAX_REFUSAL_CHARACTERS)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        if short.len() < text.len() {
            short.push('…');
        }
        short
    }

    fn broken(&self, error: ClientError) -> SemanticFailure {
        let unreachable = |reason: &str| SemanticFailure::Unreachable {
            host: self.host.clone(),
            reason: self.presentable(reason),
        };
        match error {
            ClientError::Connect { timed_out, .. } if timed_out => SemanticFailure::Timeout {
                host: self.host.clone(),
                limit: self.config.connect_timeout.min(self.config.timeout),
            },
            ClientError::TooSlow => self.timeout(),
            ClientError::TooLarge { limit } => SemanticFailure::AnswerTooLarge { limit },
            // The host is named beside the reason, so its URL need not be.
            ClientError::Connect { reason, .. }
            | ClientError::Broken(reason)
            | ClientError::Url { reason, .. }
            | ClientError::Denied(reason)
            | ClientError::Setup(reason) => unreachable(&reason),
            error @ (ClientError::EventTooLarge(_) | ClientError::TooManyEvents { .. }) => {
                unreachable(&error.to_string())
            }
        }
    }

    fn timeout(&self) -> SemanticFailure {
        SemanticFailure::Timeout {
            host: self.host.clone(),
            limit: self.config.timeout,
        }
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        lock(&self.trouble)
    }
}

/// Whether a failure is the endpoint's own. What a single text may bring about does not count: a
/// hostile text could otherwise end the evaluation of all others.
fn is_trouble(failure: &SemanticFailure) -> bool {
    match failure {
        SemanticFailure::Unreachable { .. } | SemanticFailure::Timeout { .. } => true,
        SemanticFailure::Status { status, .. } => {
            matches!(status, 300..=399 | 401 | 403 | 404 | 429 | 500..)
        }
        SemanticFailure::TextTooLong { .. }
        | SemanticFailure::RequestsSpent { .. }
        | SemanticFailure::GivenUp { .. }
        | SemanticFailure::AnswerTooLarge { .. }
        | SemanticFailure::BadAnswer { .. }
        | SemanticFailure::Calibration { .. } => false,
    }
}
