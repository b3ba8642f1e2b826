//! What token endpoints answer: tokens, and refusals without what must not be shown.

use serde_json::Value;

use super::error::AuthError;
use crate::http::{HttpClient, HttpResponse, ToolRequest};
use proofhouse_manifest::interpolate::Secrets;
use proofhouse_mcp_auth::is_token;

/// An answer with a token in it has a few KiB; this is generous, and far from what other tools may answer.
pub(super) const MAX_ANSWER_BYTES: usize = 256 << 10;
/// A token travels in a header, and most servers take headers of 8 to 64 KiB.
const MAX_TOKEN_BYTES: usize = 32 << 10;
/// How much is told of what a token endpoint says.
const MAX_SAID: usize = 200;

/// Asks a token endpoint; yields the JSON of an answer that is no refusal. A request that uses something
/// up may not be repeated.
pub(super) async fn ask(
    client: &HttpClient,
    request: &ToolRequest,
    repeatable: bool,
    secrets: &Secrets,
) -> Result<Value, AuthError> {
    let sent = if repeatable {
        client.send_repeatable(request).await
    } else {
        client.send(request).await
    };
    let answer = sent.map_err(|error| AuthError::Unavailable {
        reason: secrets.redact(&error.message),
        failure: error.failure,
    })?;
    let json: Option<Value> = serde_json::from_slice(&answer.body).ok();
    if !answer.status.is_success() {
        return Err(refusal(&answer, json.as_ref(), secrets));
    }
    match json {
        // Some servers say no with a status that says yes.
        Some(json) if json.get("error").is_some_and(Value::is_string) => {
            Err(refusal(&answer, Some(&json), secrets))
        }
        Some(json @ Value::Object(_)) => Ok(json),
        Some(_) => Err(AuthError::Answer("it is not a JSON object")),
        None => Err(AuthError::Answer("it is not JSON")),
    }
}

/// A text that can be sent in a header.
pub(super) fn token(answer: &Value, key: &str) -> Result<String, AuthError> {
    match answer.get(key) {
        Some(Value::String(token)) if is_token(token) => Ok(token.clone()),
        Some(Value::String(token)) if token.len() > MAX_TOKEN_BYTES => {
            Err(AuthError::Answer("the token is too long"))
        }
        Some(Value::String(_)) => Err(AuthError::Answer(
            "the token is empty or holds characters that no token may hold",
        )),
        _ => Err(AuthError::Answer("it holds no token")),
    }
}

/// When a token ends that lives for the seconds of `expires_in`.
pub(super) fn end(answer: &Value, now: u64) -> Result<Option<u64>, AuthError> {
    let end = proofhouse_mcp_auth::expires_at(answer, now);
    end.map_err(|_| AuthError::Answer("`expires_in` is not a number of seconds"))
}

fn refusal(answer: &HttpResponse, json: Option<&Value>, secrets: &Secrets) -> AuthError {
    let said = |keys: &[&str]| {
        let text = keys.iter().find_map(|key| json?.get(key)?.as_str())?;
        let clean: String = secrets
            .redact(text)
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(MAX_SAID)
            .collect();
        Some(clean).filter(|clean| !clean.trim().is_empty())
    };
    AuthError::Refused {
        status: answer.status.as_u16(),
        error: said(&["error"]),
        description: said(&["error_description", "message"]),
    }
}
