//! Requests: an HTTP call of a manifest with its values in place.

use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};
use url::Url;

use crate::runtime::{ActionError, ActionFailure};
use proofhouse_manifest::interpolate::{Sealed, TemplateReference, TemplateScope};
use proofhouse_manifest::{HttpCall, METHODS};

/// A request that is ready to be sent. It may hold secrets and shows none.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: Sealed<Url>,
    /// Headers.
    pub headers: Sealed<HeaderMap>,
    /// The body.
    pub body: Sealed<Bytes>,
}

impl ToolRequest {
    /// Fills in a call.
    ///
    /// # Errors
    ///
    /// Returns an error when a value is missing or may not stand where it stands.
    pub fn new(call: &HttpCall, scope: &TemplateScope) -> Result<Self, ActionError> {
        let incomplete = |key: &str| {
            ActionError::new(ActionFailure::Manifest, format!("the call has no `{key}`"))
        };
        let method = scope.text(call.method.as_ref().ok_or_else(|| incomplete("method"))?)?;
        let method = METHODS
            .into_iter()
            .find(|known| known == method.expose())
            .and_then(|known| Method::from_bytes(known.as_bytes()).ok())
            .ok_or_else(|| {
                let message = format!("the method must be one of: {}", METHODS.join(", "));
                ActionError::new(ActionFailure::Arguments, message)
            })?;
        let url = call
            .url
            .as_ref()
            .ok_or_else(|| incomplete("url"))?
            .render(scope)?;
        scope.check_hosts(url.expose())?;
        let mut headers = HeaderMap::new();
        for header in &call.headers {
            headers.insert(header.name.clone(), header.render(scope)?.into_exposed());
        }
        let body = match &call.body {
            Some(body) => {
                let json = body.render(scope)?;
                let kind = headers
                    .entry(HeaderName::from_static("content-type"))
                    .or_insert(HeaderValue::from_static("application/json"));
                match json.expose() {
                    Value::Object(fields) if is_form(kind) => Bytes::from(form(fields)),
                    other => Bytes::from(other.to_string()),
                }
            }
            None => Bytes::new(),
        };
        Ok(Self {
            method,
            url,
            headers: Sealed::new(headers),
            body: Sealed::new(body),
        })
    }

    /// What is sent where `body` is rendered, as people read it: a form as its text, anything else as JSON.
    pub(crate) fn shown_body(&self, body: Value) -> Value {
        let kind = self.headers.expose().get("content-type");
        match body {
            Value::Object(fields) if kind.is_some_and(is_form) => form(&fields).into(),
            other => other,
        }
    }

    /// Whether sending it twice has the effect of sending it once.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.method.is_idempotent()
    }
}

fn is_form(kind: &HeaderValue) -> bool {
    let kind = kind.to_str().unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The fields of a form. A list is its field several times, null none; an object is sent as JSON.
fn form(fields: &Map<String, Value>) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        let values = match value {
            Value::Array(items) => items.as_slice(),
            Value::Null => &[],
            one => std::slice::from_ref(one),
        };
        for value in values {
            match value {
                Value::String(text) => form.append_pair(name, text),
                other => form.append_pair(name, &other.to_string()),
            };
        }
    }
    form.finish()
}

/// The references of a call, for fetching the tokens it needs.
pub(crate) fn references(call: &HttpCall) -> Vec<&TemplateReference> {
    let url = call.url.as_ref().map(|url| url.template());
    let headers = call.headers.iter().map(|header| &header.value);
    let body = call.body.iter().flat_map(|body| body.templates());
    let texts = call.method.iter().chain(url).chain(headers).chain(body);
    texts.flat_map(|text| text.references()).collect()
}
