//! Exchanges: one HTTP call of a manifest, filled in, sent, and sent again with a new token on 401.

use serde_json::Value;

use super::response;
use crate::http::{HttpClient, HttpResponse, ToolRequest, references};
use crate::runtime::{ActionCall, ActionError, Environment};
use proofhouse_manifest::HttpCall;
use proofhouse_manifest::interpolate::{Root, Secrets, TemplateScope, UrlTemplate};

/// A response and the secrets that must not be shown of it.
pub(crate) struct Exchanged {
    pub(crate) answer: HttpResponse,
    pub(crate) secrets: Secrets,
}

impl Exchanged {
    /// What the action yields, without secrets.
    pub(crate) fn result(&self, http: &HttpCall) -> Result<Value, ActionError> {
        match response::result(&self.answer, http.response_path.as_ref()) {
            Ok(value) => Ok(self.secrets.redact_value(value)),
            Err(error) => Err(self.clean(error)),
        }
    }

    /// An error without secrets.
    pub(crate) fn clean(&self, error: ActionError) -> ActionError {
        clean(error, &self.secrets)
    }
}

fn clean(error: ActionError, secrets: &Secrets) -> ActionError {
    response::cut_body(error.redacted(secrets))
}

/// Sends a call. `session` holds what `{session.key}` names.
pub(crate) async fn exchange(
    client: &HttpClient,
    http: &HttpCall,
    call: &ActionCall,
    environment: &Environment,
    session: Option<&Value>,
) -> Result<Exchanged, ActionError> {
    let used = references(http);
    let uses_token = used.iter().any(|reference| reference.root == Root::Auth);
    let mut secrets = call.secrets.clone();
    let mut refused: Option<(TemplateScope, HttpResponse)> = None;
    loop {
        let mut scope = match &refused {
            None => environment.scope(call, used.iter().copied(), false).await,
            Some((refused, _)) => {
                let used = used.iter().copied();
                environment.scope_instead_of(refused, call, used).await
            }
        }
        .map_err(|error| clean(error, &secrets))?;
        // A token that never changes was refused for good.
        if let Some((_, answer)) = refused.take_if(|(refused, _)| scope.has_tokens_of(refused)) {
            return Ok(Exchanged { answer, secrets });
        }
        if let Some(session) = session {
            scope.set(Root::Session, session.clone());
        }
        secrets.extend(scope.secrets());
        let request = ToolRequest::new(http, &scope).map_err(|error| clean(error, &secrets))?;
        let answer = client.send(&request).await.map_err(|error| {
            let error = clean(error, &secrets);
            if http.url.as_ref().is_some_and(UrlTemplate::is_of_session) {
                error.of_chosen_host()
            } else {
                error
            }
        })?;
        if answer.status.as_u16() == 401 && uses_token && refused.is_none() {
            refused = Some((scope, answer));
            continue;
        }
        return Ok(Exchanged { answer, secrets });
    }
}
