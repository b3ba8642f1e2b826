//! Webhooks over HTTP: platforms post events here. They are kept before the answer says so.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode, header};
use proofhouse_tools::receive::webhook::Handshake;
use serde_json::json;

use super::{Api, Path, whole};
use crate::engine::{ToolAddress, WebhookOutcome, WebhookRefusal};
use crate::metrics::WebhookCount as Count;
use crate::problem::Problem;
use proofhouse_wire::peer;

/// Takes in a webhook that was posted to the address of a tool.
pub(super) async fn receive(
    State(api): State<Arc<Api>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Path(parts): Path<HashMap<String, String>>,
    request: Request,
) -> Result<Response, Problem> {
    let address = ToolAddress {
        namespace: parts.get("namespace").map(String::as_str),
        tool: parts.get("tool").map_or("", String::as_str),
    };
    take(&api, peer, WebhookAddress::Tool(address), request).await
}

/// Takes in a webhook that was posted to the callback address of a push channel; what stands behind that is as the
/// manifest wrote it, and says nothing.
pub(super) async fn push(
    State(api): State<Arc<Api>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Path(parts): Path<HashMap<String, String>>,
    request: Request,
) -> Result<Response, Problem> {
    let callback = parts.get("callback").map_or("", String::as_str);
    take(&api, peer, WebhookAddress::Channel(callback), request).await
}

/// Where a webhook was posted to.
enum WebhookAddress<'a> {
    /// The address of a tool, or of a source of triggers.
    Tool(ToolAddress<'a>),
    /// The callback address of a push channel.
    Channel(&'a str),
}

async fn take(
    api: &Api,
    peer: SocketAddr,
    address: WebhookAddress<'_>,
    request: Request,
) -> Result<Response, Problem> {
    let rate = api.webhook_rate.take(&peer::of(peer.ip()).to_string());
    if let Err(wait) = rate {
        api.metrics.webhook(Count::TooMany);
        return Err(Problem::too_many(wait.as_secs().max(1)));
    }
    // Some platforms ask with GET whether somebody is there; events come with POST.
    let is_question = request.method() != Method::POST;
    let (parts, body) = request.into_parts();
    let body = whole(&parts.headers, body, api.config.max_webhook_bytes).await;
    let body = body.inspect_err(|problem| {
        api.metrics.webhook(match problem.status {
            413 => Count::TooLarge,
            _ => Count::Unreadable,
        });
    })?;
    let (headers, query) = (&parts.headers, parts.uri.query());
    if is_question {
        let engine = api.engine();
        let handshake = match address {
            WebhookAddress::Tool(tool) => engine.greet_at(tool, headers, query, &body),
            WebhookAddress::Channel(callback) => {
                engine.greet_push(callback, headers, query, &body).await
            }
        };
        let Some(handshake) = handshake else {
            api.metrics.webhook(Count::Method);
            return Err(Problem::method_not_allowed());
        };
        return answer(api, WebhookOutcome::Handshake(handshake));
    }
    let outcome = match address {
        WebhookAddress::Tool(tool) => api.engine().accept_at(tool, headers, query, &body).await,
        WebhookAddress::Channel(callback) => {
            let engine = api.engine();
            engine.accept_push(callback, headers, query, &body).await
        }
    };
    answer(api, outcome)
}

fn answer(api: &Api, outcome: WebhookOutcome) -> Result<Response, Problem> {
    let count = |outcome| api.metrics.webhook(outcome);
    let first = |ids: Vec<i64>| ids.first().copied().unwrap_or(0);
    match outcome {
        WebhookOutcome::Stored(ids) => {
            count(Count::Stored);
            let body = json!({"event": first(ids)});
            Ok((StatusCode::ACCEPTED, Json(body)).into_response())
        }
        WebhookOutcome::Duplicate(ids) => {
            count(Count::Duplicate);
            let body = json!({"event": first(ids), "duplicate": true});
            Ok((StatusCode::OK, Json(body)).into_response())
        }
        WebhookOutcome::Handshake(handshake) => {
            count(Count::Handshake);
            Ok(match handshake {
                Handshake::Echo { body, .. } => {
                    let form = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
                    (form, body).into_response()
                }
                Handshake::Empty => StatusCode::NO_CONTENT.into_response(),
            })
        }
        WebhookOutcome::Refused(refusal) => {
            let (counted, problem) = refused(&refusal);
            count(counted);
            Err(problem)
        }
        WebhookOutcome::Unavailable => {
            count(Count::Unavailable);
            tracing::error!("a webhook could not be kept");
            Err(Problem::unavailable(
                "the event could not be kept; send it again",
            ))
        }
    }
}

/// What the sender of a webhook that is not taken is told, and what it is counted as.
fn refused(refusal: &WebhookRefusal) -> (Count, Problem) {
    let why = refusal.to_string();
    match refusal {
        WebhookRefusal::NobodyListens => (Count::Unknown, Problem::not_found(why)),
        WebhookRefusal::Ambiguous => (Count::Unknown, Problem::conflict(why)),
        WebhookRefusal::NoChannel => (Count::Unknown, Problem::not_found(why)),
        WebhookRefusal::ChannelGone => (Count::Unknown, Problem::gone(why)),
        WebhookRefusal::Signature(_) => (Count::Signature, Problem::unauthorized(why)),
        WebhookRefusal::TooLarge(_) => (Count::TooLarge, Problem::too_large_because(why)),
        WebhookRefusal::Unsupported(_) => (Count::Unsupported, Problem::unsupported(why)),
        WebhookRefusal::Malformed(_) => (Count::Malformed, Problem::bad_request(why)),
    }
}
