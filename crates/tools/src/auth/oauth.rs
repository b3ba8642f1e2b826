//! OAuth 2.0 token requests: client credentials and refresh tokens (RFC 6749, sections 4.4 and 6).

use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use url::form_urlencoded;

use super::answer::{ask, end, token};
use super::cache::Fetched;
use super::config::{ClientAuthentication, OauthClient};
use super::error::AuthError;
use crate::http::{HttpClient, ToolRequest};
use proofhouse_manifest::interpolate::{Sealed, Secrets};
use proofhouse_mcp_auth::{basic_credentials, is_token};

/// Asks for a token; also yields the next refresh token, if the answer holds one.
pub(super) async fn grant(
    http: &HttpClient,
    client: &OauthClient,
    refresh_token: Option<&str>,
    now: u64,
    secrets: &Secrets,
) -> Result<(Fetched, Option<Sealed<String>>), AuthError> {
    let request = request(client, refresh_token)?;
    // A refresh token may be used up by the first request that arrives.
    let answer = ask(http, &request, refresh_token.is_none(), secrets).await?;
    understood(&answer)?;
    let fetched = Fetched {
        token: Sealed::new(token(&answer, "access_token")?),
        expires_at: end(&answer, now)?,
    };
    let next = answer.get("refresh_token").and_then(Value::as_str);
    let next = next.filter(|next| is_token(next));
    Ok((fetched, next.map(|next| Sealed::new(next.to_owned()))))
}

/// A client must not use a token whose type it does not know (RFC 6749, section 7.1).
fn understood(answer: &Value) -> Result<(), AuthError> {
    match answer.get("token_type") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(kind)) if kind.eq_ignore_ascii_case("bearer") => Ok(()),
        Some(_) => Err(AuthError::Answer("the type of the token is not `bearer`")),
    }
}

fn request(client: &OauthClient, refresh_token: Option<&str>) -> Result<ToolRequest, AuthError> {
    let mut headers = HeaderMap::new();
    let mut set = |name: &'static str, value: HeaderValue| {
        headers.insert(HeaderName::from_static(name), value);
    };
    set("accept", HeaderValue::from_static("application/json"));
    set(
        "content-type",
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    let mut form = form_urlencoded::Serializer::new(String::new());
    match refresh_token {
        None => form.append_pair("grant_type", "client_credentials"),
        Some(token) => form
            .append_pair("grant_type", "refresh_token")
            .append_pair("refresh_token", token),
    };
    if let Some(scope) = &client.scope {
        form.append_pair("scope", scope);
    }
    match (&client.secret, client.authentication) {
        (Some(secret), ClientAuthentication::Basic) => {
            set("authorization", basic(&client.id, secret.expose())?);
        }
        (Some(secret), ClientAuthentication::Post) => {
            form.append_pair("client_id", &client.id)
                .append_pair("client_secret", secret.expose());
        }
        (None, _) => {
            form.append_pair("client_id", &client.id);
        }
    }
    for (name, value) in &client.parameters {
        form.append_pair(name, value.expose());
    }
    Ok(ToolRequest {
        method: Method::POST,
        url: Sealed::new(client.token_url.clone()),
        headers: Sealed::new(headers),
        body: Sealed::new(Bytes::from(form.finish())),
    })
}

/// The header of a client with a secret.
fn basic(id: &str, secret: &str) -> Result<HeaderValue, AuthError> {
    let text = format!("Basic {}", basic_credentials(id, secret));
    let mut value =
        HeaderValue::from_str(&text).map_err(|_| AuthError::Request("no header can hold it"))?;
    value.set_sensitive(true);
    Ok(value)
}
