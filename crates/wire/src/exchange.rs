//! Exchanges: a request and its whole response, within one time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, StatusCode};
use http_body::Body as _;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use url::Url;

use crate::client::{Client, ClientError, piece_of};
use crate::retry::{RetryAfter, RetryCause};

/// A whole response.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl HttpResponse {
    /// A header's text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What its status means for another attempt, with the seconds that the server asks to wait. A date
    /// is left aside: it depends on two clocks.
    #[must_use]
    pub fn retry_cause(&self) -> RetryCause {
        RetryCause::Status {
            code: self.status.as_u16(),
            retry_after: RetryAfter::of(&self.headers).and_then(RetryAfter::delay),
        }
    }
}

impl Client {
    /// Sends a request and reads the whole response.
    ///
    /// Of the limits, only the size of a message counts; `time` is from the start to the last byte.
    ///
    /// # Errors
    ///
    /// Returns an error when there is no whole response in time, or when it is too large.
    pub async fn exchange(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        time: Duration,
    ) -> Result<HttpResponse, ClientError> {
        let exchanging = async {
            let body = Either::Left(Full::new(body));
            let response = self.respond(method, url, headers, body).await?;
            self.read(response).await
        };
        let exchanged = self.timers.within(time, exchanging).await;
        exchanged.unwrap_or(Err(ClientError::TooSlow))
    }

    async fn read(&self, response: http::Response<Incoming>) -> Result<HttpResponse, ClientError> {
        let limit = self.limits.max_message_bytes;
        let too_large = ClientError::TooLarge {
            limit: limit as u64,
        };
        let (parts, mut incoming) = response.into_parts();
        let (status, headers) = (parts.status, parts.headers);
        // What says that it is too large need not be read to be refused.
        let announced = headers.get(CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > limit as u64) {
            return Err(too_large);
        }
        // Most bodies come in one piece, which is handed on as it is.
        let mut body = piece_of(&mut incoming).await?.unwrap_or_default();
        if body.len() > limit {
            return Err(too_large);
        }
        if !incoming.is_end_stream() {
            let mut pieces = BytesMut::from(body);
            while let Some(more) = piece_of(&mut incoming).await? {
                if pieces.len() + more.len() > limit {
                    return Err(too_large);
                }
                pieces.extend_from_slice(&more);
            }
            body = pieces.freeze();
        }
        Ok(HttpResponse {
            status,
            headers,
            body,
        })
    }
}
