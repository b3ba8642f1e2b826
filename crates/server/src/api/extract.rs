//! Extractors: the pieces of a request, with problems that say what is wrong instead of a library's words.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::{HeaderMap, header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::error::Error;
use std::time::Duration;

use crate::problem::Problem;
use crate::received_body::MadeWay;

/// The most bytes that a request to the API may have.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// The most characters of what the library says; it repeats values.
const MAX_SAID: usize = 300;
/// How the library calls things, and how JSON does.
const WORDS: [(&str, &str); 4] = [
    ("invalid type: sequence", "invalid type: array"),
    ("invalid type: map", "invalid type: object"),
    ("expected a map", "expected an object"),
    ("expected unit", "expected null"),
];
/// The longest piece of a path.
const MAX_NAME: usize = 512;

/// A JSON body.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub T);

impl<S, T> FromRequest<S> for JsonBody<T>
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
        read(&bytes).map(Self)
    }
}

/// Reads an object of JSON.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    // The library would take a list of the values of the fields for the object.
    if first.is_some_and(|byte| *byte != b'{') {
        return Err(Problem::bad_request("the body must be an object of JSON"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        wrong(Some(field).filter(|field| field != "."), error.inner())
    })?;
    json.end().map_err(|error| wrong(None, &error))?;
    Ok(value)
}

/// What is wrong with a body, in the words of those who send it.
fn wrong(field: Option<String>, error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    let said = error.to_string();
    let said = said
        .strip_suffix(&format!(" at line {line} column {column}"))
        .unwrap_or(&said);
    let mut said: String = said.chars().take(MAX_SAID).collect();
    for (theirs, ours) in WORDS {
        if let Some(rest) = said.strip_prefix(theirs) {
            said = format!("{ours}{rest}");
        }
        if let Some(rest) = said.strip_suffix(theirs) {
            said = format!("{rest}{ours}");
        }
    }
    let what = match (error.classify(), field) {
        (Category::Data, Some(field)) => format!("`{field}` is wrong: "),
        (Category::Data, None) => String::new(),
        _ => "the body is not JSON: ".to_owned(),
    };
    Problem::bad_request(format!("{what}{said} (at {line}:{column})"))
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
        Ok(Err(error)) if made_way(error.as_ref()) => Err(Problem::unavailable(
            "the body came too slowly, and others need the connection; send it again",
        )),
        Ok(Err(_)) => Err(Problem::bad_request("the body broke off")),
    }
}

/// Whether a body was given up because others need its connection.
fn made_way(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<MadeWay>() {
            return true;
        }
        cause = error.source();
    }
    false
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
            // The library would say which type of ours does not fit.
            Err(_) => Err(Problem::not_found("there is nothing with such a name")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Map, Value};

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "it is only read")]
    struct Order {
        agent: String,
        #[serde(default)]
        parameters: Map<String, Value>,
        #[serde(default)]
        loud: Option<bool>,
    }

    #[test]
    fn only_objects_are_read_and_errors_name_the_field_and_the_place() {
        read::<Order>(br#" {"agent": "a", "parameters": {}, "loud": null} "#).unwrap();
        for (body, said) in [
            (r#"["a", {}, null]"#, "the body must be an object of JSON"),
            (r#""a""#, "the body must be an object of JSON"),
            (
                "",
                "the body is not JSON: EOF while parsing a value (at 1:0)",
            ),
            (
                "{\n  \"agent\": 1}",
                "`agent` is wrong: invalid type: integer `1`, expected a string (at 2:12)",
            ),
            (
                r#"{"agent": "a", "parameters": []}"#,
                "`parameters` is wrong: invalid type: array, expected an object (at 1:29)",
            ),
            (
                r#"{"agent": {}}"#,
                "`agent` is wrong: invalid type: object, expected a string (at 1:10)",
            ),
            (
                r#"{"agent": "a", "loud": "very"}"#,
                "`loud` is wrong: invalid type: string \"very\", expected a boolean (at 1:29)",
            ),
            ("{}", "missing field `agent` (at 1:2)"),
            (
                r#"{"agent": "a"} {}"#,
                "the body is not JSON: trailing characters (at 1:16)",
            ),
        ] {
            let problem = read::<Order>(body.as_bytes()).unwrap_err();
            assert_eq!((problem.status, problem.detail.as_str()), (400, said));
        }
        let problem = read::<Order>(br#"{"agent": "a", "x": 1}"#).unwrap_err();
        assert!(problem.detail.contains("unknown field `x`"), "{problem:?}");
    }

    #[test]
    fn a_large_value_is_not_repeated() {
        let body = format!(r#"{{"agent": "a", "loud": "{}"}}"#, "x".repeat(100_000));
        let problem = read::<Order>(body.as_bytes()).unwrap_err();
        assert!(problem.detail.len() < 400, "{}", problem.detail.len());
    }
}
