//! Extractors: the pieces of a request, with problems that say what is wrong instead of a library's words.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::{HeaderMap, header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use std::time::Duration;

use crate::problem::Problem;

/// The most bytes that a request to the API may have.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// The longest piece of a path.
const MAX_NAME: usize = 512;

/// A JSON body.
#[derive(Debug)]
pub(crate) struct Body<T>(pub T);

impl<S, T> FromRequest<S> for Body<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
{
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Self::Rejection> {
        let form = request.headers().get(header::CONTENT_TYPE);
        let form = form
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let essence = form.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(Problem::unsupported(
                "send `Content-Type: application/json`",
            ));
        }
        let (parts, body) = request.into_parts();
        let bytes = whole(&parts.headers, body, MAX_BODY_BYTES).await?;
        let value = serde_json::from_slice(&bytes).map_err(|error| {
            Problem::bad_request(format!("the body is not as it must be: {error}"))
        })?;
        Ok(Self(value))
    }
}

/// All of a body, as long as it is not too much and not too slow.
pub(crate) async fn whole(
    headers: &HeaderMap,
    body: axum::body::Body,
    limit: usize,
) -> Result<Bytes, Problem> {
    let announced = headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(Problem::too_large(limit));
    }
    let body = Limited::new(body, limit);
    match tokio::time::timeout(BODY_TIME, body.collect()).await {
        Err(_) => Err(Problem::too_slow()),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::too_large(limit)),
        Ok(Err(_)) => Err(Problem::bad_request("the body broke off")),
    }
}

/// What follows the question mark.
#[derive(Debug)]
pub(crate) struct Query<T>(pub T);

impl<S, T> FromRequestParts<S> for Query<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        match axum::extract::Query::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}

/// The pieces of the path.
#[derive(Debug)]
pub(crate) struct Path<T>(pub T);

impl<S, T> FromRequestParts<S> for Path<T>
where
    S: Send + Sync,
    T: DeserializeOwned + Send,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        if parts
            .uri
            .path()
            .split('/')
            .any(|piece| piece.len() > MAX_NAME)
        {
            return Err(Problem::not_found("there is nothing with such a name"));
        }
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(rejection) => Err(Problem::not_found(rejection.body_text())),
        }
    }
}
