//! Responses: from what a server answered to what an action yields.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use serde_json_path::JsonPath;

use crate::http::HttpResponse;
use crate::runtime::{ActionError, ActionFailure};

/// How much of the body of an error is told.
const MAX_ERROR_BODY: usize = 4096;

/// The result of an action: the part the path selects, the JSON, the text, or the bytes.
pub(super) fn result(answer: &HttpResponse, path: Option<&JsonPath>) -> Result<Value, ActionError> {
    if !answer.status.is_success() {
        return Err(status_error(answer));
    }
    let value = read(answer, path.is_some())?;
    match path {
        None => Ok(value),
        Some(path) => select(&value, path),
    }
}

/// One match is the value, several are a list of them, none is an error.
pub(super) fn select(value: &Value, path: &JsonPath) -> Result<Value, ActionError> {
    match path.query(value).all().as_slice() {
        [] => Err(ActionError::new(
            ActionFailure::NoMatch,
            format!("`{path}` finds nothing in the response"),
        )),
        [one] => Ok((*one).clone()),
        several => Ok(several.iter().map(|one| (*one).clone()).collect()),
    }
}

fn read(answer: &HttpResponse, must_be_json: bool) -> Result<Value, ActionError> {
    if let Some(encoding) = answer.header("content-encoding")
        && !encoding.trim().eq_ignore_ascii_case("identity")
    {
        let message = format!("the response is encoded as `{encoding}`, which is not understood");
        return Err(ActionError::new(ActionFailure::Response, message));
    }
    let kind = answer.header("content-type").unwrap_or_default();
    let essence = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let says_json = essence == "application/json" || essence.ends_with("+json");
    if answer.body.is_empty() && !must_be_json {
        return Ok(Value::Null);
    }
    if says_json || must_be_json || essence.is_empty() {
        match serde_json::from_slice(&answer.body) {
            Ok(value) => return Ok(value),
            Err(error) if says_json || must_be_json => {
                let message = format!("the response is not JSON: {error}");
                return Err(ActionError::new(ActionFailure::Response, message));
            }
            Err(_) => {}
        }
    }
    Ok(match std::str::from_utf8(&answer.body) {
        Ok(text) => text.into(),
        Err(_) => json!({"content_type": kind, "base64": STANDARD.encode(&answer.body)}),
    })
}

fn status_error(answer: &HttpResponse) -> ActionError {
    let status = answer.status;
    let message = if status.is_redirection() {
        format!(
            "HTTP {status}; redirects are followed for GET only, within the same origin, three at most"
        )
    } else {
        format!("HTTP {status}")
    };
    let mut error = ActionError::new(ActionFailure::HttpStatus, message);
    error
        .detail
        .insert("status".to_owned(), status.as_u16().into());
    let text = String::from_utf8_lossy(&answer.body);
    if !text.trim().is_empty() {
        error.detail.insert("body".to_owned(), text.as_ref().into());
    }
    error
}

/// Cuts the body of an error, after secrets are gone from it.
pub(super) fn cut_body(mut error: ActionError) -> ActionError {
    if let Some(Value::String(body)) = error.detail.get_mut("body")
        && let Some((cut, _)) = body
            .char_indices()
            .find(|(at, c)| at + c.len_utf8() > MAX_ERROR_BODY)
    {
        body.truncate(cut);
        error.detail.insert("truncated".to_owned(), true.into());
    }
    error
}
