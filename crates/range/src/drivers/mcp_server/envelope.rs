//! The modern era's envelope: what a request must say of itself, and how it is refused if it does not.

use std::borrow::Cow;

use proofhouse_protocol::mcp::{
    EnvelopeError, HeaderMismatch, HeaderMismatchReason, McpMethod, check_argument_headers,
    check_meta,
};
use proofhouse_protocol::rpc::RpcFailure;
use proofhouse_wire::HeaderMap;
use serde_json::{Value, json};

use super::answer::supported_versions;
use super::surface::OfferedSurface;

/// Looks up the headers of a request.
pub(super) fn lookup<'h>(headers: &'h HeaderMap) -> impl Fn(&str) -> Option<Cow<'h, str>> {
    move |name| {
        let value = headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()))
    }
}

/// Checks what a request says of itself.
pub(super) fn check(
    method: &str,
    params: &Value,
    headers: Option<&HeaderMap>,
    surface: &OfferedSurface,
) -> Result<(), RpcFailure> {
    let supported = supported_versions(surface);
    let supports = |version: &str| {
        let mut all = supported.as_array().into_iter().flatten();
        all.any(|one| one == version)
    };
    let Some(headers) = headers else {
        let checked = check_meta(method, params, None, supports);
        return checked.map_err(|error| refused(&error, &supported));
    };
    let headers = lookup(headers);
    check_meta(method, params, Some(&headers), supports)
        .and_then(|()| {
            let name = params.get("name").and_then(Value::as_str);
            let name = name.filter(|_| method == McpMethod::ToolsCall.as_str());
            let Some(tool) = name.and_then(|name| surface.tools.get(name)) else {
                return Ok(());
            };
            let mirrored = tool.header_arguments.iter();
            let mirrored = mirrored.map(|(argument, header)| (argument.as_str(), header.as_str()));
            let arguments = params.get("arguments").unwrap_or(&Value::Null);
            check_argument_headers(&headers, mirrored, arguments).map_err(EnvelopeError::from)
        })
        .map_err(|error| refused(&error, &supported))
}

fn refused(error: &EnvelopeError, supported: &Value) -> RpcFailure {
    let (message, data) = match error {
        EnvelopeError::MissingMeta(key) => (format!("`_meta` has no {key}"), None),
        EnvelopeError::Header(HeaderMismatch { header, reason }) => {
            let why = match reason {
                HeaderMismatchReason::Missing => "it is missing",
                HeaderMismatchReason::Unexpected => "the argument is not there",
                HeaderMismatchReason::Differs => "it does not say what the body says",
            };
            (format!("header {header}: {why}"), None)
        }
        EnvelopeError::UnsupportedVersion { requested } => {
            let data = json!({"supported": supported, "requested": requested});
            let message = format!("the version {requested} is not supported");
            (message, Some(data))
        }
    };
    let mut failure = RpcFailure::bad_request(error.code(), message);
    failure.data = data;
    failure
}
