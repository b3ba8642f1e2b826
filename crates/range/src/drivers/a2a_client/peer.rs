//! Finding out where the subject listens and which generation it speaks.

use proofhouse_protocol::a2a::{A2aVersion, VERSION_HEADER, card};
use proofhouse_protocol::{ACCEPT_JSON_OR_EVENTS, JSON};
use proofhouse_wire::client::{Client, ClientError};
use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::Value;

use crate::actor::ActorContext;
use crate::drivers::a2a::url;

/// Where requests go, and in which generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct A2aPeer {
    pub(super) url: String,
    pub(super) generation: A2aVersion,
}

/// Places where the card may be, the likeliest first.
pub(super) fn card_urls(endpoint: &str) -> Vec<String> {
    let Some(parts) = url::parse(endpoint) else {
        return Vec::new();
    };
    if parts.path.ends_with(".json") {
        return vec![endpoint.to_owned()];
    }
    let path = parts.path.split(['?', '#']).next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    let mut urls = vec![format!("{}{path}/{}", parts.origin, card::PATH)];
    if !path.is_empty() {
        urls.push(format!("{}/{}", parts.origin, card::PATH));
    }
    urls.push(format!("{}{path}/{}", parts.origin, card::OLD_PATH));
    urls
}

/// The headers of every request to the subject.
pub(super) fn headers(context: &ActorContext, generation: Option<A2aVersion>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("accept", HeaderValue::from_static(ACCEPT_JSON_OR_EVENTS));
    if let Some(version @ A2aVersion::V1_0) = generation {
        headers.insert(VERSION_HEADER, HeaderValue::from_static(version.as_str()));
    }
    if generation.is_some() {
        headers.insert("content-type", HeaderValue::from_static(JSON));
    }
    for (name, value) in context.headers() {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => {
                headers.insert(name, value);
            }
            _ => context.warn(&format!("the header `{name}` cannot be sent")),
        }
    }
    headers
}

/// What came of asking for the card.
#[derive(Debug)]
pub(super) enum CardResult {
    /// The card.
    Card(Value),
    /// Someone answered, and not with a card.
    NoCard(String),
}

/// Fetches the card.
pub(super) async fn fetch_card(
    context: &ActorContext,
    client: &Client,
    endpoint: &str,
) -> Result<CardResult, ClientError> {
    let mut answer = String::new();
    for url in card_urls(endpoint) {
        let headers = headers(context, None);
        let response = client
            .send(Method::GET, &url, headers, Bytes::new())
            .await?;
        let status = response.status;
        if status == StatusCode::NOT_FOUND {
            answer = format!("{url} answered {status}");
            continue;
        }
        let bytes = response.bytes().await?;
        return Ok(match serde_json::from_slice(&bytes) {
            Ok(card @ Value::Object(_)) if status.is_success() => CardResult::Card(card),
            _ => CardResult::NoCard(format!("{url} answered {status} without a card")),
        });
    }
    Ok(CardResult::NoCard(answer))
}

/// Where a card says to speak. Whatever it says, requests stay at the endpoint the operator gave:
/// the subject does not choose whom we attack, nor who gets our headers.
pub(super) fn choose(context: &ActorContext, endpoint: &str, card: &Value) -> A2aPeer {
    let fallback = fallback(endpoint);
    let Some((generation, offered)) = card::interface(card) else {
        context.warn("the card offers no JSON-RPC; 0.3 is tried at the endpoint");
        return fallback;
    };
    match (url::parse(endpoint), url::parse(offered)) {
        (Some(endpoint), Some(offered)) => {
            if !offered.same_place(&endpoint) {
                context.warn(&format!(
                    "the card leads to {}; requests stay at {}",
                    offered.origin, endpoint.origin
                ));
            }
            let path = if offered.path.is_empty() {
                "/"
            } else {
                offered.path
            };
            A2aPeer {
                url: format!("{}{path}", endpoint.origin),
                generation,
            }
        }
        _ => {
            context.warn("the card's URL is none; requests go to the endpoint");
            A2aPeer {
                generation,
                ..fallback
            }
        }
    }
}

/// Where to speak without a card.
pub(super) fn fallback(endpoint: &str) -> A2aPeer {
    let url = match url::parse(endpoint) {
        Some(parts) if parts.path.ends_with(".json") => format!("{}/", parts.origin),
        _ => endpoint.to_owned(),
    };
    A2aPeer {
        url,
        generation: A2aVersion::V0_3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_looked_for_where_they_may_be() {
        for (endpoint, first, count) in [
            ("http://a:1", "http://a:1/.well-known/agent-card.json", 2),
            ("http://a:1/", "http://a:1/.well-known/agent-card.json", 2),
            (
                "http://a:1/b/",
                "http://a:1/b/.well-known/agent-card.json",
                3,
            ),
            ("http://a:1/b/card.json", "http://a:1/b/card.json", 1),
        ] {
            let urls = card_urls(endpoint);
            assert_eq!((&*urls[0], urls.len()), (first, count));
        }
        assert_eq!(fallback("http://a:1/x/card.json").url, "http://a:1/");
        assert_eq!(fallback("http://a:1/x").url, "http://a:1/x");
    }
}
