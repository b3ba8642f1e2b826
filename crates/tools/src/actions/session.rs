//! One remote session: how it is made, what is kept of it, and how it is ended.

use serde_json::{Map, Value};

use super::exchange::{Exchanged, exchange};
use super::response;
use crate::http::HttpClient;
use crate::runtime::{ActionCall, ActionError, ActionFailure, Environment, sounds_secret};
use proofhouse_manifest::interpolate::{Sealed, Secrets};
use proofhouse_manifest::{Execute, HttpCall, SessionSpec};

/// A session that was made.
pub(super) struct OpenSession {
    /// What `{session.key}` names.
    values: Sealed<Value>,
    /// Those of the values that are secret.
    secrets: Secrets,
    /// The call that made it; the one that ends it has the same parameters.
    opened_by: ActionCall,
}

impl OpenSession {
    /// Makes a session. One that was made and cannot be used is ended again.
    pub(super) async fn new(
        client: &HttpClient,
        call: &ActionCall,
        environment: &Environment,
    ) -> Result<Self, ActionError> {
        let session = session_of(call)?;
        let create = whole(session.create.as_ref(), "create")?;
        let made = exchange(client, create, call, environment, None).await?;
        let answer = response::result(&made.answer, create.response_path.as_ref());
        if !made.answer.status.is_success() {
            let unmade = || ActionError::new(ActionFailure::HttpStatus, "no session was made");
            return Err(made.clean(answer.err().unwrap_or_else(unmade)));
        }
        let (open, problem) = match &answer {
            Ok(answer) => extract(session, answer, call),
            Err(error) => (Self::empty(call), Some(error.clone())),
        };
        let ready = match (problem, &session.initialize) {
            (Some(problem), _) => Err(made.clean(problem)),
            (None, None) => Ok(()),
            (None, Some(initialize)) => {
                let values = Some(open.values.expose());
                let sent = exchange(client, initialize, call, environment, values).await;
                sent.and_then(|sent| sent.result(initialize)).map(drop)
            }
        };
        match ready {
            Ok(()) => Ok(open),
            Err(error) => {
                // The session is there; the task will not hear of it, so it ends here, if what is known
                // of it is enough to name it. What went wrong before is what the caller must know.
                let _ = open.close(client, environment).await;
                Err(error.redacted(&open.secrets))
            }
        }
    }

    fn empty(call: &ActionCall) -> Self {
        Self {
            values: Sealed::new(Value::Object(Map::new())),
            secrets: Secrets::default(),
            opened_by: call.clone(),
        }
    }

    /// Carries out an action in the session.
    pub(super) async fn execute(
        &self,
        client: &HttpClient,
        call: &ActionCall,
        environment: &Environment,
    ) -> Result<Value, ActionError> {
        let execute = whole(session_of(call)?.execute.as_ref(), "execute")?;
        let values = Some(self.values.expose());
        let sent = exchange(client, execute, call, environment, values).await;
        match sent.and_then(|sent| sent.result(execute)) {
            Ok(value) => Ok(self.secrets.redact_value(value)),
            Err(error) => Err(error.redacted(&self.secrets)),
        }
    }

    /// Ends the session.
    pub(super) async fn close(
        &self,
        client: &HttpClient,
        environment: &Environment,
    ) -> Result<(), ActionError> {
        let Some(destroy) = &session_of(&self.opened_by)?.destroy else {
            return Ok(());
        };
        let values = Some(self.values.expose());
        let sent = exchange(client, destroy, &self.opened_by, environment, values).await;
        let ended = sent.and_then(|sent: Exchanged| match sent.answer.status.as_u16() {
            // It ended by itself.
            404 | 410 => Ok(()),
            _ => sent.result(destroy).map(drop),
        });
        ended.map_err(|error| error.redacted(&self.secrets))
    }
}

/// Keeps what the manifest asks for of the answer, as far as it is there.
fn extract(
    session: &SessionSpec,
    answer: &Value,
    call: &ActionCall,
) -> (OpenSession, Option<ActionError>) {
    let mut values = Map::new();
    let mut secrets = Secrets::default();
    let mut problem = None;
    for (key, path) in &session.extract {
        match response::select(answer, path) {
            Ok(value) => {
                if sounds_secret(key) {
                    secrets.add_value(&value);
                }
                values.insert(key.clone(), value);
            }
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    let open = OpenSession {
        values: Sealed::new(Value::Object(values)),
        secrets,
        opened_by: call.clone(),
    };
    (open, problem)
}

pub(super) fn session_of(call: &ActionCall) -> Result<&SessionSpec, ActionError> {
    match &call.action.execute {
        Execute::StatefulSession(session) => Ok(session),
        _ => Err(ActionError::new(
            ActionFailure::Manifest,
            "this is not a `stateful_session` action",
        )),
    }
}

fn whole<'a>(call: Option<&'a HttpCall>, key: &str) -> Result<&'a HttpCall, ActionError> {
    call.ok_or_else(|| {
        ActionError::new(
            ActionFailure::Manifest,
            format!("the session has no `{key}`"),
        )
    })
}
