//! The link to a server over the transport of 2024: one stream of events from the server, and an address
//! that it names for what is sent to it.

use std::sync::Arc;

use proofhouse_wire::client::SseEvents;
use proofhouse_wire::{Bytes, HeaderMap, HeaderValue, Method};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use url::Url;

use super::endpoint::Endpoint;
use super::failure::LinkError;
use crate::runtime::ActionFailure;

/// How many events may come before the one that names the address.
const MAX_EVENTS_BEFORE_ADDRESS: usize = 100;

/// The client's end of the stream.
pub(super) struct LegacySse {
    endpoint: Endpoint,
    /// Where messages are sent to.
    messages: Arc<Url>,
    events: Option<SseEvents>,
}

impl LegacySse {
    /// Opens the stream and waits for the address.
    pub(super) async fn open(endpoint: Endpoint) -> Result<Self, LinkError> {
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("text/event-stream"));
        let url = endpoint.url().clone();
        let response = endpoint
            .send(Method::GET, &url, &headers, Bytes::new())
            .await?;
        if !response.status.is_success() {
            let status = response.status.as_u16();
            let body = response.bytes().await.unwrap_or_default();
            return Err(endpoint.status_error(status, &body));
        }
        if !response.is_event_stream() {
            return Err(LinkError::new(
                ActionFailure::Response,
                "the server offers neither Streamable HTTP nor a stream of events",
            ));
        }
        let mut events = response.events();
        for _ in 0..MAX_EVENTS_BEFORE_ADDRESS {
            let event = events.next().await;
            let Some(event) = event.map_err(|error| endpoint.failure(&error))? else {
                break;
            };
            if event.event.as_deref() == Some("endpoint") {
                let messages = address(&url, &event.data)?;
                return Ok(Self {
                    endpoint,
                    messages: Arc::new(messages),
                    events: Some(events),
                });
            }
        }
        Err(LinkError::new(
            ActionFailure::Response,
            "the server names no address for messages",
        ))
    }
}

/// The address that a server named, which must be one of its own: tokens are sent to it.
fn address(url: &Url, named: &str) -> Result<Url, LinkError> {
    url.join(named.trim())
        .ok()
        .filter(|found| found.origin() == url.origin())
        .ok_or_else(|| {
            LinkError::new(
                ActionFailure::Response,
                "the server names an address for messages that is not its own",
            )
        })
}

impl Transport<RoleClient> for LegacySse {
    type Error = LinkError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), LinkError>> + Send + 'static {
        let (endpoint, url) = (self.endpoint.clone(), Arc::clone(&self.messages));
        async move {
            let body = serde_json::to_vec(&item)
                .map_err(|error| LinkError::new(ActionFailure::Arguments, error.to_string()))?;
            let mut headers = HeaderMap::new();
            headers.insert("content-type", HeaderValue::from_static("application/json"));
            let response = endpoint
                .send(Method::POST, &url, &headers, Bytes::from(body))
                .await?;
            if response.status.is_success() {
                return Ok(());
            }
            let status = response.status.as_u16();
            let body = response.bytes().await.unwrap_or_default();
            Err(endpoint.status_error(status, &body))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = match self.events.as_mut()?.next().await {
                Ok(Some(event)) => event,
                Ok(None) | Err(_) => {
                    self.events = None;
                    return None;
                }
            };
            if let Some(message) = self.endpoint.sieve().admit(event.data.as_bytes()) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), LinkError> {
        self.events = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_elsewhere_is_refused() {
        let url = Url::parse("http://127.0.0.1:8000/sse").unwrap();
        for own in ["/message?id=1", "message", "http://127.0.0.1:8000/x"] {
            assert!(address(&url, own).is_ok(), "{own}");
        }
        for other in [
            "http://127.0.0.1:8001/x",
            "//example.com/x",
            "https://127.0.0.1:8000/",
            "file:///etc",
        ] {
            assert!(address(&url, other).is_err(), "{other}");
        }
    }
}
