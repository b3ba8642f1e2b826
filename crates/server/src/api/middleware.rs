//! What surrounds every request: where it comes from, safe headers, time, counting.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, Version, header};
use proofhouse_wire::origin;
use proofhouse_wire::trace::{TraceParent, TraceScope};

use super::Api;
use super::audit_note::{AuditNote, AuditedRequest, RequestOrigin};
use crate::metrics::{RequestLabels, RouteLabels};
use crate::problem::Problem;

/// How long a request may take; streams answer at once and go on.
const REQUEST_TIME: Duration = Duration::from_secs(60);

/// Headers of every answer. The pages load nothing from anywhere and run no scripts.
const SAFE: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; \
         base-uri 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Not `no-referrer`, with which browsers do not say where our own forms come from either.
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Who is served.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RouterSide {
    /// People and programs with keys.
    Api,
    /// Platforms, which are known by their signatures.
    Webhooks,
}

/// The router with all of that around it.
pub(super) fn around(router: Router<Arc<Api>>, api: &Arc<Api>, side: RouterSide) -> Router {
    router
        .fallback(async || Problem::not_found("there is nothing at this path"))
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
        .layer(from_fn_with_state((Arc::clone(api), side), watch))
        .with_state(Arc::clone(api))
}

async fn watch(
    State((api, side)): State<(Arc<Api>, RouterSide)>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("none", MatchedPath::as_str).to_owned();
    let mut request = request;
    let origin = origin_of(&api, &request);
    let note = (side == RouterSide::Api).then(|| noted(&mut request, &route, origin));
    let span = tracing::info_span!(
        "http.request",
        otel.kind = "server",
        client.address = origin.map(|origin| origin.client.to_string()),
        http.request.method = %request.method(),
        http.route = %route,
        http.response.status_code = tracing::field::Empty
    );
    let scope = TraceScope::below(span.clone(), TraceParent::of_headers(request.headers()));
    let answering = answer(&api, side, (request, origin), next);
    let mut response = scope.run(answering).await;
    // What was done has its entry by now. This is for what was refused, what failed, and what was only read.
    if let Some(entry) = note.and_then(|note| note.entry(response.status().as_u16()))
        && let Err(error) = api.store.append_audit(entry).await
    {
        tracing::error!(%error, %route, "the audit log cannot be written");
        api.metrics.audit_failures.inc();
        if response.status().is_success() || response.status().is_redirection() {
            let why = "it may be done, and could not be noted in the audit log";
            response = Problem::unavailable(why).into_response();
        }
    }
    for (name, value) in SAFE {
        let headers = response.headers_mut();
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    let status = response.status().as_u16();
    span.record("http.response.status_code", status);
    let seconds = began.elapsed().as_secs_f64();
    let labels = RouteLabels {
        route: route.clone(),
    };
    let times = &api.metrics.request_seconds;
    times.get_or_create(&labels).observe(seconds);
    let labels = RequestLabels { route, status };
    api.metrics.requests.get_or_create(&labels).inc();
    response
}

/// Where a request comes from: its peer, or whom a trusted proxy speaks for.
fn origin_of(api: &Api, request: &Request) -> Option<RequestOrigin> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let ConnectInfo(peer) = peer?;
    let peer = peer.ip().to_canonical();
    let client = api.trusted_proxies().client(peer, request.headers());
    Some(RequestOrigin { client, peer })
}

/// Gives a request the paper that those who answer it note things on.
fn noted(request: &mut Request, route: &str, from: Option<RequestOrigin>) -> AuditNote {
    let note = AuditNote::of(AuditedRequest::new(
        request.method().clone(),
        route.to_owned(),
        request.uri().path().to_owned(),
        from,
        request.headers(),
    ));
    request.extensions_mut().insert(note.clone());
    note
}

async fn answer(
    api: &Api,
    side: RouterSide,
    (mut request, from): (Request, Option<RequestOrigin>),
    next: Next,
) -> Response {
    // RFC 9112 asks for it; without, nobody knows what the request was meant for.
    let hosts = request.headers().get_all(header::HOST).iter().count();
    if request.version() == Version::HTTP_11 && hosts != 1 {
        return Problem::bad_request("a request has one `Host`").into_response();
    }
    // A page elsewhere can make a browser send requests to this machine; platforms are no browsers, and
    // they reach us under names we do not know.
    let local = api.config.address;
    let names = &api.config.allowed_hosts;
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer_is_here = peer.is_none_or(|ConnectInfo(peer)| peer.ip().is_loopback());
    // Where names are given, they hold for everybody. Probes ask by address, and learn nothing that others may not.
    let path = request.uri().path();
    let is_probe = ["/v1/health", "/v1/ready"].contains(&path);
    let is_checked = side == RouterSide::Api && (peer_is_here || !names.is_empty()) && !is_probe;
    // So does Prometheus, and shows a key, which a page elsewhere does not have.
    let has_origin = request.headers().contains_key(header::ORIGIN);
    let is_scraped = path == "/v1/metrics" && !api.config.open && !has_origin;
    if is_checked && !is_scraped && !origin::is_allowed_as(request.headers(), local, names) {
        let why = "the `Host` or `Origin` of the request is not this server";
        return Problem::forbidden(why).into_response();
    }
    // From here on a proxy is nobody: limits and counts are for whom it speaks for.
    if let Some(from) = from {
        let client = ConnectInfo(SocketAddr::new(from.client, 0));
        request.extensions_mut().insert(client);
    }
    match tokio::time::timeout(REQUEST_TIME, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::unavailable("the request took too long").into_response(),
    }
}
