//! The modern era's envelope: what every request must say of itself, in `_meta` and in headers.

use proofhouse_wire::{HeaderMap, rpc};
use serde_json::{Value, json};

use super::answer::supported_versions;
use super::base64;
use super::call::{
    CAPABILITIES_KEY, Era, Failure, HEADER_MISMATCH, LEGACY_VERSIONS, UNSUPPORTED_VERSION,
    VERSION_KEY,
};
use super::content::Kind;
use super::surface::Surface;

pub(super) const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

/// Which era a message belongs to. `headers` are those of its HTTP request.
pub(super) fn era(method: &str, params: &Value, headers: Option<&HeaderMap>) -> Era {
    let enveloped = params
        .get("_meta")
        .is_some_and(|meta| meta.get(VERSION_KEY).is_some());
    if enveloped || method == "server/discover" {
        return Era::Modern;
    }
    let Some(headers) = headers else {
        return Era::Legacy;
    };
    match text(headers, VERSION_HEADER) {
        // A client that names a legacy version means it, whatever else it sends along.
        Some(version) if LEGACY_VERSIONS.contains(&version) => Era::Legacy,
        // A bare handshake is legacy whatever it asks for.
        Some(version) if is_modern(version) && method != "initialize" => Era::Modern,
        _ if headers.contains_key(METHOD_HEADER) => Era::Modern,
        _ => Era::Legacy,
    }
}

/// Whether a version is of the modern era or one that we cannot know yet.
pub(super) fn is_modern(version: &str) -> bool {
    let latest = LEGACY_VERSIONS[LEGACY_VERSIONS.len() - 1];
    version.len() == latest.len() && version > latest && version.starts_with("20")
}

/// Checks what a request says of itself.
pub(super) fn check(
    method: &str,
    params: &Value,
    headers: Option<&HeaderMap>,
    surface: &Surface,
) -> Result<(), Failure> {
    let meta = params.get("_meta");
    let key = |key: &str| meta.and_then(|meta| meta.get(key));
    let missing = |what: &str| {
        Failure::new(rpc::INVALID_PARAMS, format!("`_meta` has no {what}")).with_status(400)
    };
    let version = key(VERSION_KEY)
        .and_then(Value::as_str)
        .ok_or_else(|| missing(VERSION_KEY))?;
    if !key(CAPABILITIES_KEY).is_some_and(Value::is_object) {
        return Err(missing(CAPABILITIES_KEY));
    }
    if let Some(headers) = headers {
        mirrored(headers, VERSION_HEADER, version)?;
    }
    let supported = supported_versions(surface);
    if !supported
        .as_array()
        .is_some_and(|all| all.iter().any(|one| one == version))
    {
        let message = format!("the version {version} is not supported");
        return Err(Failure::new(UNSUPPORTED_VERSION, message)
            .with_data(json!({"supported": supported, "requested": version}))
            .with_status(400));
    }
    let Some(headers) = headers else {
        return Ok(());
    };
    mirrored(headers, METHOD_HEADER, method)?;
    let Some(kind) = Kind::of(method) else {
        return Ok(());
    };
    if let Some(name) = params.get(kind.name_key()).and_then(Value::as_str) {
        mirrored(headers, NAME_HEADER, name)?;
        if kind == Kind::Tool {
            check_arguments(headers, name, params, surface)?;
        }
    }
    Ok(())
}

/// Arguments that the tool's schema wants in headers must be there, and the same.
fn check_arguments(
    headers: &HeaderMap,
    name: &str,
    params: &Value,
    surface: &Surface,
) -> Result<(), Failure> {
    let Some(tool) = surface.tools.get(name) else {
        return Ok(());
    };
    for (argument, header) in &tool.header_arguments {
        let header = format!("mcp-param-{}", header.to_ascii_lowercase());
        let value = params
            .get("arguments")
            .and_then(|arguments| arguments.get(argument));
        match value {
            None | Some(Value::Null) => {
                if headers.contains_key(&header) {
                    return Err(mismatch(&header, "the argument is not there"));
                }
            }
            Some(Value::String(value)) => mirrored(headers, &header, value)?,
            Some(value) => mirrored(headers, &header, &value.to_string())?,
        }
    }
    Ok(())
}

fn mirrored(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), Failure> {
    let Some(value) = headers.get(name) else {
        return Err(mismatch(name, "it is missing"));
    };
    let value = String::from_utf8_lossy(value.as_bytes());
    let value = value.trim();
    let encoded = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    let same = match encoded {
        Some(encoded) => base64::decode(encoded).is_some_and(|bytes| bytes == expected.as_bytes()),
        None => value == expected.trim(),
    };
    if same {
        Ok(())
    } else {
        Err(mismatch(name, "it does not say what the body says"))
    }
}

fn mismatch(name: &str, why: &str) -> Failure {
    Failure::new(HEADER_MISMATCH, format!("header {name}: {why}")).with_status(400)
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_handshake_is_legacy_whatever_it_asks_for() {
        let modern = json!({"_meta": {VERSION_KEY: "2026-07-28"}});
        let mut headers = HeaderMap::new();
        headers.insert(VERSION_HEADER, "2026-07-28".parse().unwrap());
        let bare = json!({"protocolVersion": "2026-07-28"});
        let mut mixed = HeaderMap::new();
        mixed.insert(VERSION_HEADER, "2025-11-25".parse().unwrap());
        mixed.insert(METHOD_HEADER, "tools/list".parse().unwrap());
        for (method, params, headers, expected) in [
            ("initialize", &bare, None, Era::Legacy),
            ("initialize", &bare, Some(&headers), Era::Legacy),
            ("initialize", &modern, None, Era::Modern),
            ("tools/list", &json!({}), Some(&headers), Era::Modern),
            ("tools/list", &json!({}), Some(&mixed), Era::Legacy),
            ("tools/list", &json!({}), None, Era::Legacy),
            ("tools/list", &modern, None, Era::Modern),
            ("server/discover", &json!({}), None, Era::Modern),
        ] {
            assert_eq!(era(method, params, headers), expected, "{method} {params}");
        }
    }
}
