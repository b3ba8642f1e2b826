//! Which era a message belongs to, and what a modern one must say of itself in `_meta` and in headers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proofhouse_wire::{HeaderMap, rpc};
use serde_json::{Value, json};

use super::protocol::{
    CAPABILITIES_KEY, Era, Failure, HEADER_MISMATCH, LATEST_LEGACY, LEGACY_VERSIONS, MODERN,
    Request, UNSUPPORTED_VERSION, VERSION_KEY,
};

pub(super) const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

/// Which era a message belongs to. `headers` are those of its HTTP request.
pub(super) fn era(method: &str, params: &Value, headers: Option<&HeaderMap>) -> Era {
    let meta = params.get("_meta");
    if meta.is_some_and(|meta| meta.get(VERSION_KEY).is_some()) || method == "server/discover" {
        return Era::Modern;
    }
    let Some(headers) = headers else {
        return Era::Legacy;
    };
    let version = headers.get(VERSION_HEADER).and_then(|v| v.to_str().ok());
    match version {
        Some(version) if LEGACY_VERSIONS.contains(&version) => Era::Legacy,
        // A bare handshake is legacy, whatever its sender would rather speak.
        Some(version) if is_modern(version) && method != "initialize" => Era::Modern,
        _ if headers.contains_key(METHOD_HEADER) => Era::Modern,
        _ => Era::Legacy,
    }
}

/// Whether a version is of the modern era, or of one that is still to come.
pub(super) fn is_modern(version: &str) -> bool {
    version.len() == LATEST_LEGACY.len() && version.starts_with("20") && version > LATEST_LEGACY
}

/// Checks what a modern request says of itself.
pub(super) fn check(request: &Request, headers: Option<&HeaderMap>) -> Result<(), Failure> {
    let missing = |key| {
        let message = format!("`_meta` has no `{key}`");
        Failure::bad_request(rpc::INVALID_PARAMS, message)
    };
    let version = request.meta(VERSION_KEY).and_then(Value::as_str);
    let version = version.ok_or_else(|| missing(VERSION_KEY))?;
    if !request.meta(CAPABILITIES_KEY).is_some_and(Value::is_object) {
        return Err(missing(CAPABILITIES_KEY));
    }
    if let Some(headers) = headers {
        mirrored(headers, VERSION_HEADER, version)?;
    }
    if version != MODERN {
        let message = "this version of the protocol is not supported";
        let mut failure = Failure::bad_request(UNSUPPORTED_VERSION, message);
        failure.data = Some(json!({"supported": [MODERN], "requested": version}));
        return Err(failure);
    }
    let Some(headers) = headers else {
        return Ok(());
    };
    mirrored(headers, METHOD_HEADER, &request.method)?;
    let named = match request.method.as_str() {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    };
    match named.and_then(|key| request.params.get(key)) {
        Some(Value::String(name)) => mirrored(headers, NAME_HEADER, name),
        _ => Ok(()),
    }
}

/// Checks that the arguments that a tool's schema wants in headers are there, and the same.
pub(super) fn check_arguments(
    headers: &HeaderMap,
    schema: &Value,
    arguments: &Value,
) -> Result<(), Failure> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (argument, property) in properties.into_iter().flatten() {
        let Some(name) = property.get("x-mcp-header").and_then(Value::as_str) else {
            continue;
        };
        let header = format!("mcp-param-{}", name.to_ascii_lowercase());
        match arguments.get(argument) {
            None | Some(Value::Null) => {
                if headers.contains_key(&header) {
                    return Err(mismatch(&header, "its argument is not there"));
                }
            }
            Some(Value::String(value)) => mirrored(headers, &header, value)?,
            Some(value) => mirrored(headers, &header, &value.to_string())?,
        }
    }
    Ok(())
}

/// A header says what the body says; what headers cannot carry is in base64.
fn mirrored(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), Failure> {
    let value = headers.get(name);
    let value = value.ok_or_else(|| mismatch(name, "it is missing"))?;
    let value = String::from_utf8_lossy(value.as_bytes());
    let value = value.trim();
    let encoded = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    let same = match encoded {
        Some(encoded) => STANDARD
            .decode(encoded)
            .is_ok_and(|bytes| bytes == expected.as_bytes()),
        None => value == expected.trim(),
    };
    match same {
        true => Ok(()),
        false => Err(mismatch(name, "it does not say what the body says")),
    }
}

fn mismatch(name: &str, why: &str) -> Failure {
    Failure::bad_request(HEADER_MISMATCH, format!("header `{name}`: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| {
                (
                    proofhouse_wire::HeaderName::from_static(name),
                    value.parse().unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn a_bare_handshake_is_legacy_and_an_envelope_is_modern() {
        let envelope = json!({"_meta": {VERSION_KEY: MODERN}});
        let (none, bare) = (HeaderMap::new(), json!({"protocolVersion": MODERN}));
        let modern = headers(&[(VERSION_HEADER, MODERN)]);
        let named = headers(&[(METHOD_HEADER, "tools/list")]);
        let mixed = headers(&[
            (VERSION_HEADER, LATEST_LEGACY),
            (METHOD_HEADER, "tools/list"),
        ]);
        for (method, params, headers, expected) in [
            ("initialize", &bare, &none, Era::Legacy),
            ("initialize", &bare, &modern, Era::Legacy),
            ("initialize", &envelope, &none, Era::Modern),
            ("tools/list", &json!(null), &none, Era::Legacy),
            ("tools/list", &json!({}), &modern, Era::Modern),
            ("tools/list", &json!({}), &named, Era::Modern),
            ("tools/list", &json!({}), &mixed, Era::Legacy),
            ("server/discover", &json!([]), &none, Era::Modern),
        ] {
            assert_eq!(era(method, params, Some(headers)), expected, "{method}");
        }
    }

    #[test]
    fn arguments_that_travel_in_headers_must_be_the_same_there() {
        let schema = json!({"properties": {"city": {"x-mcp-header": "City"}, "days": {"x-mcp-header": "D"}}});
        let both = json!({"city": "Zürich", "days": 3});
        for (given, arguments, fits) in [
            (
                vec![
                    ("mcp-param-city", "=?base64?WsO8cmljaA==?="),
                    ("mcp-param-d", "3"),
                ],
                &both,
                true,
            ),
            (vec![("mcp-param-d", "3")], &both, false),
            (vec![("mcp-param-d", "4")], &json!({"days": 3}), false),
            (vec![("mcp-param-d", "4")], &json!({}), false),
            (vec![], &json!({"days": null}), true),
        ] {
            let checked = check_arguments(&headers(&given), &schema, arguments);
            assert_eq!(checked.is_ok(), fits, "{given:?}");
        }
    }
}
