//! Exchanges: a request and its whole response, within one time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, StatusCode};
use reqwest::Url;

use crate::client::{Client, ClientError, broken, failure};

/// A whole response.
#[derive(Debug, Clone)]
pub struct Whole {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
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
    ) -> Result<Whole, ClientError> {
        self.check_literal(url)?;
        let request = self.inner.request(method, url.clone());
        let request = request.headers(headers).body(body);
        let exchanging = async {
            let response = request.send().await;
            let response = response.map_err(|error| failure(&error, url.as_str()))?;
            self.read(response).await
        };
        let exchanged = self.timers.within(time, exchanging).await;
        exchanged.unwrap_or(Err(ClientError::TooSlow))
    }

    async fn read(&self, mut response: reqwest::Response) -> Result<Whole, ClientError> {
        let limit = self.limits.max_message_bytes;
        let too_large = ClientError::TooLarge {
            limit: limit as u64,
        };
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        // What says that it is too large need not be read to be refused.
        let announced = headers.get(CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > limit as u64) {
            return Err(too_large);
        }
        let mut next = async || response.chunk().await.map_err(|error| broken(&error));
        // Most bodies come in one piece, which is handed on as it is.
        let mut body = next().await?.unwrap_or_default();
        if body.len() > limit {
            return Err(too_large);
        }
        if let Some(second) = next().await? {
            let mut pieces = BytesMut::from(body);
            let mut piece = Some(second);
            while let Some(more) = piece {
                if pieces.len() + more.len() > limit {
                    return Err(too_large);
                }
                pieces.extend_from_slice(&more);
                piece = next().await?;
            }
            body = pieces.freeze();
        }
        Ok(Whole {
            status,
            headers,
            body,
        })
    }
}
