//! Signing in to the dashboard with a key, and out again.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use maud::html;
use proofhouse_store::model::SessionKind;

use super::actions::{FormFields, filled_in};
use super::error_page;
use super::page::{FORM_FIELD, Page, form_field};
use crate::api::{
    Api, AuditNote, COOKIE, LIFETIME, SessionOwner, begin_session, cookie, count_failed_sign_in,
    form_token, is_form_token, recognise, take_request, whole,
};
use crate::keys::{self, random_text};
use crate::problem::Problem;

/// The most bytes of the form.
const MAX_FORM: usize = 4 << 10;
/// The cookie of whoever has not signed in yet: it makes the token of the form.
const BEFORE: &str = "proofhouse_sign_in";
/// How long the form may lie there.
const BEFORE_SECONDS: u64 = 60 * 60;

pub(super) async fn form(State(api): State<Arc<Api>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    shown(&api, &parts, None)
}

/// The form, below a word about the last attempt if there was one.
fn shown(api: &Api, parts: &Parts, message: Option<&str>) -> Response {
    let held = cookie(parts, BEFORE).filter(|held| held.len() == 64 && held.is_ascii());
    let held = match held.map(str::to_owned).map_or_else(random_text, Ok) {
        Ok(held) => held,
        Err(error) => return error_page(&Problem::unavailable(error.to_string())),
    };
    let with_provider = api.has_identity_provider();
    let body = html! {
        @if let Some(message) = message { p role="alert" { (message) } }
        @if with_provider { p { a.button href="/dashboard/oidc/begin" { "Sign in with your organization" } } }
        form.sign-in method="post" action="/dashboard/sign-in" {
            (form_field(&form_token(&held)))
            label for="key" { "API key" }
            input #key name="key" type="password" autocomplete="current-password" required autofocus;
            button { "Sign in" }
        }
        p { "Make a key with: proofhouse keys create --role admin" }
    };
    let status = if message.is_some() {
        StatusCode::UNAUTHORIZED
    } else {
        StatusCode::OK
    };
    let page = Page::signed_out("Sign in", body);
    let is_secure = is_over_tls(api, parts);
    let cookies = set_cookie(is_secure, (BEFORE, &held), BEFORE_SECONDS);
    (status, cookies, page).into_response()
}

pub(super) async fn sign_in(
    State(api): State<Arc<Api>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let note = parts.extensions.get::<AuditNote>().cloned();
    let note = note.unwrap_or_default();
    let form = match whole(&parts.headers, body, MAX_FORM).await {
        Ok(form) => FormFields::of(&form),
        Err(problem) => return error_page(&problem),
    };
    let token = form.get(FORM_FIELD).unwrap_or_default();
    let held = cookie(&parts, BEFORE).unwrap_or_default();
    if held.is_empty() || !is_form_token(held, token) {
        return error_page(&Problem::forbidden(
            "the form does not come from a page of this server, or is too old; load the page again",
        ));
    }
    // From here on somebody tries a key, which is worth knowing unless they try more often than they may: nobody fills the log.
    let key = form.get("key").unwrap_or_default().trim();
    match recognise(api.store.as_ref(), key).await {
        Ok(caller) => {
            if let Err(problem) = take_request(&api, &caller) {
                return error_page(&problem);
            }
            note.is_due();
            drop(caller.noted(note.clone()));
        }
        Err(problem) if problem.status == 401 => {
            return match count_failed_sign_in(&api, peer).await {
                Ok(()) => {
                    note.is_due();
                    shown(&api, &parts, Some("This key is not known."))
                }
                Err(problem) => error_page(&problem),
            };
        }
        Err(problem) => return error_page(&problem),
    }
    let owner = SessionOwner::Key {
        hash: keys::hash(key).unwrap_or_default(),
    };
    match begin_session(&api, &note, &owner).await {
        Ok(id) => (
            set_cookie(is_over_tls(&api, &parts), (COOKIE, &id), LIFETIME.as_secs()),
            Redirect::to("/dashboard"),
        )
            .into_response(),
        Err(problem) => error_page(&problem),
    }
}

pub(super) async fn sign_out(State(api): State<Arc<Api>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let held = cookie(&parts, COOKIE).map(str::to_owned);
    let is_secure = is_over_tls(&api, &parts);
    let note = parts.extensions.get::<AuditNote>().cloned();
    let note = note.unwrap_or_default();
    match filled_in(&api, Request::from_parts(parts, body)).await {
        Ok(_) => {}
        // Whoever is signed out already may well want to be.
        Err(problem) if problem.status == 401 => {}
        Err(problem) => return error_page(&problem),
    }
    if let Some(held) = held {
        let hash = keys::digest(&held);
        let ended = api.store.end_session(SessionKind::Dashboard, &hash);
        if let Err(error) = note.done_by(ended).await {
            return error_page(&crate::api::store_problem(error));
        }
    }
    let cookies = set_cookie(is_secure, (COOKIE, ""), 0);
    (cookies, Redirect::to("/dashboard/sign-in")).into_response()
}

/// Whether the browser that sent a request reached us over TLS: the server speaks it, or the page that sent a form came over it, so
/// that a proxy before the server does.
fn is_over_tls(api: &Api, parts: &Parts) -> bool {
    let origin = parts.headers.get(header::ORIGIN);
    let origin = origin.and_then(|origin| origin.to_str().ok());
    api.is_reached_over_tls() || origin.is_some_and(|origin| origin.starts_with("https://"))
}

/// A cookie: scripts cannot read it, pages elsewhere cannot make a browser send it, and if it is secure it is never sent without
/// TLS.
pub(super) fn set_cookie(is_secure: bool, (name, value): (&str, &str), seconds: u64) -> HeaderMap {
    cookie_header(is_secure, (name, value), seconds, "Strict")
}

/// The same, sent along when another site sends the browser back here with a link (`Lax`), or not (`Strict`).
pub(super) fn cookie_header(
    is_secure: bool,
    (name, value): (&str, &str),
    seconds: u64,
    same_site: &str,
) -> HeaderMap {
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!(
        "{name}={value}; Path=/; HttpOnly; SameSite={same_site}; Max-Age={seconds}{secure}"
    );
    let mut headers = HeaderMap::new();
    if let Ok(value) = text.parse() {
        headers.insert(header::SET_COOKIE, value);
    }
    headers
}
