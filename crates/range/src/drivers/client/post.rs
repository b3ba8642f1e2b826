//! Posting a message the way a phase asks for it: late, slowly, padded, or cut in the middle.

use std::time::Duration;

use futures_util::stream;
use proofhouse_wire::client::{Client, ClientError, StreamedResponse};
use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method};

use crate::actor::ActorContext;
use crate::delivery::DeliveryModifiers;
use crate::driver::{ActorError, ActorErrorKind};

/// A slow body comes in pieces of so many bytes, and in at most so many pieces.
const PIECE_BYTES: usize = 16;
const MAX_PIECES: usize = 1_000;

/// Posts to one URL.
#[derive(Debug, Clone)]
pub(crate) struct Poster {
    client: Client,
    url: String,
    /// Headers that the operator wants on every request.
    own: HeaderMap,
}

impl Poster {
    /// Makes sure that somebody listens at the URL.
    pub(crate) async fn connect(context: &ActorContext, url: &str) -> Result<Self, ActorError> {
        let unreachable = |error: ClientError| {
            let kind = match error {
                ClientError::Url { .. } => ActorErrorKind::Endpoint,
                _ => ActorErrorKind::Unreachable,
            };
            context.error(kind, error.to_string())
        };
        let client = Client::new(context.limits().clone()).map_err(unreachable)?;
        client.reach(url).await.map_err(unreachable)?;
        let mut own = HeaderMap::new();
        for (name, value) in context.headers() {
            if !add(&mut own, name, value) {
                context.warn(&format!("the header `{name}` cannot be sent"));
            }
        }
        Ok(Self {
            client,
            url: url.to_owned(),
            own,
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The headers of a request, the operator's included. What HTTP does not allow is left out.
    pub(crate) fn headers<'h>(
        &self,
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    ) -> HeaderMap {
        let mut map = self.own.clone();
        for (name, value) in headers {
            add(&mut map, name, value);
        }
        map
    }

    /// Posts a text that was [shaped](DeliveryModifiers::shape) already.
    pub(crate) async fn post(
        &self,
        delivery: &DeliveryModifiers,
        headers: HeaderMap,
        text: String,
    ) -> Result<StreamedResponse, ClientError> {
        if let Some(delay) = delivery.delay {
            tokio::time::sleep(delay).await;
        }
        if delivery.slow_stream.is_none() && !delivery.abrupt_close {
            let sending = self
                .client
                .send(Method::POST, &self.url, headers, text.into());
            return sending.await;
        }
        let pause = delivery.slow_stream.unwrap_or_default();
        let pieces = pieces(text.into_bytes(), delivery);
        let cut = delivery.abrupt_close;
        let body = stream::unfold(
            (pieces.into_iter(), true),
            move |(mut left, first)| async move {
                if !first {
                    tokio::time::sleep(pause).await;
                }
                match left.next() {
                    Some(piece) => Some((Ok(Bytes::from(piece)), (left, false))),
                    None if cut => {
                        // What was written must be on its way before the connection is cut.
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        Some((Err(std::io::Error::other("cut on purpose")), (left, false)))
                    }
                    None => None,
                }
            },
        );
        let sending = self
            .client
            .send_pieces(Method::POST, &self.url, headers, Box::pin(body));
        sending.await
    }

    /// A request without a body.
    pub(crate) async fn bare(
        &self,
        method: Method,
        headers: HeaderMap,
    ) -> Result<StreamedResponse, ClientError> {
        self.client
            .send(method, &self.url, headers, Bytes::new())
            .await
    }
}

fn add(map: &mut HeaderMap, name: &str, value: &str) -> bool {
    let name = HeaderName::from_bytes(name.as_bytes());
    let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) else {
        return false;
    };
    map.insert(name, value);
    true
}

/// The pieces a text is sent in; only the first half of it when the connection is to be cut.
pub(crate) fn pieces(mut text: Vec<u8>, delivery: &DeliveryModifiers) -> Vec<Vec<u8>> {
    if delivery.abrupt_close {
        text.truncate(text.len() / 2);
    }
    if delivery.slow_stream.is_none() {
        return vec![text];
    }
    let rest = text.split_off(text.len().min(PIECE_BYTES * (MAX_PIECES - 1)));
    let mut pieces: Vec<Vec<u8>> = text.chunks(PIECE_BYTES).map(<[u8]>::to_vec).collect();
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pieces_are_few_and_nothing_is_lost() {
        let slow = DeliveryModifiers::from_value(&json!({"slow_stream": "1ms"})).unwrap();
        for length in [0, 1, 16, 17, 15_984, 15_985, 100_000] {
            let text: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let pieces = pieces(text.clone(), &slow);
            assert!(pieces.len() <= MAX_PIECES);
            assert_eq!(pieces.concat(), text);
        }
        let cut = DeliveryModifiers::from_value(&json!({"abrupt_close": true})).unwrap();
        assert_eq!(pieces(b"abcd".to_vec(), &cut), [b"ab".to_vec()]);
    }
}
