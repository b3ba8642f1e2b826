//! Previews: what a call would do, with its values in place and its secrets masked. Nothing is sent.

use serde_json::{Map, Value, json};

use super::{ActionError, Call, Environment};
use crate::http::{Request, references};
use proofhouse_manifest::interpolate::{
    HeaderTemplate, MASK, Reference, Root, Scope, Secrets, Template, UrlTemplate, encode,
};
use proofhouse_manifest::{
    DescriptionPlace, Execute, HttpCall, KubernetesJob, Mcp, McpTransport, OpenApi, Session,
};

/// What a call would do. Tokens are not fetched: a mask stands for each. What only a session will know
/// is shown as the reference to it.
pub(super) fn preview(call: &Call, environment: &Environment) -> Result<Value, ActionError> {
    let preview = Preview {
        call,
        secrets: call.secrets.clone(),
        scope: environment.scope_without_tokens(call),
        placeholders: vec![MASK.to_owned()],
    };
    let secrets = preview.secrets.clone();
    let mut shown = match &call.action.execute {
        Execute::Cel(cel) => Ok(json!({
            "expression": cel.expression.source(),
            "variables": {
                "context": call.context,
                "input": call.parameters,
                "now": environment.now(),
                "runtime": environment.root(Root::Runtime).cloned().unwrap_or(json!({})),
            },
        })),
        Execute::StatelessHttp(http) => preview.http(http),
        Execute::StatefulSession(session) => preview.session(session),
        Execute::OpenApi(api) => preview.openapi(api),
        Execute::Mcp(mcp) => preview.mcp(mcp),
        Execute::KubernetesJob(job) => preview.job(job),
    }
    .map_err(|error| error.redacted(&secrets))?;
    if let Some(shown) = shown.as_object_mut() {
        shown.shift_insert(0, "runtime".to_owned(), call.action.execute.key().into());
    }
    Ok(secrets.redact_value(shown))
}

struct Preview<'a> {
    call: &'a Call,
    secrets: Secrets,
    scope: Scope,
    /// Texts that stand for values which are not known; URLs show them as they are.
    placeholders: Vec<String>,
}

impl Preview<'_> {
    fn http(mut self, http: &HttpCall) -> Result<Value, ActionError> {
        Ok(json!({"request": self.request(http)?}))
    }

    fn session(mut self, session: &Session) -> Result<Value, ActionError> {
        let mut known = Map::new();
        for (key, _) in &session.extract {
            let placeholder = format!("{{session.{key}}}");
            known.insert(key.clone(), placeholder.clone().into());
            self.placeholders.push(placeholder);
        }
        self.scope.set(Root::Session, Value::Object(known));
        let mut shown = Map::new();
        for (key, call) in [
            ("create", &session.create),
            ("initialize", &session.initialize),
            ("execute", &session.execute),
            ("destroy", &session.destroy),
        ] {
            if let Some(call) = call {
                shown.insert(key.to_owned(), self.request(call)?);
            }
        }
        Ok(json!({"requests": shown}))
    }

    fn openapi(mut self, api: &OpenApi) -> Result<Value, ActionError> {
        let place = match &api.url {
            Some(DescriptionPlace::Url(url)) => self.url(Some(url))?,
            Some(DescriptionPlace::File(path)) => path.as_str().into(),
            None => Value::Null,
        };
        Ok(json!({
            "description": {"url": place, "headers": self.headers(&api.headers)?},
            "operation": self.call.action.name,
            "arguments": self.call.parameters,
        }))
    }

    fn mcp(mut self, mcp: &Mcp) -> Result<Value, ActionError> {
        let transport = match mcp.transport {
            Some(McpTransport::Stdio) => "stdio",
            Some(McpTransport::Sse) => "sse",
            Some(McpTransport::StreamableHttp) => "streamable_http",
            None => "none",
        };
        let mut server = json!({"transport": transport});
        if let Some(command) = &mcp.command {
            server["command"] = self.text(command)?.into();
            let args = mcp.args.iter().flatten();
            let args: Result<Vec<String>, ActionError> = args.map(|arg| self.text(arg)).collect();
            server["args"] = args?.into();
            let mut env = Map::new();
            for (name, value) in &mcp.env {
                env.insert(name.clone(), self.text(value)?.into());
            }
            server["env"] = env.into();
        }
        if mcp.url.is_some() {
            server["url"] = self.url(mcp.url.as_ref())?;
            server["headers"] = self.headers(&mcp.headers)?;
        }
        Ok(json!({
            "server": server,
            "tool": self.call.action.name,
            "arguments": self.call.parameters,
        }))
    }

    fn job(mut self, job: &KubernetesJob) -> Result<Value, ActionError> {
        let namespace = self.text(&job.namespace)?;
        for template in job.spec.templates() {
            self.mask_tokens(template.references());
        }
        let spec = job.spec.render(&self.scope)?;
        Ok(json!({"namespace": namespace, "spec": spec.expose()}))
    }

    fn request(&mut self, http: &HttpCall) -> Result<Value, ActionError> {
        self.mask_tokens(references(http).into_iter());
        let request = Request::new(http, &self.scope)?;
        let headers: Map<String, Value> = request
            .headers
            .expose()
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                (name.to_string(), Value::from(value))
            })
            .collect();
        let mut shown = json!({
            "method": request.method.as_str(),
            "url": self.plain(&without_password(request.url.expose())),
            "headers": headers,
        });
        if let Some(body) = &http.body {
            shown["body"] = body.render(&self.scope)?.into_exposed();
        }
        Ok(shown)
    }

    fn url(&mut self, url: Option<&UrlTemplate>) -> Result<Value, ActionError> {
        let Some(url) = url else {
            return Ok(Value::Null);
        };
        self.mask_tokens(url.template().references());
        let url = url.render(&self.scope)?;
        Ok(self.plain(&without_password(url.expose())).into())
    }

    fn headers(&mut self, headers: &[HeaderTemplate]) -> Result<Value, ActionError> {
        let mut shown = Map::new();
        for header in headers {
            let value = self.text(&header.value)?;
            shown.insert(header.name.to_string(), value.into());
        }
        Ok(shown.into())
    }

    fn text(&mut self, template: &Template) -> Result<String, ActionError> {
        self.mask_tokens(template.references());
        Ok(self.scope.text(template)?.into_exposed())
    }

    fn mask_tokens<'r>(&mut self, references: impl Iterator<Item = &'r Reference>) {
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
