//! Posting a message the way a phase asks for it: late, slowly, padded, or cut in the middle.

use std::time::Duration;

use futures_util::stream;
use proofhouse_mcp_auth::{Authorizer, SecretText};
use proofhouse_wire::client::{Client, ClientError, StreamedResponse};
use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method, Url};

use crate::actor::ActorContext;
use crate::delivery::DeliveryModifiers;
use crate::driver::{ActorError, ActorErrorKind};

/// A slow body comes in pieces of so many bytes, and in at most so many pieces.
const PIECE_BYTES: usize = 16;
const MAX_PIECES: usize = 1_000;

/// Posts to one URL.
#[derive(Clone)]
pub(crate) struct Poster {
    client: Client,
    url: String,
    /// Headers that the operator wants on every request.
    own: HeaderMap,
    /// Gets tokens, where the operator wants that.
    authorizer: Option<Authorizer>,
    context: ActorContext,
}

/// How often a message is posted again because another token was got for it.
const MAX_CHALLENGES: usize = 3;

impl Poster {
    /// Makes sure that somebody listens at the URL.
    pub(crate) async fn connect(context: &ActorContext, url: &str) -> Result<Self, ActorError> {
        let unreachable = |error: ClientError| {
            let kind = match error {
                ClientError::Url { .. } => ActorErrorKind::Endpoint,
                ClientError::Setup(_)
                | ClientError::Connect { .. }
                | ClientError::Denied(_)
                | ClientError::TooSlow
                | ClientError::Broken(_)
                | ClientError::TooLarge { .. }
                | ClientError::EventTooLarge(_)
                | ClientError::TooManyEvents { .. } => ActorErrorKind::Unreachable,
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
            authorizer: None,
            context: context.clone(),
        })
    }

    /// The same for an MCP server that may want a token.
    pub(crate) fn authorized(mut self) -> Self {
        if let Some(authorization) = self.context.authorization()
            && let Ok(url) = Url::parse(&self.url)
        {
            self.authorizer = Some(authorization.authorizer(&self.client, &url));
        }
        self
    }

    /// Adds the token that there is.
    async fn token(&self, headers: &mut HeaderMap) -> Option<SecretText> {
        let token = match self.authorizer.as_ref()?.token().await {
            Ok(token) => token?,
            Err(error) => {
                self.context.warn(&format!("authorization: {error}"));
                return None;
            }
        };
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose())).ok()?;
        value.set_sensitive(true);
        headers.insert("authorization", value);
        Some(token)
    }

    /// Shows a response to who gets tokens; whether the request is worth sending again.
    async fn is_challenged(&self, response: &StreamedResponse, used: Option<&SecretText>) -> bool {
        let Some(authorizer) = &self.authorizer else {
            return false;
        };
        let status = response.status.as_u16();
        if !matches!(status, 401 | 403) {
            if used.is_some() {
                authorizer.accepted();
            }
            return false;
        }
        let challenged = authorizer.challenged(status, &response.headers, used).await;
        challenged.unwrap_or_else(|error| {
            self.context.warn(&format!("authorization: {error}"));
            false
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
            return self.send(Method::POST, headers, text.into()).await;
        }
        // What is sent strangely is sent once; a token that is known goes with it.
        let mut headers = headers;
        self.token(&mut headers).await;
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
        self.send(method, headers, Bytes::new()).await
    }

    /// Sends a request, and again with another token where the server wants one.
    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<StreamedResponse, ClientError> {
        let mut challenges = 0;
        loop {
            let mut headers = headers.clone();
            let token = self.token(&mut headers).await;
            let sending = self
                .client
                .send(method.clone(), &self.url, headers, body.clone());
            let response = sending.await?;
            if challenges >= MAX_CHALLENGES || !self.is_challenged(&response, token.as_ref()).await
            {
                return Ok(response);
            }
            challenges += 1;
        }
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
