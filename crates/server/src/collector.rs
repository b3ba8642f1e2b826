//! The way to an OpenTelemetry collector: the exporter's requests over our own HTTP client.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{HttpClient, HttpError, Request, Response, ResponseBodyTooLarge};
use proofhouse_wire::client::{Client, ClientError, Roots};
use proofhouse_wire::{Blocking, Bytes, ProxySettings, Url, WireLimits};

/// The most that a collector may answer, as the exporter's own clients have it.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// Sends what the exporter has, on a thread of its own: the exporter brings no runtime along.
#[derive(Debug)]
pub struct OtlpCollector {
    client: Client,
    blocking: Blocking,
    time: Duration,
}

impl OtlpCollector {
    /// `time` is for a whole request. The machine's own certificates count: a collector is often inside.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no client or no thread for it.
    pub fn new(time: Duration, proxies: ProxySettings) -> Result<Self, ClientError> {
        let limits = WireLimits {
            max_message_bytes: MAX_ANSWER_BYTES,
            connect_timeout: time,
            ..WireLimits::default()
        };
        Ok(Self {
            client: Client::proxied(limits, proxies, Roots::System)?,
            blocking: Blocking::new()?,
            time,
        })
    }
}

#[async_trait]
impl HttpClient for OtlpCollector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string())?;
        let (client, time) = (self.client.clone(), self.time);
        let sending = async move {
            let sent = client.exchange(head.method, &url, head.headers, body, time);
            sent.await
        };
        // The exporter calls this on the thread that it exports on, and nobody else waits there.
        let answer = match self.blocking.wait(time, sending) {
            Err(ClientError::TooLarge { .. }) => return Err(ResponseBodyTooLarge::new().into()),
            answer => answer?,
        };
        let mut response = Response::new(answer.body);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}
