//! Webhooks over HTTP: platforms post events here. They are kept before the answer says so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode, header};
use serde_json::json;

use super::desk::{Handshake, Reception, Webhook};
use super::{Api, Path, whole};
use crate::metrics::Webhook as Count;
use crate::peer;
use crate::problem::Problem;

/// Takes in a webhook.
pub(super) async fn receive(
    State(api): State<Arc<Api>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Path(tool): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let rate = api
        .webhook_rate
        .take(&peer::of(peer.ip()).to_string(), Instant::now());
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
    let webhook = Webhook {
        tool,
        headers: parts.headers,
        query: parts.uri.query().map(str::to_owned),
        body,
        is_question,
    };
    answer(&api, api.desk.receive(webhook).await)
}

fn answer(api: &Api, reception: Reception) -> Result<Response, Problem> {
    let count = |outcome| api.metrics.webhook(outcome);
    match reception {
        Reception::Stored(id) => {
            count(Count::Stored);
            Ok((StatusCode::ACCEPTED, Json(json!({"event": id}))).into_response())
        }
        Reception::Duplicate(id) => {
            count(Count::Duplicate);
            let body = json!({"event": id, "duplicate": true});
            Ok((StatusCode::OK, Json(body)).into_response())
        }
        Reception::Handshake(handshake) => {
            count(Count::Handshake);
            Ok(match handshake {
                Handshake::Text(text) => {
                    let form = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
                    (form, text).into_response()
                }
                Handshake::Json(value) => Json(value).into_response(),
                Handshake::Empty => StatusCode::NO_CONTENT.into_response(),
            })
        }
        Reception::Unknown => {
            count(Count::Unknown);
            Err(Problem::not_found("no tool of this name takes webhooks"))
        }
        Reception::Refused(why) => {
            count(Count::Signature);
            Err(Problem::unauthorized(why))
        }
        Reception::Malformed(why) => {
            count(Count::Malformed);
            Err(Problem::bad_request(why))
        }
        Reception::TooLarge(why) => {
            count(Count::TooLarge);
            Err(Problem::too_large_because(why))
        }
        Reception::Unsupported(why) => {
            count(Count::Unsupported);
            Err(Problem::unsupported(why))
        }
        Reception::NoAnswer => {
            count(Count::Method);
            Err(Problem::method_not_allowed())
        }
        Reception::Unavailable(why) => {
            count(Count::Unavailable);
            tracing::error!(%why, "a webhook could not be kept");
            Err(Problem::unavailable(
                "the event could not be kept; send it again",
            ))
        }
    }
}
