//! Signing in to the dashboard with an identity provider: the way there, and the way back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::StatusCode;
use maud::html;
use proofhouse_store::model::SessionKind;
use serde_json::json;

use super::error_page;
use super::page::Page;
use super::sign_in::{cookie_header, set_cookie};
use crate::api::{
    Api, AuditNote, COOKIE, LIFETIME, SessionOwner, begin_session, cookie, count_failed_sign_in,
    store_problem, take_way_to_provider,
};
use crate::keys::{self, random_text};
use crate::oidc::{OidcError, SignInFlow};
use crate::problem::Problem;

/// The cookie of whoever is away at the provider.
const AWAY: &str = "proofhouse_oidc";
/// How long somebody may be away.
const AWAY_TIME: Duration = Duration::from_secs(10 * 60);

fn refused(error: &OidcError) -> Problem {
    let detail = error.to_string();
    match error {
        OidcError::Provider(_) | OidcError::NoRandomness(_) => {
            tracing::error!(%error, "nobody can sign in with the identity provider");
            Problem::unavailable("the identity provider cannot be used now")
        }
        OidcError::Unknown => Problem::bad_request(detail),
        OidcError::Refused(_) | OidcError::Token(_) => {
            tracing::warn!(%error, "a sign-in with the identity provider failed");
            Problem::forbidden(detail)
        }
        OidcError::NoGrant => Problem::forbidden(detail),
    }
}

pub(super) async fn begin(
    State(api): State<Arc<Api>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
) -> Response {
    let going = async {
        take_way_to_provider(&api, peer)?;
        let provider = api
            .identity_provider()
            .ok_or_else(|| Problem::not_found("there is no identity provider"))?;
        let (url, flow) = provider.begin().await.map_err(|error| refused(&error))?;
        let held = random_text().map_err(|error| Problem::unavailable(error.to_string()))?;
        let body = serde_json::to_value(&flow).unwrap_or_default();
        let time = i64::try_from(AWAY_TIME.as_millis()).unwrap_or(i64::MAX);
        let hash = keys::digest(&held);
        let begun = api
            .store
            .begin_session(SessionKind::SignIn, &hash, body, time);
        begun.await.map_err(store_problem)?;
        Ok::<_, Problem>((url, held))
    };
    match going.await {
        Ok((url, held)) => {
            // The browser comes back from another site, which `Strict` would not let it say.
            let cookies = cookie_header(
                api.is_reached_over_tls(),
                (AWAY, &held),
                AWAY_TIME.as_secs(),
                "Lax",
            );
            (cookies, Redirect::to(&url)).into_response()
        }
        Err(problem) => error_page(&problem),
    }
}

pub(super) async fn callback(
    State(api): State<Arc<Api>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let note = parts.extensions.get::<AuditNote>().cloned();
    let note = note.unwrap_or_default();
    let coming = async {
        let provider = api
            .identity_provider()
            .ok_or_else(|| Problem::not_found("there is no identity provider"))?;
        let held = cookie(&parts, AWAY).unwrap_or_default();
        // Good for once, whatever comes of it.
        let hash = keys::digest(held);
        let flow = api.store.end_session(SessionKind::SignIn, &hash).await;
        let flow = flow.map_err(store_problem)?;
        let flow: Option<SignInFlow> = flow.and_then(|flow| serde_json::from_value(flow).ok());
        let flow = flow.ok_or_else(|| refused(&OidcError::Unknown))?;
        // Whoever was sent to the provider comes back once.
        note.is_due();
        let now = api.store.now().await.map_err(store_problem)? / 1000;
        let query = parts.uri.query().unwrap_or_default();
        let person = provider.finish(&flow, query, now).await;
        let person = person.map_err(|error| refused(&error))?;
        note.actor(json!({
            "kind": "session", "id": person.principal, "name": person.name,
            "person": person.email.as_deref().unwrap_or(&person.principal),
        }));
        begin_session(&api, &note, &SessionOwner::Person(person)).await
    };
    match coming.await {
        Ok(id) => {
            // A redirect would still be part of the way back from the other site, and the cookie is `Strict`.
            let body = html! { p { a href="/dashboard" { "Go on to the dashboard" } } };
            let page = Page::signed_out("Signed in", body).leading_to("/dashboard");
            let cookies = set_cookie(api.is_reached_over_tls(), (COOKIE, &id), LIFETIME.as_secs());
            (StatusCode::OK, cookies, page).into_response()
        }
        Err(problem) if problem.status < 500 => {
            let counted = count_failed_sign_in(&api, peer).await;
            if counted.is_ok() {
                note.is_due();
            }
            error_page(&counted.err().unwrap_or(problem))
        }
        Err(problem) => error_page(&problem),
    }
}
