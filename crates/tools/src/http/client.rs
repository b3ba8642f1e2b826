//! The HTTP client of runtimes: guarded, bounded, and careful about what it repeats.

use std::borrow::Cow;
use std::sync::Arc;

use http::header::ACCEPT_ENCODING;
use proofhouse_wire::client::{Client, ClientError};
use proofhouse_wire::encoding::{self, DecodeError};
use proofhouse_wire::retry::{RetryOn, chance};
use proofhouse_wire::{Bytes, EgressPolicy, HeaderValue, HttpResponse, Method};
use tokio::time::Instant;
use url::Url;

use super::request::ToolRequest;
use crate::runtime::{ActionError, ActionFailure, ToolLimits};

/// How many redirects of a GET are followed.
const MAX_REDIRECTS: usize = 3;

/// Sends the requests of runtimes.
#[derive(Debug)]
pub struct HttpClient {
    client: Client,
    limits: ToolLimits,
}

impl HttpClient {
    /// Makes a client.
    ///
    /// # Errors
    ///
    /// Returns an error when TLS cannot be set up.
    pub fn new(limits: &ToolLimits, egress: EgressPolicy) -> Result<Self, ActionError> {
        let wire = proofhouse_wire::WireLimits {
            max_message_bytes: limits.max_response_bytes,
            connect_timeout: limits.connect,
            response_timeout: limits.http,
            idle_timeout: limits.http,
            ..proofhouse_wire::WireLimits::default()
        };
        let client = Client::guarded(wire, Arc::new(egress))
            .map_err(|error| ActionError::new(ActionFailure::Manifest, error.to_string()))?;
        Ok(Self {
            client,
            limits: limits.clone(),
        })
    }

    /// Sends a request and reads the whole response.
    ///
    /// A request that was not sent is repeated; so is one that may be sent twice, when the connection
    /// broke or the server asks for patience. A request that may have had its effect is never repeated.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no response. A status is never one.
    pub async fn send(&self, request: &ToolRequest) -> Result<HttpResponse, ActionError> {
        self.send_as(request, request.is_idempotent()).await
    }

    /// The same for a request that may be sent twice, whatever its method says.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no response. A status is never one.
    pub async fn send_repeatable(
        &self,
        request: &ToolRequest,
    ) -> Result<HttpResponse, ActionError> {
        self.send_as(request, true).await
    }

    async fn send_as(
        &self,
        request: &ToolRequest,
        repeatable: bool,
    ) -> Result<HttpResponse, ActionError> {
        let on = if repeatable {
            RetryOn::Busy
        } else {
            RetryOn::NotSent
        };
        let mut attempt = 1;
        // Whoever cannot connect is waited for; its circuit says when it is worth another attempt.
        let patience = Instant::now() + self.limits.outage;
        loop {
            let pass = self.client.circuits().enter(request.url.expose(), patience);
            let pass = pass
                .await
                .map_err(|open| self.unreachable(request, &open.reason))?;
            let followed = self.follow(request).await;
            pass.note(&followed);
            if let Err(ClientError::Connect { .. }) = &followed
                && attempt >= self.limits.retry.attempts
                && Instant::now() < patience
            {
                attempt += 1;
                continue;
            }
            let cause = match &followed {
                Ok(answer) => answer.retry_cause(),
                Err(error) => error.into(),
            };
            let Some(wait) = self.limits.retry.next_wait(on, cause, attempt, chance()) else {
                return match followed {
                    Ok(answer) => self.decoded(answer, request),
                    Err(error) => Err(self.failure(&error, request)),
                };
            };
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    /// The answer without its content codings. The limit counts what comes out, so a small body cannot
    /// grow large.
    fn decoded(
        &self,
        mut answer: HttpResponse,
        request: &ToolRequest,
    ) -> Result<HttpResponse, ActionError> {
        let limit = self.limits.max_response_bytes;
        match encoding::decode(&mut answer, limit) {
            Ok(()) => Ok(answer),
            // That the request failed matters more than how that was told.
            Err(_) if !answer.status.is_success() => {
                answer.body = Bytes::new();
                Ok(answer)
            }
            Err(DecodeError::TooLarge) => {
                let limit = limit as u64;
                Err(self.failure(&ClientError::TooLarge { limit }, request))
            }
            Err(DecodeError::Broken(reason)) => {
                let message = format!("the response cannot be decompressed: {reason}");
                let mut failed = ActionError::new(ActionFailure::Response, message);
                failed.outcome_unknown = !request.is_idempotent();
                Err(failed)
            }
        }
    }

    /// Sends once, and follows the redirects of a GET within its origin.
    async fn follow(&self, request: &ToolRequest) -> Result<HttpResponse, ClientError> {
        let mut url = Cow::Borrowed(request.url.expose());
        let mut followed = 0;
        loop {
            let answer = self.once(request, &url).await?;
            let target = answer
                .header("location")
                .and_then(|target| url.join(target).ok());
            match target {
                Some(target)
                    if request.method == Method::GET
                        && answer.status.is_redirection()
                        && followed < MAX_REDIRECTS
                        && target.origin() == url.origin() =>
                {
                    url = Cow::Owned(target);
                    followed += 1;
                }
                _ => return Ok(answer),
            }
        }
    }

    async fn once(&self, request: &ToolRequest, url: &Url) -> Result<HttpResponse, ClientError> {
        let mut headers = request.headers.expose().clone();
        // Without this header, a server may choose any coding (RFC 9110, section 12.5.3).
        headers
            .entry(ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("identity"));
        let (method, body) = (request.method.clone(), request.body.expose().clone());
        let exchanging = self
            .client
            .exchange(method, url, headers, body, self.limits.http);
        exchanging.await
    }

    /// The error of a host that nobody answers at.
    fn unreachable(&self, request: &ToolRequest, reason: &str) -> ActionError {
        let host = request.url.expose().host_str().unwrap_or("the host");
        ActionError::unreachable(host, reason, self.limits.outage)
    }

    /// What an error of the connection means for the task.
    fn failure(&self, error: &ClientError, request: &ToolRequest) -> ActionError {
        let host = request.url.expose().host_str().unwrap_or("the host");
        ActionError::of_client(error, host, self.limits.outage, request.is_idempotent())
    }
}
