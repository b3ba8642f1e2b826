//! Requests: an operation with its values in place. A value stays where it was put, whatever it holds.

use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};
use url::Url;

use crate::description::{OpenApiDescription, Operation};
use crate::error::CallError;
use crate::input::{OperationInput, Parameter, ParameterLocation};
use crate::security;
use crate::style::{in_header, in_path, in_query};
use proofhouse_manifest::interpolate::{
    PathCheck, PathRefusal, Sealed, breaks_line, climbs, encode,
};

/// How long a URL may be; servers take 8 KB at best.
const MAX_URL: usize = 64 << 10;

/// What a request is made of beside the parameters.
#[derive(Debug)]
pub struct Surroundings {
    /// Where the API is.
    pub base: Url,
    /// Credentials, in the places that their schemes name.
    pub credentials: Vec<(security::CredentialLocation, Sealed<String>)>,
    /// The headers of the manifest.
    pub headers: Vec<(HeaderName, Sealed<HeaderValue>)>,
}

/// A request of an operation, ready to be sent. It may hold secrets and shows none.
#[derive(Debug, Clone)]
pub struct OperationRequest {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: Sealed<Url>,
    /// Headers.
    pub headers: Sealed<HeaderMap>,
    /// The body.
    pub body: Sealed<Bytes>,
}

/// Fills in an operation.
///
/// # Errors
///
/// Returns an error when a value may not stand where it has to, or the description makes no request of it.
pub fn request(
    description: &OpenApiDescription,
    operation: &Operation,
    input: &OperationInput,
    parameters: &Map<String, Value>,
    around: &Surroundings,
) -> Result<OperationRequest, CallError> {
    let mut headers = HeaderMap::new();
    headers.insert("accept", accept(description, operation));
    let mut query: Vec<(String, String)> = Vec::new();
    let mut cookies: Vec<(String, String)> = Vec::new();
    for parameter in &input.parameters {
        let Some(value) = parameters.get(&parameter.property) else {
            continue;
        };
        if value.is_null() {
            continue;
        }
        if any_text(value, &breaks_line) {
            return Err(refused(parameter, "it holds a line break or NUL"));
        }
        let value = &if parameter.json {
            Value::String(value.to_string())
        } else {
            value.clone()
        };
        match parameter.place {
            ParameterLocation::Path => {}
            ParameterLocation::Query => {
                query.extend(in_query(&parameter.name, value, parameter.shape));
            }
            ParameterLocation::Cookie => {
                cookies.extend(in_query(&parameter.name, value, parameter.shape));
            }
            ParameterLocation::Header => {
                let name = HeaderName::from_bytes(parameter.name.as_bytes())
                    .map_err(|_| refused(parameter, "its name cannot be that of a header"))?;
                let text = in_header(value, parameter.shape);
                let value = HeaderValue::from_bytes(text.as_bytes())
                    .map_err(|_| refused(parameter, "it holds a control character"))?;
                headers.insert(name, value);
            }
        }
    }
    let mut bytes = Bytes::new();
    let mut content_type = None;
    if let Some((property, body)) = &input.body
        && let Some(value) = parameters.get(property)
    {
        let written = body.write(description, value);
        let written = written.map_err(|error| CallError::Arguments(error.to_string()))?;
        content_type = HeaderValue::from_bytes(written.content_type.as_bytes()).ok();
        bytes = Bytes::from(written.bytes);
    }
    for (place, value) in &around.credentials {
        match place {
            security::CredentialLocation::Header(name) => {
                let mut value = HeaderValue::from_bytes(value.expose().as_bytes())
                    .map_err(|_| unusable("a credential cannot stand in a header"))?;
                value.set_sensitive(true);
                headers.insert(name.clone(), value);
            }
            security::CredentialLocation::Query(name) => {
                query.push((encode(name), encode(value.expose())));
            }
            security::CredentialLocation::Cookie(name) => {
                cookies.push((name.clone(), encode(value.expose())));
            }
        }
    }
    if !cookies.is_empty() {
        let pairs = cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let line = pairs.collect::<Vec<_>>().join("; ");
        let mut line = HeaderValue::from_bytes(line.as_bytes())
            .map_err(|_| unusable("a cookie cannot stand in a header"))?;
        line.set_sensitive(true);
        headers.insert("cookie", line);
    }
    for (name, value) in &around.headers {
        headers.insert(name.clone(), value.expose().clone());
    }
    // What the bytes are is known here best; the manifest does not know the boundary of parts.
    if let Some(content_type) = content_type {
        headers.insert("content-type", content_type);
    }
    Ok(OperationRequest {
        method: Method::from_bytes(operation.method.as_bytes())
            .map_err(|_| unusable("the method cannot be used"))?,
        url: Sealed::new(url(operation, input, parameters, &around.base, &query)?),
        headers: Sealed::new(headers),
        body: Sealed::new(bytes),
    })
}

fn unusable(reason: &str) -> CallError {
    CallError::Setting(reason.to_owned())
}

fn refused(parameter: &Parameter, reason: &str) -> CallError {
    let message = format!("`{}` is refused: {reason}", parameter.property);
    CallError::Arguments(message)
}

fn url(
    operation: &Operation,
    input: &OperationInput,
    parameters: &Map<String, Value>,
    base: &Url,
    query: &[(String, String)],
) -> Result<Url, CallError> {
    let mut home = base.clone();
    home.set_query(None);
    home.set_fragment(None);
    let template = operation.path.split('#').next().unwrap_or_default();
    // Some descriptions tell operations apart by a query in the path.
    let (template, fixed) = template.split_once('?').unwrap_or((template, ""));
    let path = path(template, input, parameters)?;
    let mut text = format!("{}{path}", home.as_str().trim_end_matches('/'));
    let pairs = query.iter().map(|(name, value)| format!("{name}={value}"));
    let pairs: Vec<String> = std::iter::once(fixed.to_owned())
        .filter(|fixed| !fixed.is_empty())
        .chain(pairs)
        .collect();
    if !pairs.is_empty() {
        text.push('?');
        text.push_str(&pairs.join("&"));
    }
    if text.len() > MAX_URL {
        let message = format!("the URL would have more than {MAX_URL} bytes");
        return Err(CallError::TooLarge(message));
    }
    let url = Url::parse(&text).ok();
    // A path of the description that begins with `@` or `:` would name another host.
    url.filter(|url| url.origin() == base.origin() && url.username().is_empty())
        .ok_or_else(|| {
            let message = format!("the path of `{}` makes no URL", operation.name);
            CallError::Manifest(message)
        })
}

/// The path with its values in place. No value leaves its segment, or makes it empty.
fn path(
    template: &str,
    input: &OperationInput,
    parameters: &Map<String, Value>,
) -> Result<String, CallError> {
    let mut path = String::new();
    let mut segment = PathCheck::default();
    let left = |refusal: PathRefusal<&Parameter>| refused(refusal.value, refusal.reason);
    let mut rest = template;
    while let Some((before, from)) = rest.split_once('{') {
        let Some((name, after)) = from.split_once('}') else {
            break;
        };
        path.push_str(before);
        segment.text(before).map_err(left)?;
        let mut known = input.parameters.iter();
        let found =
            known.find(|known| known.place == ParameterLocation::Path && known.name == name);
        if let Some(parameter) = found {
            let value = parameters.get(&parameter.property).unwrap_or(&Value::Null);
            if any_text(value, &breaks_line) {
                return Err(refused(parameter, "it holds a line break or NUL"));
            }
            if any_text(value, &climbs) {
                return Err(refused(parameter, "it holds a `..` segment"));
            }
            let written = if parameter.json {
                encode(&value.to_string())
            } else {
                in_path(&parameter.name, value, parameter.shape)
            };
            path.push_str(&written);
            segment.value(parameter, &written);
        }
        rest = after;
    }
    path.push_str(rest);
    segment.text(rest).map_err(left)?;
    segment.end().map_err(left)?;
    Ok(path)
}

/// Whether a text of a value, or one of its keys, is like this.
fn any_text(value: &Value, is: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, is)),
        Value::Object(map) => map.iter().any(|(key, item)| is(key) || any_text(item, is)),
        _ => false,
    }
}

/// What the operation answers with; JSON if it can.
fn accept(description: &OpenApiDescription, operation: &Operation) -> HeaderValue {
    let tree = &description.tree;
    let json = tree
        .get(operation.node, "responses")
        .into_iter()
        .flat_map(|responses| tree.entries(responses))
        .filter(|(status, _)| status.starts_with('2') || *status == "default")
        .take(20)
        .filter_map(|(_, response)| tree.get(description.resolve(response).ok()?, "content"))
        .flat_map(|content| tree.entries(content).take(20))
        .map(|(media, _)| media)
        .find(|media| media.len() <= 200 && media.to_ascii_lowercase().contains("json"));
    let line = json.map(|media| format!("{media}, */*;q=0.1"));
    line.and_then(|line| HeaderValue::from_bytes(line.as_bytes()).ok())
        .unwrap_or(HeaderValue::from_static("*/*"))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
