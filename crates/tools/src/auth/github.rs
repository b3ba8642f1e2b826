//! GitHub Apps: a signed statement of who the app is, exchanged for the token of an installation.

use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Map, Value, json};

use super::answer::{ask, token};
use super::cache::Fetched;
use super::config::GithubApp;
use super::error::AuthError;
use crate::http::{HttpClient, ToolRequest};
use proofhouse_manifest::interpolate::{Sealed, Secrets};

/// The statement is dated back, so that a server whose clock is behind accepts it.
const BACK: u64 = 60;
/// It ends within ten minutes, the most that is accepted, with room for a clock that is ahead.
const AHEAD: u64 = 540;

/// Asks for the token of the installation.
pub(super) async fn installation(
    http: &HttpClient,
    app: &GithubApp,
    now: u64,
    secrets: &Secrets,
) -> Result<Fetched, AuthError> {
    let claims = json!({
        "iat": now.saturating_sub(BACK),
        "exp": now.saturating_add(AHEAD),
        "iss": app.app_id,
    });
    let statement = app.key.sign(&claims);
    let statement = statement.ok_or(AuthError::Request("the statement cannot be signed"))?;
    let mut secrets = secrets.clone();
    secrets.add(statement.expose());
    let answer = ask(http, &request(app, statement.expose())?, true, &secrets).await?;
    let expires_at = match answer.get("expires_at") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(seconds(text).ok_or(NO_TIME)?),
        Some(_) => return Err(NO_TIME),
    };
    Ok(Fetched {
        token: Sealed::new(token(&answer, "token")?),
        expires_at,
    })
}

const NO_TIME: AuthError = AuthError::Answer("`expires_at` is not a time");

/// A time of RFC 3339 in seconds since 1970.
fn seconds(text: &str) -> Option<u64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_second()).ok()
}

fn request(app: &GithubApp, statement: &str) -> Result<ToolRequest, AuthError> {
    let mut url = app.api_url.clone();
    let path = format!(
        "{}/app/installations/{}/access_tokens",
        url.path().trim_end_matches('/'),
        app.installation_id
    );
    url.set_path(&path);
    url.set_query(None);
    url.set_fragment(None);
    let mut bearer = HeaderValue::from_str(&format!("Bearer {statement}"))
        .map_err(|_| AuthError::Request("no header can hold the statement"))?;
    bearer.set_sensitive(true);
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("authorization", bearer),
        (
            "accept",
            HeaderValue::from_static("application/vnd.github+json"),
        ),
        ("content-type", HeaderValue::from_static("application/json")),
        (
            "x-github-api-version",
            HeaderValue::from_static("2022-11-28"),
        ),
    ] {
        headers.insert(HeaderName::from_static(name), value);
    }
    let mut body = Map::new();
    if !app.repositories.is_empty() {
        body.insert("repositories".to_owned(), app.repositories.clone().into());
    }
    if !app.permissions.is_empty() {
        body.insert("permissions".to_owned(), app.permissions.clone().into());
    }
    Ok(ToolRequest {
        method: Method::POST,
        url: Sealed::new(url),
        headers: Sealed::new(headers),
        body: Sealed::new(Bytes::from(Value::Object(body).to_string())),
    })
}
