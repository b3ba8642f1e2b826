//! The envelope of the stateless revisions: which era a message belongs to, and what a request says of itself.

use serde_json::{Map, Value};

use super::header::{self, Lookup};
use super::mirror::{HeaderMismatch, check_header};
use super::{McpEra, McpMethod, error, meta};
use crate::rpc;

/// Which era a message belongs to. `headers` are those of its HTTP request.
///
/// What `_meta` says decides, then the version header, then whether there are headers that only modern clients send.
/// A bare handshake is legacy, whatever its sender would rather speak.
#[must_use]
pub fn era_of(method: &str, params: &Value, headers: Option<&Lookup<'_>>) -> McpEra {
    let is_discovery = method == McpMethod::ServerDiscover.as_str();
    if is_discovery || meta::get(params, meta::PROTOCOL_VERSION).is_some() {
        return McpEra::Modern;
    }
    let Some(headers) = headers else {
        return McpEra::Legacy;
    };
    let version = headers(header::PROTOCOL_VERSION);
    let named = version.and_then(|version| McpEra::of_version(version.trim()));
    match named {
        // A client that names a legacy version means it, whatever else it sends along.
        Some(McpEra::Legacy) => McpEra::Legacy,
        Some(McpEra::Modern) if method != McpMethod::Initialize.as_str() => McpEra::Modern,
        _ if headers(header::METHOD).is_some() => McpEra::Modern,
        _ => McpEra::Legacy,
    }
}

/// Puts the envelope into parameters; what is in `_meta` already stays. Parameters that are no object are left as
/// they are.
///
/// ```
/// use proofhouse_protocol::mcp::{McpRevision, meta, wrap_params};
/// use serde_json::json;
///
/// let own = json!({"name": "x", "_meta": {meta::PROTOCOL_VERSION: "1999"}});
/// let wrapped = wrap_params(Some(&own), McpRevision::LATEST.as_str(), &json!({}), &json!({"name": "me"}));
/// assert_eq!(meta::get(&wrapped, meta::PROTOCOL_VERSION), Some(&json!("1999")));
/// assert_eq!(meta::get(&wrapped, meta::CLIENT_INFO), Some(&json!({"name": "me"})));
/// ```
#[must_use]
pub fn wrap_params(
    params: Option<&Value>,
    version: &str,
    capabilities: &Value,
    client_info: &Value,
) -> Value {
    let mut params = match params {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(other) => return other.clone(),
    };
    let meta = params
        .entry(meta::KEY)
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(meta) = meta {
        for (key, value) in [
            (meta::PROTOCOL_VERSION, Value::from(version)),
            (meta::CLIENT_CAPABILITIES, capabilities.clone()),
            (meta::CLIENT_INFO, client_info.clone()),
        ] {
            meta.entry(key).or_insert(value);
        }
    }
    Value::Object(params)
}

/// Why a request of the stateless revisions is refused before it is looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// `_meta` has no such key, or something of another type there.
    #[error("`_meta` has no `{0}`")]
    MissingMeta(&'static str),
    /// A header does not say what the body says.
    #[error(transparent)]
    Header(#[from] HeaderMismatch),
    /// The version is not one that the server speaks.
    #[error("version {requested} of the protocol is not supported")]
    UnsupportedVersion {
        /// The version that was asked for.
        requested: String,
    },
}

impl EnvelopeError {
    /// The code of the error that the protocol has for it.
    #[must_use]
    pub const fn code(&self) -> i64 {
        match self {
            Self::MissingMeta(_) => rpc::INVALID_PARAMS,
            Self::Header(_) => error::HEADER_MISMATCH,
            Self::UnsupportedVersion { .. } => error::UNSUPPORTED_VERSION,
        }
    }
}

/// Checks what a request says of itself, in the order of the specification: the keys of `_meta`, the version in the
/// headers, whether `supported` has it, then the other headers. `headers` are those of its HTTP request.
///
/// # Errors
///
/// Returns the first thing that is wrong.
///
/// ```
/// use proofhouse_protocol::mcp::{EnvelopeError, check_meta, meta};
/// use serde_json::json;
///
/// let params = json!({"_meta": {meta::PROTOCOL_VERSION: "2026-07-28", meta::CLIENT_CAPABILITIES: {}}});
/// assert_eq!(check_meta("tools/list", &params, None, |version| version == "2026-07-28"), Ok(()));
/// let wrong = check_meta("tools/list", &json!({}), None, |_| true);
/// assert_eq!(wrong, Err(EnvelopeError::MissingMeta(meta::PROTOCOL_VERSION)));
/// ```
pub fn check_meta(
    method: &str,
    params: &Value,
    headers: Option<&Lookup<'_>>,
    supports: impl FnOnce(&str) -> bool,
) -> Result<(), EnvelopeError> {
    let version = meta::get(params, meta::PROTOCOL_VERSION).and_then(Value::as_str);
    let version = version.ok_or(EnvelopeError::MissingMeta(meta::PROTOCOL_VERSION))?;
    if !meta::get(params, meta::CLIENT_CAPABILITIES).is_some_and(Value::is_object) {
        return Err(EnvelopeError::MissingMeta(meta::CLIENT_CAPABILITIES));
    }
    if let Some(headers) = headers {
        check_header(headers, header::PROTOCOL_VERSION, version)?;
    }
    if !supports(version) {
        let requested = version.to_owned();
        return Err(EnvelopeError::UnsupportedVersion { requested });
    }
    if let Some(headers) = headers {
        super::check_headers(headers, method, params)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;

    use super::*;
    use crate::mcp::McpRevision;

    const LATEST: &str = McpRevision::LATEST.as_str();

    #[test]
    fn a_bare_handshake_is_legacy_and_an_envelope_is_modern() {
        let envelope = json!({"_meta": {meta::PROTOCOL_VERSION: LATEST}});
        let bare = json!({"protocolVersion": LATEST});
        let legacy = McpRevision::LATEST_WITH_SESSIONS.as_str();
        let none: &[(&str, &str)] = &[];
        let modern = &[(header::PROTOCOL_VERSION, LATEST)][..];
        let named = &[(header::METHOD, "tools/list")][..];
        let mixed = &[
            (header::PROTOCOL_VERSION, legacy),
            (header::METHOD, "tools/list"),
        ][..];
        for (method, params, headers, expected) in [
            ("initialize", &bare, none, McpEra::Legacy),
            ("initialize", &bare, modern, McpEra::Legacy),
            ("initialize", &envelope, none, McpEra::Modern),
            ("tools/list", &json!(null), none, McpEra::Legacy),
            ("tools/list", &json!({}), modern, McpEra::Modern),
            ("tools/list", &json!({}), named, McpEra::Modern),
            ("tools/list", &json!({}), mixed, McpEra::Legacy),
            ("tools/list", &envelope, none, McpEra::Modern),
            ("server/discover", &json!([]), none, McpEra::Modern),
        ] {
            let lookup = |name: &str| {
                let found = headers.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| Cow::Borrowed(*value))
            };
            let era = era_of(method, params, Some(&lookup));
            assert_eq!(era, expected, "{method} {params} {headers:?}");
            if headers.is_empty() {
                assert_eq!(era_of(method, params, None), expected, "{method} {params}");
            }
        }
    }

    #[test]
    fn the_envelope_leaves_what_is_there() {
        let (capabilities, info) = (json!({"roots": {}}), json!({"name": "c"}));
        let wrapped = wrap_params(None, LATEST, &capabilities, &info);
        assert_eq!(wrapped["_meta"][meta::PROTOCOL_VERSION], LATEST);
        let own = json!({"_meta": {"progressToken": 1}});
        let wrapped = wrap_params(Some(&own), LATEST, &capabilities, &info);
        assert_eq!(wrapped["_meta"]["progressToken"], 1);
        let list = json!([1]);
        assert_eq!(wrap_params(Some(&list), LATEST, &capabilities, &info), list);
    }
}
