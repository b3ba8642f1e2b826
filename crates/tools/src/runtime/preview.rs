//! Previews: what a call would do, with its values in place and its secrets masked. Nothing is sent.

use serde_json::{Map, Value, json};

use super::{ActionCall, ActionError, ActionRuntime, Environment};
use crate::http::{ToolRequest, references};
use proofhouse_manifest::HttpCall;
use proofhouse_manifest::interpolate::{
    BodyTemplate, HeaderTemplate, MASK, Root, Secrets, Template, TemplateReference, TemplateScope,
    UrlTemplate, encode,
};

/// What a call would do, as its runtime says. Tokens are not fetched: a mask stands for each.
pub(super) fn preview(
    runtime: &dyn ActionRuntime,
    call: &ActionCall,
    environment: &Environment,
) -> Result<Value, ActionError> {
    preview_by(|preview| runtime.preview(preview), call, environment)
}

/// The same, as somebody else says.
pub(super) fn preview_by(
    tell: impl FnOnce(Preview<'_>) -> Result<Value, ActionError>,
    call: &ActionCall,
    environment: &Environment,
) -> Result<Value, ActionError> {
    let preview = Preview {
        call,
        environment,
        secrets: call.secrets.clone(),
        scope: environment.scope_without_tokens(call),
        placeholders: vec![MASK.to_owned()],
    };
    let secrets = preview.secrets.clone();
    let shown = tell(preview);
    let mut shown = shown.map_err(|error| error.redacted(&secrets))?;
    if let Some(shown) = shown.as_object_mut() {
        shown.shift_insert(0, "runtime".to_owned(), call.action.execute.key().into());
    }
    Ok(secrets.redact_value(shown))
}

/// The parts of a preview: texts, URLs and requests of a call with their values in place and every secret masked.
pub struct Preview<'a> {
    /// The call.
    pub call: &'a ActionCall,
    /// What the task runs in.
    pub environment: &'a Environment,
    secrets: Secrets,
    scope: TemplateScope,
    /// Texts that stand for values which are not known; URLs show them as they are.
    placeholders: Vec<String>,
}

impl Preview<'_> {
    /// Has values that only a session will know shown as the references to them, `{session.key}`.
    pub fn set_session<'k>(&mut self, keys: impl Iterator<Item = &'k str>) {
        let mut known = Map::new();
        for key in keys {
            let placeholder = format!("{{session.{key}}}");
            known.insert(key.to_owned(), placeholder.clone().into());
            self.placeholders.push(placeholder);
        }
        self.scope.set(Root::Session, Value::Object(known));
    }

    /// A value whose texts may hold references.
    ///
    /// # Errors
    ///
    /// Returns an error when a value is missing or may not stand where it stands.
    pub fn body(&mut self, body: &BodyTemplate) -> Result<Value, ActionError> {
        for template in body.templates() {
            self.mask_tokens(template.references());
        }
        Ok(body.render(&self.scope)?.into_exposed())
    }

    /// An HTTP request.
    ///
    /// # Errors
    ///
    /// Returns an error when a value is missing or may not stand where it stands.
    pub fn request(&mut self, http: &HttpCall) -> Result<Value, ActionError> {
        self.mask_tokens(references(http).into_iter());
        let request = ToolRequest::new(http, &self.scope)?;
        let mut shown = self.sent(&request);
        if let Some(body) = &http.body {
            // Secrets are masked before a form is made of them, which would write them differently.
            let body = body.render(&self.scope)?.into_exposed();
            shown["body"] = match request.shown_body(self.secrets.redact_value(body)) {
                Value::String(form) => self.plain(&form).into(),
                json => json,
            };
        }
        Ok(shown)
    }

    /// Has other parameters than those of the call, such as its defaults.
    pub(crate) fn set_parameters(&mut self, parameters: &Map<String, Value>) {
        self.scope
            .set(Root::Parameters, Value::Object(parameters.clone()));
    }

    /// What these references can name; a mask stands for each token.
    pub(crate) fn scope_of<'r>(
        &mut self,
        references: impl Iterator<Item = &'r TemplateReference>,
    ) -> &TemplateScope {
        self.mask_tokens(references);
        &self.scope
    }

    /// The method, the URL and the headers of a request.
    pub(crate) fn sent(&self, request: &ToolRequest) -> Value {
        let headers: Map<String, Value> = request
            .headers
            .expose()
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                (name.to_string(), Value::from(value))
            })
            .collect();
        json!({
            "method": request.method.as_str(),
            "url": self.plain(&without_password(request.url.expose())),
            "headers": headers,
        })
    }

    /// A URL; null where there is none.
    ///
    /// # Errors
    ///
    /// Returns an error when a value is missing or may not stand where it stands.
    pub fn url(&mut self, url: Option<&UrlTemplate>) -> Result<Value, ActionError> {
        let Some(url) = url else {
            return Ok(Value::Null);
        };
        self.mask_tokens(url.template().references());
        let url = url.render(&self.scope)?;
        Ok(self.plain(&without_password(url.expose())).into())
    }

    /// Headers by name.
    ///
    /// # Errors
    ///
    /// Returns an error when a value is missing or may not stand where it stands.
    pub fn headers(&mut self, headers: &[HeaderTemplate]) -> Result<Value, ActionError> {
        let mut shown = Map::new();
        for header in headers {
            let value = self.text(&header.value)?;
            shown.insert(header.name.to_string(), value.into());
        }
        Ok(shown.into())
    }

    /// A text.
    ///
    /// # Errors
    ///
    /// Returns an error when a value is missing or may not stand where it stands.
    pub fn text(&mut self, template: &Template) -> Result<String, ActionError> {
        self.mask_tokens(template.references());
        Ok(self.scope.text(template)?.into_exposed())
    }

    fn mask_tokens<'r>(&mut self, references: impl Iterator<Item = &'r TemplateReference>) {
        for reference in references.filter(|reference| reference.root == Root::Auth) {
            self.scope
                .set_token(&reference.path.join("."), MASK.to_owned());
        }
    }

    /// A URL with its secrets masked and its placeholders as people read them.
    fn plain(&self, url: &str) -> String {
        let mut url = self.secrets.redact(url);
        for placeholder in &self.placeholders {
            url = url.replace(&encode(placeholder), placeholder);
        }
        url
    }
}

/// A URL whose password is masked: the setting it came from need not be one that sounds secret.
fn without_password(url: &url::Url) -> String {
    let mut url = url.clone();
    if url.password().is_some() {
        // Only URLs without a host refuse it, and those have no password.
        let _ = url.set_password(Some("redacted"));
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        for (url, shown) in [
            ("http://u:SECRET-1@h.test/a", "http://u:redacted@h.test/a"),
            ("http://h.test/a?b=c", "http://h.test/a?b=c"),
        ] {
            let url = url::Url::parse(url).expect("a URL");
            assert_eq!(without_password(&url), shown);
        }
    }
}
