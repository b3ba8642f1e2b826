//! Signing in to the dashboard with a key, and out again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, StatusCode, header};
use maud::html;

use super::error_page;
use super::page::Page;
use crate::api::{Api, COOKIE, LIFETIME, cookie, recognise, whole};
use crate::keys;
use crate::peer;
use crate::problem::Problem;

/// The most bytes of the form.
const MAX_FORM: usize = 4 << 10;

pub(super) async fn form() -> impl IntoResponse {
    page(None)
}

/// The form, below a word about the last attempt if there was one.
fn page(message: Option<&str>) -> Page {
    let body = html! {
        @if let Some(message) = message { p { (message) } }
        form.sign-in method="post" action="/dashboard/sign-in" {
            label for="key" { "API key" }
            input #key name="key" type="password" autocomplete="current-password" required autofocus;
            button { "Sign in" }
        }
        p { "Make a key with: proofhouse keys create --scope admin" }
    };
    Page::signed_out("Sign in", body)
}

pub(super) async fn sign_in(
    State(api): State<Arc<Api>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    if let Err(wait) = api
        .sign_in_rate
        .take(&peer::of(peer.ip()).to_string(), Instant::now())
    {
        return error_page(&Problem::too_many(wait.as_secs().max(1)));
    }
    let (parts, body) = request.into_parts();
    let form = match whole(&parts.headers, body, MAX_FORM).await {
        Ok(form) => form,
        Err(problem) => return error_page(&problem),
    };
    let key = url::form_urlencoded::parse(&form).find(|(name, _)| name == "key");
    let key = key
        .map(|(_, key)| key.trim().to_owned())
        .unwrap_or_default();
    match recognise(api.store.as_ref(), &key).await {
        Ok(_) => {}
        Err(problem) if problem.status == 401 => {
            return (
                StatusCode::UNAUTHORIZED,
                page(Some("This key is not known.")),
            )
                .into_response();
        }
        Err(problem) => return error_page(&problem),
    }
    match api.sessions.begin(keys::hash(&key).unwrap_or_default()) {
        Ok(id) => (
            set_cookie(&api, &id, LIFETIME.as_secs()),
            Redirect::to("/dashboard"),
        )
            .into_response(),
        Err(error) => error_page(&Problem::unavailable(error.to_string())),
    }
}

pub(super) async fn sign_out(State(api): State<Arc<Api>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if let Some(id) = cookie(&parts) {
        api.sessions.end(id);
    }
    (set_cookie(&api, "", 0), Redirect::to("/dashboard/sign-in")).into_response()
}

/// The cookie: scripts cannot read it, pages elsewhere cannot make a browser send it, and where there is TLS it is never
/// sent without.
fn set_cookie(api: &Api, id: &str, seconds: u64) -> HeaderMap {
    let secure = if api.config.tls { "; Secure" } else { "" };
    let text =
        format!("{COOKIE}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut headers = HeaderMap::new();
    if let Ok(value) = text.parse() {
        headers.insert(header::SET_COOKIE, value);
    }
    headers
}
