//! What a request of the modern era must say of itself, and how it is refused if it does not.

use std::borrow::Cow;

use proofhouse_protocol::mcp::{
    EnvelopeError, McpRevision, check_argument_headers, check_meta, header_arguments,
};
use proofhouse_protocol::rpc::RpcFailure;
use proofhouse_wire::HeaderMap;
use serde_json::{Value, json};

use super::protocol::{McpRequest, supported_versions};

/// Looks up the headers of a request.
pub(super) fn lookup<'h>(headers: &'h HeaderMap) -> impl Fn(&str) -> Option<Cow<'h, str>> {
    move |name| {
        let value = headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()))
    }
}

/// Checks what a modern request says of itself.
pub(super) fn check(request: &McpRequest, headers: Option<&HeaderMap>) -> Result<(), RpcFailure> {
    let (method, params) = (&request.method, &request.params);
    let supports =
        |version: &str| McpRevision::parse(version).is_some_and(McpRevision::is_stateless);
    let checked = match headers {
        Some(headers) => check_meta(method, params, Some(&lookup(headers)), supports),
        None => check_meta(method, params, None, supports),
    };
    checked.map_err(|error| refused(&error))
}

/// Checks that the arguments that a tool's schema wants in headers are there, and the same.
pub(super) fn check_arguments(
    headers: &HeaderMap,
    schema: &Value,
    arguments: &Value,
) -> Result<(), RpcFailure> {
    check_argument_headers(&lookup(headers), header_arguments(schema), arguments)
        .map_err(|mismatch| refused(&mismatch.into()))
}

fn refused(error: &EnvelopeError) -> RpcFailure {
    let (message, data) = match error {
        EnvelopeError::MissingMeta(_) | EnvelopeError::Header(_) => (error.to_string(), None),
        EnvelopeError::UnsupportedVersion { requested } => {
            let data = json!({"supported": supported_versions(), "requested": requested});
            let message = "this version of the protocol is not supported".to_owned();
            (message, Some(data))
        }
    };
    let mut failure = RpcFailure::bad_request(error.code(), message);
    failure.data = data;
    failure
}
