//! Signing in to the dashboard with a key, and out again.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, StatusCode, header};

use super::html::Page;
use super::trouble;
use crate::api::{Api, COOKIE, LIFETIME, cookie, recognise, whole};
use crate::keys;
use crate::peer;
use crate::problem::Problem;

/// The most bytes of the form.
const MAX_FORM: usize = 4 << 10;

const FORM: &str = "<form method=\"post\" action=\"/dashboard/sign-in\" class=\"sign-in\">\
    <label for=\"key\">API key</label>\
    <input id=\"key\" name=\"key\" type=\"password\" autocomplete=\"current-password\" required autofocus>\
    <button>Sign in</button></form>";

pub(super) async fn ask() -> impl IntoResponse {
    page("")
}

fn page(said: &str) -> impl IntoResponse + use<> {
    let page = Page::outside("Sign in");
    let page = if said.is_empty() {
        page
    } else {
        page.note(said)
    };
    let hint = "Make a key with: proofhouse keys create --scope admin";
    page.markup(FORM).note(hint).finish()
}

pub(super) async fn begin(
    State(api): State<Arc<Api>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    if let Err(wait) = api.sign_in_rate.take(&peer::of(peer.ip()).to_string()) {
        return trouble(&Problem::too_many(wait.as_secs().max(1)));
    }
    let (parts, body) = request.into_parts();
    let form = match whole(&parts.headers, body, MAX_FORM).await {
        Ok(form) => form,
        Err(problem) => return trouble(&problem),
    };
    let key = url::form_urlencoded::parse(&form).find(|(name, _)| name == "key");
    let key = key
        .map(|(_, key)| key.trim().to_owned())
        .unwrap_or_default();
    match recognise(api.store.as_ref(), &key).await {
        Ok(_) => {}
        Err(problem) if problem.status == 401 => {
            return (StatusCode::UNAUTHORIZED, page("This key is not known.")).into_response();
        }
        Err(problem) => return trouble(&problem),
    }
    match api.sessions.begin(keys::hash(&key).unwrap_or_default()) {
        Ok(id) => (
            set(&api, &id, LIFETIME.as_secs()),
            Redirect::to("/dashboard"),
        )
            .into_response(),
        Err(error) => trouble(&Problem::unavailable(error.to_string())),
    }
}

pub(super) async fn end(State(api): State<Arc<Api>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if let Some(id) = cookie(&parts) {
        api.sessions.end(id);
    }
    (set(&api, "", 0), Redirect::to("/dashboard/sign-in")).into_response()
}

/// The cookie: scripts cannot read it, pages elsewhere cannot make a browser send it, and where there is TLS it is never
/// sent without.
fn set(api: &Api, id: &str, seconds: u64) -> HeaderMap {
    let secure = if api.config.tls { "; Secure" } else { "" };
    let text =
        format!("{COOKIE}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut headers = HeaderMap::new();
    if let Ok(value) = text.parse() {
        headers.insert(header::SET_COOKIE, value);
    }
    headers
}
