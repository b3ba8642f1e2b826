//! `stateful_session`: a remote session that is made at the first call and ended with the task.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::exchange::{Exchanged, exchange};
use super::response;
use crate::http::HttpClient;
use crate::interpolate::{Sealed, Secrets};
use crate::manifest::{Execute, HttpCall, Session};
use crate::runtime::{
    ActionError, ActionRuntime, Call, Environment, Failure, State, sounds_secret,
};

/// Keeps sessions with servers.
#[derive(Debug, Clone)]
pub struct StatefulSession {
    client: Arc<HttpClient>,
}

/// A session that was made.
struct Open {
    /// What `{session.key}` names.
    values: Sealed<Value>,
    /// Those of the values that are secret.
    secrets: Secrets,
    /// The call that made it; the one that ends it has the same parameters.
    opened_by: Call,
}

impl StatefulSession {
    /// A runtime that sends through this client.
    #[must_use]
    pub fn new(client: Arc<HttpClient>) -> Self {
        Self { client }
    }

    async fn open(&self, call: &Call, environment: &Environment) -> Result<Open, ActionError> {
        let session = session_of(call)?;
        let create = whole(session.create.as_ref(), "create")?;
        let made = exchange(&self.client, create, call, environment, None).await?;
        let answer = response::result(&made.answer, create.response_path.as_ref());
        let answer = answer.map_err(|error| made.clean(error))?;
        let open = extract(session, &answer, call).map_err(|error| made.clean(error))?;
        if let Some(initialize) = &session.initialize {
            let values = Some(open.values.expose());
            let sent = exchange(&self.client, initialize, call, environment, values).await;
            if let Err(error) = sent.and_then(|sent| sent.result(initialize)) {
                // The session is there; the task will not hear of it, so it ends here. What went
                // wrong before is what the caller must know.
                let _ = self.close(&open, environment).await;
                return Err(error.redacted(&open.secrets));
            }
        }
        Ok(open)
    }

    async fn close(&self, open: &Open, environment: &Environment) -> Result<(), ActionError> {
        let Some(destroy) = &session_of(&open.opened_by)?.destroy else {
            return Ok(());
        };
        let values = Some(open.values.expose());
        let sent = exchange(&self.client, destroy, &open.opened_by, environment, values).await;
        let ended = sent.and_then(|sent: Exchanged| match sent.answer.status.as_u16() {
            // It ended by itself.
            404 | 410 => Ok(()),
            _ => sent.result(destroy).map(drop),
        });
        ended.map_err(|error| error.redacted(&open.secrets))
    }
}

impl ActionRuntime for StatefulSession {
    fn initialize<'a>(
        &'a self,
        call: &'a Call,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<State, ActionError>> {
        Box::pin(async move { Ok(State::new(self.open(call, environment).await?)) })
    }

    fn invoke<'a>(
        &'a self,
        state: &'a State,
        call: &'a Call,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async move {
            let open: &Open = state.get().ok_or_else(foreign)?;
            let execute = whole(session_of(call)?.execute.as_ref(), "execute")?;
            let values = Some(open.values.expose());
            let sent = exchange(&self.client, execute, call, environment, values).await;
            match sent.and_then(|sent| sent.result(execute)) {
                Ok(value) => Ok(open.secrets.redact_value(value)),
                Err(error) => Err(error.redacted(&open.secrets)),
            }
        })
    }

    fn teardown<'a>(
        &'a self,
        state: &'a State,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<(), ActionError>> {
        Box::pin(async move {
            self.close(state.get().ok_or_else(foreign)?, environment)
                .await
        })
    }
}

/// Keeps what the manifest asks for of the answer.
fn extract(session: &Session, answer: &Value, call: &Call) -> Result<Open, ActionError> {
    let mut values = Map::new();
    let mut secrets = Secrets::default();
    for (key, path) in &session.extract {
        let value = response::select(answer, path)?;
        if sounds_secret(key) {
            secrets.add_value(&value);
        }
        values.insert(key.clone(), value);
    }
    let values = Sealed::new(Value::Object(values));
    Ok(Open {
        values,
        secrets,
        opened_by: call.clone(),
    })
}

fn session_of(call: &Call) -> Result<&Session, ActionError> {
    match &call.action.execute {
        Execute::StatefulSession(session) => Ok(session),
        _ => Err(ActionError::new(
            Failure::Manifest,
            "this is not a `stateful_session` action",
        )),
    }
}

fn whole<'a>(call: Option<&'a HttpCall>, key: &str) -> Result<&'a HttpCall, ActionError> {
    call.ok_or_else(|| ActionError::new(Failure::Manifest, format!("the session has no `{key}`")))
}

fn foreign() -> ActionError {
    ActionError::new(Failure::Manifest, "the state is not a session")
}
