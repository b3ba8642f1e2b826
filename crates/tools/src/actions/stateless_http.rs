//! `stateless_http`: one HTTP request per call, each independent of the others.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::response;
use crate::http::{HttpClient, Request, references};
use crate::interpolate::Root;
use crate::manifest::{Execute, HttpCall};
use crate::runtime::{ActionError, ActionRuntime, Call, Environment, Failure, State};

/// Sends requests; keeps nothing between calls.
#[derive(Debug, Clone)]
pub struct StatelessHttp {
    client: Arc<HttpClient>,
}

impl StatelessHttp {
    /// A runtime that sends through this client.
    #[must_use]
    pub fn new(client: Arc<HttpClient>) -> Self {
        Self { client }
    }

    async fn send(
        &self,
        http: &HttpCall,
        call: &Call,
        environment: &Environment,
    ) -> Result<Value, ActionError> {
        let used = references(http);
        let uses_token = used.iter().any(|reference| reference.root == Root::Auth);
        let mut secrets = environment.secrets(&call.tool);
        let mut fresh = false;
        loop {
            let scope = environment.scope(call, used.iter().copied(), fresh).await?;
            secrets.extend(scope.secrets());
            let clean = |error: ActionError| response::cut_body(error.redacted(&secrets));
            let request = Request::new(http, &scope).map_err(clean)?;
            let answer = self.client.send(&request).await.map_err(clean)?;
            if answer.status.as_u16() == 401 && uses_token && !fresh {
                fresh = true;
                continue;
            }
            let result = response::result(&answer, http.response_path.as_ref());
            return result
                .map(|value| secrets.redact_value(value))
                .map_err(clean);
        }
    }
}

impl ActionRuntime for StatelessHttp {
    fn initialize<'a>(
        &'a self,
        _call: &'a Call,
        _environment: &'a Environment,
    ) -> BoxFuture<'a, Result<State, ActionError>> {
        Box::pin(async { Ok(State::new(())) })
    }

    fn invoke<'a>(
        &'a self,
        _state: &'a State,
        call: &'a Call,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async move {
            match call.action().map(|action| &action.execute) {
                Some(Execute::StatelessHttp(http)) => self.send(http, call, environment).await,
                _ => Err(ActionError::new(
                    Failure::Manifest,
                    "this is not a `stateless_http` action",
                )),
            }
        })
    }
}
