//! Problems: what a client is told when a request cannot be done, in the form of RFC 9457.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong with a request. No text in it holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// The status, once more.
    pub status: u16,
    /// The kind of problem, for programs.
    pub code: &'static str,
    /// What to know about it, for people.
    pub detail: String,
    /// Seconds after which it is worth trying again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status: status.as_u16(),
            code,
            detail: detail.into(),
            retry_after: None,
        }
    }

    /// The request does not say what it must.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", detail)
    }

    /// Nobody knows who asks.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    /// Whoever asks may not.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// There is no such thing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// There was such a thing, and it does not come back.
    pub fn gone(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "gone", detail)
    }

    /// The path is known, the method is not.
    pub fn method_not_allowed() -> Self {
        let detail = "this path has no such method";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
    }

    /// It cannot be done as things stand.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    /// More was sent than is taken.
    pub fn too_large(limit: usize) -> Self {
        Self::too_large_because(format!("the body has more than {limit} bytes"))
    }

    /// More was sent than is taken, of what this says.
    pub fn too_large_because(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    /// The body did not come in time.
    pub fn too_slow() -> Self {
        let detail = "the request did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", detail)
    }

    /// The body is not in a form that is read here.
    pub fn unsupported(detail: impl Into<String>) -> Self {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(status, "unsupported_media_type", detail)
    }

    /// The request is well formed but names something that cannot be.
    pub fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unprocessable", detail)
    }

    /// Too much was asked in too short a time.
    pub fn too_many(seconds: u64) -> Self {
        let detail = "too many requests; try again later";
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail);
        problem.after(seconds)
    }

    /// It cannot be done now, and nothing was: whoever asks should ask again.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail).after(5)
    }

    fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = self.retry_after;
        let mut response = (status, axum::Json(self)).into_response();
        let headers = response.headers_mut();
        let form = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, form);
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
